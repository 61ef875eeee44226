// A tensor that is read piece by piece from where it lies: a safetensors file, an .npy file, or memory.
#pragma once

#include "runtime/io/Convert.h"
#include "runtime/io/Safetensors.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace sluice::runtime {

struct TensorSource {
  std::string what; ///< begins messages: "x.safetensors: 'w'"
  DType dtype = DType::f32;
  Shape shape;
  /// Gives the bytes from `at` on, of the elements in row-major order.
  std::function<void(size_t at, std::span<std::byte> to)> read;

  size_t bytes() const { return static_cast<size_t>(elementsOf(shape)) * sizeOf(dtype); }
  /// Hands all bytes on in order, in pieces.
  void give(const WriteBytes &write) const;
  /// zlib's, of all bytes.
  uint32_t crc32() const;
  /// The same for who needs this type and shape: floats may be narrower. Fails, naming both, if it has others.
  TensorSource as(DType wanted, const Shape &size) const;
  /// Like `as`, but floats may also be wider: their elements are rounded to nearest. Reading fails at an element beyond
  /// the largest value of `wanted`.
  TensorSource roundedTo(DType wanted, const Shape &size) const;

private:
  /// `convert` may be null if the type is already the wanted one.
  TensorSource converted(DType wanted, const Shape &size, Convert convert) const;
};

/// The tensor of this name. Fails if the file has none; `path` is what messages call it.
TensorSource sourceIn(std::shared_ptr<const SafetensorsFile> file, const std::string &path, const std::string &name);
/// Elements in memory.
TensorSource sourceOf(const std::string &what, DType dtype, const Shape &shape, std::shared_ptr<const Bytes> elements);
/// What an .npy file holds, in memory.
TensorSource sourceOfNpy(const std::string &path);

/// Writes the tensors to a safetensors file under their names.
struct NamedSource {
  std::string name;
  TensorSource source;
};
void writeSources(const std::string &path, const std::vector<NamedSource> &sources);

} // namespace sluice::runtime
