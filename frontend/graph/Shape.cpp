// Dimensions, shapes and dtypes as text.
#include "sluice/shape.h"
#include "sluice/dtype.h"

namespace sluice {

std::string Dim::str() const {
  return !symbolic() ? std::to_string(size) : times == 1 ? name : name + "*" + std::to_string(times);
}

bool Dim::operator==(const Dim &other) const {
  if (!symbolic() && !other.symbolic())
    return size == other.size;
  return name == other.name && size == other.size && times == other.times;
}

Dim operator*(const Dim &dim, std::int64_t times) {
  Dim result = dim;
  (dim.symbolic() ? result.times : result.size) *= times;
  return result;
}

std::string Shape::str() const {
  std::string text = "[";
  for (const Dim &dim : dims)
    text += (text.size() > 1 ? ", " : "") + dim.str();
  return text + "]";
}

const char *to_string(DType dtype) {
#define SLUICE_DTYPE_TEXT(name, number, type, text, ...) text,
  static constexpr const char *names[] = {SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_TEXT)};
#undef SLUICE_DTYPE_TEXT
  return names[int(dtype)];
}

bool is_float(DType dtype) {
#define SLUICE_DTYPE_IS_FLOAT(name, number, type, ...) !std::is_integral_v<type>,
  static constexpr bool floats[] = {SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_IS_FLOAT)};
#undef SLUICE_DTYPE_IS_FLOAT
  return floats[int(dtype)];
}

} // namespace sluice
