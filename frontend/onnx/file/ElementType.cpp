#include "frontend/onnx/file/ElementType.h"

#include <limits>

namespace sluice::onnx {

namespace {

struct Row {
  ElementType type;
  const char *name;
  std::size_t size;
  std::optional<DType> held;
};

} // namespace

static constexpr Row kRows[] = {
    {ElementType::f32, "float", 4, DType::f32},
    {ElementType::u8, "uint8", 1, DType::u8},
    {ElementType::i8, "int8", 1, DType::i32},
    {ElementType::u16, "uint16", 2, DType::i32},
    {ElementType::i16, "int16", 2, DType::i32},
    {ElementType::i32, "int32", 4, DType::i32},
    {ElementType::i64, "int64", 8, DType::i64},
    {ElementType::string, "string", 0, {}},
    {ElementType::boolean, "bool", 1, DType::boolean},
    {ElementType::f16, "float16", 2, DType::f16},
    {ElementType::f64, "double", 8, DType::f64},
    {ElementType::u32, "uint32", 4, DType::i64},
    {ElementType::u64, "uint64", 8, {}},
    {ElementType::complex64, "complex64", 8, {}},
    {ElementType::complex128, "complex128", 16, {}},
    {ElementType::bf16, "bfloat16", 2, DType::bf16},
};

static const Row *rowOf(ElementType type) {
  for (const Row &row : kRows)
    if (row.type == type)
      return &row;
  return nullptr;
}

std::string nameOf(ElementType type) {
  const Row *row = rowOf(type);
  return row ? row->name : "type " + std::to_string(int(type));
}

std::optional<std::size_t> sizeOf(ElementType type) {
  const Row *row = rowOf(type);
  return row && row->size ? std::optional(row->size) : std::nullopt;
}

std::optional<DType> heldAs(ElementType type) {
  const Row *row = rowOf(type);
  return row ? row->held : std::nullopt;
}

ElementType elementTypeOf(DType dtype) {
  for (const Row &row : kRows)
    if (row.held == dtype && row.type != ElementType::i8 && row.type != ElementType::u16 &&
        row.type != ElementType::i16 && row.type != ElementType::u32)
      return row.type;
  return ElementType::undefined;
}

bool isFloat(ElementType type) {
  return type == ElementType::f32 || type == ElementType::f64 || type == ElementType::f16 || type == ElementType::bf16;
}

bool isInteger(ElementType type) {
  auto number = int(type);
  return (number >= int(ElementType::u8) && number <= int(ElementType::i64)) || type == ElementType::u32 ||
         type == ElementType::u64;
}

template <class T> static std::pair<std::int64_t, std::int64_t> limits() {
  return {std::int64_t(std::numeric_limits<T>::min()), std::int64_t(std::numeric_limits<T>::max())};
}

std::pair<std::int64_t, std::int64_t> limitsOf(ElementType type) {
  switch (type) {
  case ElementType::u8:
    return limits<std::uint8_t>();
  case ElementType::i8:
    return limits<std::int8_t>();
  case ElementType::u16:
    return limits<std::uint16_t>();
  case ElementType::i16:
    return limits<std::int16_t>();
  case ElementType::u32:
    return limits<std::uint32_t>();
  case ElementType::i32:
    return limits<std::int32_t>();
  default:
    return limits<std::int64_t>();
  }
}

} // namespace sluice::onnx
