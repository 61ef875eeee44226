// Images and labels on their way into an entry point's inputs.
#ifndef SLUICE_RUNTIME_RUNNER_FEED_H
#define SLUICE_RUNTIME_RUNNER_FEED_H

#include "runtime/exec/Instance.h"
#include "runtime/io/Idx.h"

#include <cstdint>
#include <span>

namespace sluice::runtime {

/// The inputs of an entry that images and labels go to; `label` is null if there is none.
struct FeedInputs {
  const Value *image = nullptr, *label = nullptr;
};

/// The one with the images' size takes pixels (u8 as stored; f32 and f64 as pixel / 255), the first integer vector
/// takes labels. Fails if an input fits neither. Of `images`, only the size matters.
FeedInputs findInputs(const Plan &plan, const Entry &entry, const ImageSet &images);

/// The same, for images that are about to be read.
ImageCheck fitting(const Plan &plan, const Entry &entry);

/// Binds a set of images to the inputs of an entry.
class Feed {
public:
  /// Fails if an input fits neither, or a label exceeds the classes that the model tells apart. `images` must outlive
  /// this.
  Feed(Instance &instance, const Entry &entry, const ImageSet &images);

  /// Sets the inputs to the images with these numbers, one per row.
  void fill(std::span<const uint32_t> numbers);

private:
  void checkLabels() const;
  template <typename T> void fillImages(std::span<const uint32_t> numbers);
  template <typename T> void fillLabels(std::span<const uint32_t> numbers);

  Instance &instance_;
  const ImageSet &images_;
  FeedInputs inputs_;
};

/// The numbers 0, 1, ... count - 1.
std::vector<uint32_t> inOrder(int64_t count);

} // namespace sluice::runtime

#endif
