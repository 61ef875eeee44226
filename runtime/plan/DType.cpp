#include "runtime/plan/DType.h"

#include "runtime/base/Text.h"

#include <cstring>
#include <limits>
#include <type_traits>

namespace sluice::runtime {

namespace {
struct DTypeFacts {
  std::string_view name, npy, safetensors;
  size_t size;
  bool isFloat;
};
} // namespace

#define SLUICE_DTYPE_FACTS(name, number, type, text, ir, npy, safetensors)                                             \
  {text, npy, safetensors, sizeof(type), !std::is_integral_v<type>},
static constexpr DTypeFacts facts[] = {SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_FACTS)};
#undef SLUICE_DTYPE_FACTS

#define SLUICE_DTYPE_VALUE(name, ...) DType::name,
static constexpr DType all[] = {SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_VALUE)};
#undef SLUICE_DTYPE_VALUE

static const DTypeFacts &factsOf(DType type) { return facts[static_cast<size_t>(type)]; }

size_t sizeOf(DType type) { return factsOf(type).size; }
bool isFloat(DType type) { return factsOf(type).isFloat; }
std::string_view nameOf(DType type) { return factsOf(type).name; }
std::string_view npyNameOf(DType type) { return factsOf(type).npy; }
std::string_view safetensorsNameOf(DType type) { return factsOf(type).safetensors; }
std::span<const DType> allDTypes() { return all; }

std::optional<DType> dtypeFromName(std::string_view name) {
  for (DType type : all)
    if (nameOf(type) == name)
      return type;
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

template <typename T> static std::vector<std::byte> leastAs() {
  T value;
  if constexpr (std::is_integral_v<T>)
    value = std::numeric_limits<T>::min();
  else
    value = T(-std::numeric_limits<float>::infinity());
  auto *bytes = reinterpret_cast<const std::byte *>(&value);
  return {bytes, bytes + sizeof value};
}

std::vector<std::byte> leastOf(DType type) {
#define SLUICE_DTYPE_LEAST(name, number, type, ...)                                                                    \
  case DType::name:                                                                                                    \
    return leastAs<type>();
  switch (type) { SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_LEAST) }
#undef SLUICE_DTYPE_LEAST
  return {};
}

template <typename T> static double readAs(const std::byte *data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return static_cast<double>(value);
}

double elementAsDouble(DType type, const std::byte *data, int64_t index) {
#define SLUICE_DTYPE_READ(name, number, type, ...)                                                                     \
  case DType::name:                                                                                                    \
    return readAs<type>(data, index);
  switch (type) { SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_READ) }
#undef SLUICE_DTYPE_READ
  return std::numeric_limits<double>::quiet_NaN();
}

} // namespace sluice::runtime
