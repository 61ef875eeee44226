// Dimensions, shapes and dtypes as text.
#include "sluice/shape.h"
#include "sluice/dtype.h"

namespace sluice {

std::string Dim::str() const { return symbolic() ? name : std::to_string(size); }

bool Dim::operator==(const Dim &other) const {
  return symbolic() || other.symbolic() ? name == other.name && size == other.size : size == other.size;
}

std::string Shape::str() const {
  std::string text = "[";
  for (const Dim &dim : dims)
    text += (text.size() > 1 ? ", " : "") + dim.str();
  return text + "]";
}

const char *to_string(DType dtype) {
  static constexpr const char *names[] = {"f32", "f64", "i32", "i64", "u8", "bool"};
  return names[int(dtype)];
}

bool is_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

} // namespace sluice
