// Functions whose result has a size that depends on elements.
#include "sluice/array/dynamic.h"
#include "runtime/base/Text.h"
#include "sluice/array/ops.h"
#include "tools/arrays/ArrayImpl.h"
#include <bit>

namespace sluice {

using detail::ArrayAccess;
using detail::ArrayType;

/// The first rows of an array, sharing its memory.
static Array firstRows(const Array &x, int64_t rows, std::source_location where) {
  const detail::ArrayValue &value = ArrayAccess::require(x, "slice", where).value;
  std::vector<int64_t> shape = value.type->shape;
  shape[0] = rows;
  return ArrayAccess::make(
      {ArrayType::get(value.type->dtype, std::move(shape), *value.type->device, "slice", where), value.storage});
}

/// The number of true elements.
static int64_t countOf(const Array &mask, std::source_location where) {
  return mask.numel(where) == 0 ? 0 : mask.sum({}, false, where).item<int64_t>(where);
}

/// The flat indices of true elements, ascending, padded with 0 to [capacity], i64.
static Tensor placesOf(const Tensor &mask, int64_t capacity) {
  Tensor flat = mask.reshape({-1}), number = cumsum(flat, 0);
  Tensor target = where(flat, number - 1.0, double(capacity)); // false elements go to an extra last slot
  Tensor place = cumsum(ones_like(number), 0) - 1.0;
  Tensor room = zeros_like(place.to(f64)).slice(0, 0, 1).expand({capacity + 1});
  return scatter_add(room, 0, target, place.to(f64)).slice(0, 0, capacity).to(i64); // f64 is exact up to 2^53
}

static Array placesOf(const Array &mask, int64_t count, std::source_location where) {
  auto capacity = int64_t(std::bit_ceil(uint64_t(count)));
  return detail::apply(
      "nonzero", where, [](const Tensor &its, int64_t room) { return placesOf(its, room); }, mask, capacity);
}

/// The indices [n, dimensions] of flat indices.
static Tensor coordinatesOf(const Tensor &places, const std::vector<int64_t> &shape) {
  std::vector<Tensor> columns;
  double stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    Tensor column = remainder(floor(places.to(f64) / stride), double(shape[i]));
    columns.insert(columns.begin(), column.to(i64).unsqueeze(1));
    stride *= double(shape[i]);
  }
  return cat(columns, 1);
}

Array nonzero(ArrayArg x) {
  const ArrayType &type = *ArrayAccess::require(x.array, "nonzero", x.where).value.type;
  Device device = detail::nameOf(*type.device);
  auto rank = int64_t(type.shape.size());
  if (type.elements == 0)
    return empty({0, rank}, i64, device, x.where);
  Array mask = type.dtype == boolean ? x.array : ne(x, 0.0);
  int64_t count = countOf(mask, x.where);
  if (count == 0 || rank == 0)
    return empty({count, rank}, i64, device, x.where);
  Array all = detail::apply(
      "nonzero", x.where,
      [](const Tensor &places, const std::vector<int64_t> &sizes) { return coordinatesOf(places, sizes); },
      placesOf(mask, count, x.where), type.shape);
  return firstRows(all, count, x.where);
}

Array masked_select(ArrayArg x, const Array &mask) {
  const ArrayType &type = *ArrayAccess::require(x.array, "masked_select", x.where).value.type;
  const ArrayType &of = *ArrayAccess::require(mask, "masked_select", x.where).value.type;
  if (of.dtype != boolean || of.shape != type.shape)
    throw Error(runtime::concat("masked_select: the mask is ", of.shapeText(), " ", to_string(of.dtype),
                                ", but must be bool with the shape of the array, ", type.shapeText()),
                x.where);
  int64_t count = countOf(mask, x.where);
  if (count == 0)
    return empty({0}, type.dtype, detail::nameOf(*type.device), x.where);
  Array places = placesOf(mask, count, x.where), flat = x.array.reshape({-1}, x.where);
  if (is_recording()) // padding in the record would add padded elements to the gradient
    return flat.index_select(0, firstRows(places, count, x.where), x.where);
  return firstRows(flat.index_select(0, places, x.where), count, x.where);
}

Array unique(ArrayArg x) {
  const ArrayType &type = *ArrayAccess::require(x.array, "unique", x.where).value.type;
  if (type.elements == 0)
    return empty({0}, type.dtype, detail::nameOf(*type.device), x.where);
  Array sorted = sort(ArrayArg(x.array.reshape({-1}, x.where), x.where), 0).values;
  Array isFirst = detail::apply(
      "unique", x.where,
      [](const Tensor &its) {
        auto size = its.size(0).size;
        Tensor first = eq(zeros_like(its.slice(0, 0, 1)), 0.0);
        return size == 1 ? first : cat({first, ne(its.slice(0, 1, size), its.slice(0, 0, size - 1))}, 0);
      },
      sorted);
  return masked_select(ArrayArg(sorted, x.where), isFirst);
}

Array Array::operator[](const ArrayArg &mask) const { return masked_select(ArrayArg(*this, mask.where), mask.array); }

} // namespace sluice
