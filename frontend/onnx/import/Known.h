// Known: a tensor whose elements are known when a model is imported.
#pragma once

#include "frontend/onnx/file/ElementType.h"
#include "runtime/io/MappedFile.h"
#include "runtime/io/TensorSource.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sluice::onnx {

using Dims = std::vector<std::int64_t>;

/// The number of elements; throws Malformed if it is negative or more than 2^40.
std::int64_t countOf(const Dims &dims);

/// Elements in row-major order, in ONNX's memory format. Copies share the elements.
class Known {
public:
  /// Elements in the memory of `owner`. `file` is the file that contains them, if any.
  Known(ElementType type, Dims dims, std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
        std::shared_ptr<const runtime::MappedFile> file = {}, std::size_t offset = 0);
  /// Elements of the memory format of `type`.
  Known(ElementType type, Dims dims, std::vector<std::byte> bytes);
  /// Equal elements: one is stored.
  static Known uniform(ElementType type, Dims dims, std::span<const std::byte> element);
  /// Numbers, converted to the type as C++ does; integers wrap around.
  static Known ofIntegers(ElementType type, Dims dims, std::span<const std::int64_t> values);
  static Known ofReals(ElementType type, Dims dims, std::span<const double> values);
  /// An i64 vector, and an i64 scalar.
  static Known vector(std::span<const std::int64_t> values);
  static Known scalar(std::int64_t value);

  ElementType type() const { return elementType; }
  const Dims &dims() const { return shape; }
  std::int64_t count() const { return elements; }
  std::int64_t rank() const { return std::int64_t(shape.size()); }
  /// Whether all elements are equal, bit for bit, and stored once.
  bool isUniform() const { return uniformElement; }
  /// Whether the elements are in the memory of another value.
  bool isPartOf(const Known &other) const { return owner == other.owner; }
  /// Whether the elements are in a file.
  bool isInFile() const { return bool(file); }
  /// The memory of the elements.
  std::size_t bytes() const { return data.size(); }
  /// The address of an element.
  const std::byte *at(std::int64_t index) const { return data.data() + (uniformElement ? 0 : index) * width; }
  std::size_t elementSize() const { return width; }
  /// An element as a number. Integers of more than 53 bits are rounded by `real`. Floats are truncated by `integer`.
  double real(std::int64_t index) const;
  std::int64_t integer(std::int64_t index) const;
  /// All elements as numbers. Throws Malformed if they are millions of copies of one number.
  std::vector<std::int64_t> integers() const;
  std::vector<double> reals() const;

  /// Whether types, dimensions and elements are equal, bit for bit.
  bool equals(const Known &other) const;
  /// The same elements under other dimensions, of which there are as many.
  Known reshaped(Dims dims) const;
  /// `count` slices from `first` on of the first dimension, in the same memory.
  Known rows(std::int64_t first, std::int64_t count) const;
  /// Element i of the result is element from[i]; -1: zero.
  Known taking(Dims dims, std::span<const std::int64_t> from) const;
  /// All bytes, also of uniform elements; of i8 and other types that are held as another dtype, the converted elements.
  /// `what` is the prefix of errors.
  runtime::TensorSource source(const std::string &what) const;

private:
  void requireListable() const;

  ElementType elementType;
  Dims shape;
  std::int64_t elements;
  std::size_t width;
  std::span<const std::byte> data;
  std::shared_ptr<const void> owner;
  std::shared_ptr<const runtime::MappedFile> file; ///< contains `data` from `offset` on, if it is in a file
  std::size_t offset = 0;
  bool uniformElement = false;
};

/// Stores a number as an element of the type; integers wrap around.
void storeReal(ElementType type, double value, std::byte *to);
void storeInteger(ElementType type, std::int64_t value, std::byte *to);

} // namespace sluice::onnx
