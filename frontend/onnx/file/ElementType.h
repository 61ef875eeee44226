// The element types of ONNX.
#pragma once

#include "sluice/dtype.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace sluice::onnx {

/// TensorProto.DataType, with its numbers. Other numbers occur in files and have a name: "type 23".
enum class ElementType : std::int32_t {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  string = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  complex64 = 14,
  complex128 = 15,
  bf16 = 16,
};

/// ONNX's name: "float", "int64", "bfloat16".
std::string nameOf(ElementType type);
/// Bytes of one element; nothing for strings and types that the importer does not read.
std::optional<std::size_t> sizeOf(ElementType type);
/// The dtype in which a graph holds values of the type: its own, or the next wider integer for i8, u16, i16 (i32) and
/// u32 (i64). Nothing for all others.
std::optional<DType> heldAs(ElementType type);
ElementType elementTypeOf(DType dtype);
bool isFloat(ElementType type);
/// Integers, without bool.
bool isInteger(ElementType type);
/// The least and the greatest value of an integer type.
std::pair<std::int64_t, std::int64_t> limitsOf(ElementType type);

} // namespace sluice::onnx
