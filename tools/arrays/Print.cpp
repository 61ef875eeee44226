// Arrays as text: "(2, 3) gpu(0) float32" and the elements in brackets, a line for each row.
#include "sluice/array.h"
#include "tools/arrays/ArrayImpl.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <ostream>

namespace sluice {

using detail::ArrayAccess;
using detail::ArrayType;

namespace {

/// Prints the elements of an array on the host. The text is that of PyTorch without "tensor(": widths, exponents, line
/// breaks and edges follow its rules (torch/_tensor_str.py).
class Printer {
public:
  Printer(const ArrayType &type, const std::byte *elements, const PrintOptions &options)
      : type(type), elements(elements), options(options), isElided(type.elements > options.threshold) {}

  std::string text() {
    if (type.elements == 0)
      return "[]";
    std::vector<long double> numbers;
    forEachElement(0, 0, [&](int64_t at) { numbers.push_back(detail::numberAt(type.dtype, elements, at)); });
    if (is_float(type.dtype)) // zeros, infinities and NaN do not determine the format, as in PyTorch
      std::erase_if(numbers, [](long double number) { return number == 0 || !std::isfinite(number); });
    chooseFormat(numbers);
    for (long double number : numbers)
      width = std::max(width, format(number).size());
    return print(0, 0);
  }

private:
  /// Calls `visit` with each printed index of a dimension, and with -1 for the omitted ones.
  void forEachShown(size_t dim, const std::function<void(int64_t)> &visit) const {
    int64_t size = type.shape[dim], edge = std::max<int64_t>(options.edge_items, 0);
    bool isShort = !isElided || size <= 2 * edge;
    for (int64_t i = 0; i < (isShort ? size : edge); ++i)
      visit(i);
    if (isShort)
      return;
    visit(-1);
    for (int64_t i = size - edge; i < size; ++i)
      visit(i);
  }

  /// Calls `visit` with the flat index of each printed element.
  void forEachElement(size_t dim, int64_t at, const std::function<void(int64_t)> &visit) const {
    if (dim == type.shape.size())
      return visit(at);
    forEachShown(dim, [&](int64_t i) {
      if (i >= 0)
        forEachElement(dim + 1, at * type.shape[dim] + i, visit);
    });
  }

  /// Integral values print without decimals. Exponents are used if the largest is above 1e8 or 1000 times the least, or
  /// if values are not integral and the least is below 1e-4.
  void chooseFormat(const std::vector<long double> &numbers) {
    if (!is_float(type.dtype) || numbers.empty())
      return;
    double least = INFINITY, largest = 0;
    for (long double number : numbers) {
      isWhole &= number == std::ceil(number);
      least = std::min(least, double(std::abs(number)));
      largest = std::max(largest, double(std::abs(number)));
    }
    hasExponent = largest / least > 1000 || largest > 1e8 || (!isWhole && least < 1e-4);
  }

  std::string format(long double number) const {
    char text[512]; // the largest double has 309 digits before the point
    int digits = std::clamp(options.precision, 0, 100);
    if (type.dtype == DType::boolean)
      return number != 0 ? "True" : "False";
    if (!is_float(type.dtype))
      std::snprintf(text, sizeof text, "%.0Lf", number);
    else if (std::isnan(number))
      return "nan";
    else if (std::isinf(number))
      return number > 0 ? "inf" : "-inf";
    else if (hasExponent)
      std::snprintf(text, sizeof text, "%.*Le", digits, number);
    else if (isWhole)
      std::snprintf(text, sizeof text, "%.0Lf.", number);
    else
      std::snprintf(text, sizeof text, "%.*Lf", digits, number);
    return text;
  }

  std::string print(size_t dim, int64_t at) const {
    if (dim == type.shape.size()) {
      std::string text = format(detail::numberAt(type.dtype, elements, at));
      return std::string(width - std::min(width, text.size()), ' ') + text;
    }
    bool isRow = dim + 1 == type.shape.size();
    std::string nextLine =
        "," + std::string(type.shape.size() - dim - (isRow ? 0 : 1), '\n') + std::string(dim + 1, ' ');
    auto perLine = std::max(int64_t(1), (options.line_width - int64_t(dim)) / int64_t(width + 2));
    std::string into = "[";
    int64_t count = 0;
    forEachShown(dim, [&](int64_t i) {
      if (count > 0)
        into += isRow && count % perLine != 0 ? ", " : nextLine;
      into += i >= 0 ? print(dim + 1, at * type.shape[dim] + i) : isRow ? " ..." : "...";
      ++count;
    });
    return into + "]";
  }

  const ArrayType &type;
  const std::byte *elements;
  const PrintOptions &options;
  bool isElided, isWhole = true, hasExponent = false;
  size_t width = 1;
};

} // namespace

std::string Array::str(const PrintOptions &options, Where where) const {
  const detail::ArrayValue &value = ArrayAccess::require(*this, "str", where).value;
  std::vector<std::byte> copy;
  const std::byte *elements = value.storage->address();
  detail::guarded("str", where, [&] {
    if (value.type->device->isHost())
      return value.storage->synchronize();
    copy.resize(value.type->bytes);
    if (!copy.empty())
      runtime::readStorage(*value.storage, 0, copy, {"str", where});
    elements = copy.data();
  });
  std::string shape;
  for (int64_t size : value.type->shape)
    shape += (shape.empty() ? "" : ", ") + std::to_string(size);
  if (value.type->shape.size() == 1)
    shape += ",";
  return "(" + shape + ") " + detail::nameOf(*value.type->device).str() + " " + detail::longName(value.type->dtype) +
         "\n" + Printer(*value.type, elements, options).text();
}

std::string Array::str(Where where) const { return str(PrintOptions(), where); }

std::ostream &operator<<(std::ostream &os, const Array &x) { return os << x.str(); }

} // namespace sluice
