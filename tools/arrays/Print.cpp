// Arrays as text: "(2, 3) gpu(0) float32" and the elements in brackets, a line for each row.
#include "sluice/array.h"
#include "tools/arrays/ArrayImpl.h"
#include <cmath>
#include <cstdio>
#include <ostream>

namespace sluice {

using detail::ArrayAccess;
using detail::ArrayType;

namespace {

/// Prints the elements of an array on the host.
class Printer {
public:
  Printer(const ArrayType &type, const std::byte *elements, const PrintOptions &options)
      : type(type), elements(elements), options(options), isElided(type.elements > options.threshold) {}

  std::string text() {
    chooseFormat(0, 0);
    std::string into;
    print(0, 0, into);
    return into;
  }

private:
  long double numberAt(int64_t at) const { return detail::numberAt(type.dtype, elements, at); }

  int64_t stride(size_t dim) const {
    int64_t elements = 1;
    for (size_t i = dim + 1; i < type.shape.size(); ++i)
      elements *= type.shape[i];
    return elements;
  }

  /// Whether an index of a dimension is printed.
  bool isShown(size_t dim, int64_t index) const {
    int64_t size = type.shape[dim], edge = options.edge_items;
    return !isElided || size <= 2 * edge || index < edge || index >= size - edge;
  }

  template <typename Visit> void forEachShown(size_t dim, Visit visit) const {
    for (int64_t i = 0; i < type.shape[dim]; ++i)
      if (isShown(dim, i))
        visit(i);
      else
        i = type.shape[dim] - options.edge_items - 1;
  }

  /// Finds the format of all shown numbers, and its width: whole numbers have no digits after the point, and very
  /// different ones have exponents.
  void chooseFormat(size_t dim, int64_t at) {
    std::vector<long double> numbers;
    collect(dim, at, numbers);
    long double least = INFINITY, largest = 0;
    for (long double number : numbers)
      if (std::isfinite(number)) {
        isWhole &= number == std::floor(number);
        largest = std::max(largest, std::abs(number));
        if (number != 0)
          least = std::min(least, std::abs(number));
      }
    hasExponent = is_float(type.dtype) && (largest >= 1e8 || (!isWhole && (largest > 1000 * least || least < 1e-4)));
    for (long double number : numbers)
      width = std::max(width, format(number).size());
  }

  void collect(size_t dim, int64_t at, std::vector<long double> &numbers) const {
    if (dim == type.shape.size())
      return numbers.push_back(numberAt(at));
    forEachShown(dim, [&](int64_t i) { collect(dim + 1, at + i * stride(dim), numbers); });
  }

  std::string format(long double number) const {
    char text[64];
    if (type.dtype == DType::boolean)
      return number != 0 ? "True" : "False";
    if (!is_float(type.dtype))
      std::snprintf(text, sizeof text, "%.0Lf", number);
    else if (std::isnan(number))
      return "nan";
    else if (std::isinf(number))
      return number > 0 ? "inf" : "-inf";
    else if (hasExponent)
      std::snprintf(text, sizeof text, "%.*Le", options.precision, number);
    else if (isWhole)
      std::snprintf(text, sizeof text, "%.0Lf.", number);
    else
      std::snprintf(text, sizeof text, "%.*Lf", options.precision, number);
    return text;
  }

  void print(size_t dim, int64_t at, std::string &into) const {
    if (dim == type.shape.size()) {
      std::string text = format(numberAt(at));
      into += std::string(width - text.size(), ' ') + text;
      return;
    }
    bool isRow = dim + 1 == type.shape.size();
    std::string separator =
        isRow ? ", " : "," + std::string(type.shape.size() - dim - 1, '\n') + std::string(dim + 1, ' ');
    into += "[";
    int64_t next = 0;
    forEachShown(dim, [&](int64_t i) {
      if (i > next)
        into += separator + "...";
      if (i > 0)
        into += separator;
      print(dim + 1, at + i * stride(dim), into);
      next = i + 1;
    });
    into += "]";
  }

  const ArrayType &type;
  const std::byte *elements;
  const PrintOptions &options;
  bool isElided, isWhole = true, hasExponent = false;
  size_t width = 0;
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
