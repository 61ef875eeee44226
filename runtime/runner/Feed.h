// Images and labels on their way into an entry point's inputs.
#ifndef SLUICE_RUNTIME_RUNNER_FEED_H
#define SLUICE_RUNTIME_RUNNER_FEED_H

#include "runtime/Instance.h"
#include "runtime/io/Idx.h"

#include <cstdint>
#include <span>

namespace sluice::runtime {

/// Binds a set of images to the inputs of an entry: the one with the images' size takes pixels (u8 as stored; f32 and
/// f64 as pixel / 255), the integer one called label or labels, or else the only integer vector, takes labels.
class Feed {
public:
  /// Fails if an input fits neither, or a label exceeds the classes that the model tells apart. `images` must outlive
  /// this.
  Feed(Instance &instance, const Entry &entry, const ImageSet &images);

  /// Sets the inputs to the images with these numbers, one per row.
  void fill(std::span<const uint32_t> numbers);

private:
  void bind(const Entry &entry);
  void checkLabels() const;
  template <typename T> void fillImages(std::span<const uint32_t> numbers);
  template <typename T> void fillLabels(std::span<const uint32_t> numbers);

  Instance &instance_;
  const ImageSet &images_;
  const Value *image_ = nullptr, *label_ = nullptr;
};

/// The numbers 0, 1, ... count - 1.
std::vector<uint32_t> inOrder(int64_t count);

} // namespace sluice::runtime

#endif
