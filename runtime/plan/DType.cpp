#include "runtime/plan/DType.h"

#include "runtime/base/Text.h"

#include <array>
#include <cstring>
#include <limits>

namespace sluice::runtime {

namespace {
struct DTypeFacts {
  DType type;
  std::string_view name;
  size_t size;
};
} // namespace

static constexpr std::array<DTypeFacts, 6> facts = {{{DType::f32, "f32", 4},
                                                     {DType::f64, "f64", 8},
                                                     {DType::i32, "i32", 4},
                                                     {DType::i64, "i64", 8},
                                                     {DType::u8, "u8", 1},
                                                     {DType::boolean, "bool", 1}}};

size_t sizeOf(DType type) { return facts[static_cast<size_t>(type)].size; }
bool isFloat(DType type) { return type == DType::f32 || type == DType::f64; }
std::string_view nameOf(DType type) { return facts[static_cast<size_t>(type)].name; }

std::optional<DType> dtypeFromName(std::string_view name) {
  for (const DTypeFacts &fact : facts)
    if (fact.name == name)
      return fact.type;
  return std::nullopt;
}

std::string shapeText(const Shape &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += concat(i == 0 ? "" : ", ", shape[i]);
  return text + "]";
}

std::string typeText(DType type, const Shape &shape) { return concat(nameOf(type), shapeText(shape)); }

std::optional<int64_t> checkedElements(const Shape &shape, size_t elementSize) {
  int64_t bytes = static_cast<int64_t>(elementSize);
  int64_t count = 1;
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0)
      return std::nullopt;
    if (size == 0) {
      empty = true;
      continue;
    }
    if (__builtin_mul_overflow(bytes, size, &bytes))
      return std::nullopt;
    count *= size;
  }
  return empty ? 0 : count;
}

int64_t elementsOf(const Shape &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

template <typename T> static double readAs(const std::byte *data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return static_cast<double>(value);
}

double elementAsDouble(DType type, const std::byte *data, int64_t index) {
  switch (type) {
  case DType::f32:
    return readAs<float>(data, index);
  case DType::f64:
    return readAs<double>(data, index);
  case DType::i32:
    return readAs<int32_t>(data, index);
  case DType::i64:
    return readAs<int64_t>(data, index);
  case DType::u8:
  case DType::boolean:
    return readAs<uint8_t>(data, index);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

} // namespace sluice::runtime
