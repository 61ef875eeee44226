// A tensor that is read piecewise from its storage: a safetensors file, an .npy file, or memory.
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
  std::string what; ///< prefix of messages: "x.safetensors: 'w'"
  DType dtype = DType::f32;
  Shape shape;
  /// Reads the bytes from `at` on; elements are in row-major order.
  std::function<void(size_t at, std::span<std::byte> to)> read;

  size_t bytes() const { return static_cast<size_t>(elementsOf(shape)) * sizeOf(dtype); }
  /// Passes all bytes to `write` in order, in pieces of at most 1 MiB.
  void give(const WriteBytes &write) const;
  /// zlib's CRC-32 of all bytes.
  uint32_t crc32() const;
  /// The tensor as this type and shape. The source may have a narrower float type. Otherwise fails with a message that
  /// contains both types and shapes.
  TensorSource as(DType wanted, const Shape &size) const;
  /// Like `as`, but floats may also be wider: their elements are rounded to nearest. Reading fails at an element beyond
  /// the largest value of `wanted`.
  TensorSource roundedTo(DType wanted, const Shape &size) const;

private:
  /// `convert` is null if the types are equal.
  TensorSource converted(DType wanted, const Shape &size, Convert convert) const;
};

/// The tensor of this name. Fails if the file has none; messages contain `path`.
TensorSource sourceIn(std::shared_ptr<const SafetensorsFile> file, const std::string &path, const std::string &name);
/// Elements in memory.
TensorSource sourceOf(const std::string &what, DType dtype, const Shape &shape, std::shared_ptr<const Bytes> elements);
/// The contents of an .npy file, in memory.
TensorSource sourceOfNpy(const std::string &path);

struct NamedSource {
  std::string name;
  TensorSource source;
};
/// Writes the tensors with their names to a safetensors file.
void writeSources(const std::string &path, const std::vector<NamedSource> &sources);

} // namespace sluice::runtime
