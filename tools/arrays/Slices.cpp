// Indexing of arrays: a[{...}] and its assignment.
#include "frontend/graph/Call.h"
#include "runtime/base/Text.h"
#include "sluice/array/ops.h"
#include "tools/arrays/ArrayImpl.h"

namespace sluice {

namespace {

/// Resolved indices: non-negative bounds for each dimension, which are part of the call's key.
struct Selection {
  std::vector<std::int64_t> starts, ends, steps; ///< by dimension
  std::vector<std::int64_t> kept;                ///< the dimensions of the result; -1: a new one

  std::vector<std::int64_t> sizes() const {
    std::vector<std::int64_t> list;
    for (size_t i = 0; i < starts.size(); ++i)
      list.push_back((ends[i] - starts[i] + steps[i] - 1) / steps[i]);
    return list;
  }
  std::vector<std::int64_t> resultShape() const {
    std::vector<std::int64_t> all = sizes(), shape;
    for (std::int64_t dim : kept)
      shape.push_back(dim < 0 ? 1 : all[size_t(dim)]);
    return shape;
  }
};

} // namespace

/// The line of the first index that has one.
static std::source_location lineOf(const std::vector<Index> &indices) {
  for (const Index &index : indices)
    if (index.where.line() != 0)
      return index.where;
  return {};
}

/// The selection of `indices` in an array of this shape. Throws for too many, or a number out of range.
static Selection select(const std::vector<std::int64_t> &shape, const std::vector<Index> &indices,
                        std::source_location where) {
  auto rank = std::int64_t(shape.size());
  std::int64_t named = 0, ellipses = 0;
  for (const Index &index : indices) {
    named += index.kind == Index::Kind::number || index.kind == Index::Kind::slice;
    ellipses += index.kind == Index::Kind::ellipsis;
  }
  if (named > rank || ellipses > 1)
    throw Error(named > rank ? runtime::concat("slice: ", named, " indices for an array of ", rank, " dimensions")
                             : std::string("slice: more than one ellipsis"),
                where);
  Selection selection;
  auto keepAll = [&](std::int64_t count) {
    for (; count > 0; --count) {
      selection.kept.push_back(std::int64_t(selection.starts.size()));
      selection.ends.push_back(shape[selection.starts.size()]);
      selection.starts.push_back(0);
      selection.steps.push_back(1);
    }
  };
  for (const Index &index : indices) {
    if (index.kind == Index::Kind::ellipsis) {
      keepAll(rank - named);
      continue;
    }
    if (index.kind == Index::Kind::newaxis) {
      selection.kept.push_back(-1);
      continue;
    }
    std::int64_t size = shape[selection.starts.size()], dim = std::int64_t(selection.starts.size());
    auto fromEnd = [&](std::int64_t bound) { return bound < 0 ? bound + size : bound; };
    if (index.kind == Index::Kind::number) {
      std::int64_t at = fromEnd(index.start);
      if (at < 0 || at >= size)
        throw Error(runtime::concat("slice: ", index.start, " is out of range for dimension ", dim, " of size ", size),
                    where);
      selection.starts.push_back(at);
      selection.ends.push_back(at + 1);
      selection.steps.push_back(1);
      continue;
    }
    if (index.step < 1)
      throw Error(runtime::concat("slice: the step must be positive: ", index.step), where);
    std::int64_t start = std::clamp<std::int64_t>(fromEnd(index.start), 0, size);
    std::int64_t end = std::clamp<std::int64_t>(fromEnd(index.end), start, size);
    selection.kept.push_back(dim);
    selection.starts.push_back(start);
    selection.ends.push_back(end);
    selection.steps.push_back(index.step);
  }
  if (ellipses == 0)
    keepAll(rank - named);
  return selection;
}

static bool isEmpty(const Selection &selection) {
  for (std::int64_t size : selection.sizes())
    if (size == 0)
      return true;
  return false;
}

static Array selected(const Array &of, const std::vector<Index> &indices, std::source_location where) {
  Selection selection = select(of.shape(where), indices, where);
  if (isEmpty(selection))
    return empty(detail::toShape(selection.resultShape()), of.dtype(where), of.device(where), where);
  return detail::apply(
      "slice", where,
      [](const Tensor &x, const std::vector<std::int64_t> &starts, const std::vector<std::int64_t> &ends,
         const std::vector<std::int64_t> &steps, const std::vector<std::int64_t> &shape) {
        Tensor part = x;
        for (size_t dim = 0; dim < starts.size(); ++dim)
          part = part.slice(std::int64_t(dim), starts[dim], ends[dim], steps[dim]);
        return part.reshape(detail::toShape(shape));
      },
      of, selection.starts, selection.ends, selection.steps, selection.resultShape());
}

/// x with `values`, of the selection's sizes, at the selected elements. A scatter would need indices in memory; this
/// gather and selection is elementwise and fuses.
static Tensor replaced(const Tensor &x, const Tensor &values, const std::vector<std::int64_t> &starts,
                       const std::vector<std::int64_t> &ends, const std::vector<std::int64_t> &steps) {
  detail::Call call("set_slice", {x, values}, SourceLocation());
  Tensor spread = values, mask;
  for (size_t dim = 0; dim < starts.size(); ++dim) {
    std::int64_t size = detail::Call::shape(x)[dim], axis = std::int64_t(dim);
    if (starts[dim] == 0 && ends[dim] == size && steps[dim] == 1)
      continue;
    auto type = mlir::RankedTensorType::get({size}, call.graph.builder.getI32Type());
    Tensor place = call.iota(type, 0, double(-starts[dim]), 1); // relative to the first selected element
    std::int64_t last = ends[dim] - 1 - starts[dim], step = steps[dim];
    Tensor inside = logical_and(ge(place, 0.0), le(place, double(last)));
    if (step > 1)
      inside = logical_and(inside, eq(remainder(place, double(step)), 0.0));
    Tensor source = place.clamp(0.0, double(last));
    if (step > 1)
      source = div(source.to(f64), double(step)).floor().to(i32);
    spread = spread.index_select(axis, source);
    std::vector<Dim> shape(starts.size(), Dim(1));
    shape[dim] = Dim(size);
    inside = inside.reshape(Shape(shape));
    mask = mask ? logical_and(mask, inside) : inside;
  }
  return mask ? where(mask, spread, x) : spread;
}

static void replace(Array &of, const std::vector<Index> &indices, const Array &values, std::source_location where) {
  Selection selection = select(of.shape(where), indices, where);
  if (isEmpty(selection))
    return;
  Array result = detail::apply(
      "set_slice", where,
      [](const Tensor &x, const Tensor &y, const std::vector<std::int64_t> &shape,
         const std::vector<std::int64_t> &sizes, const std::vector<std::int64_t> &starts,
         const std::vector<std::int64_t> &ends, const std::vector<std::int64_t> &steps) {
        return replaced(x, y.expand(detail::toShape(shape)).reshape(detail::toShape(sizes)), starts, ends, steps);
      },
      of, values, selection.resultShape(), selection.sizes(), selection.starts, selection.ends, selection.steps);
  detail::assign({of, where}, result);
}

ArraySlice Array::operator[](std::initializer_list<Index> indices) & { return {*this, std::vector<Index>(indices)}; }
Array Array::operator[](std::initializer_list<Index> list) && { return static_cast<const Array &>(*this)[list]; }
Array Array::operator[](std::initializer_list<Index> list) const & {
  std::vector<Index> indices(list);
  return selected(*this, indices, lineOf(indices));
}

ArraySlice::operator Array() const { return selected(of, indices, lineOf(indices)); }
ArraySlice::operator ArrayArg() const {
  elements = selected(of, indices, lineOf(indices));
  return elements;
}
ArraySlice &ArraySlice::operator=(ArrayArg values) {
  replace(of, indices, values.array, values.where);
  return *this;
}
ArraySlice &ArraySlice::operator=(double value) {
  std::source_location where = lineOf(indices);
  Array number = full({}, value, of.dtype(where), of.device(where), where);
  replace(of, indices, number, where);
  return *this;
}
#define SLUICE_ASSIGNMENT(symbol)                                                                                      \
  ArraySlice &ArraySlice::operator symbol##=(ArrayArg values) {                                                        \
    Array result = ArrayArg(Array(*this), values.where) symbol values;                                                 \
    return *this = ArrayArg(result, values.where);                                                                     \
  }                                                                                                                    \
  ArraySlice &ArraySlice::operator symbol##=(double value) {                                                           \
    std::source_location where = lineOf(indices);                                                                      \
    Array result = ArrayArg(Array(*this), where) symbol value;                                                         \
    return *this = ArrayArg(result, where);                                                                            \
  }
SLUICE_ASSIGNMENT(+)
SLUICE_ASSIGNMENT(-)
SLUICE_ASSIGNMENT(*)
SLUICE_ASSIGNMENT(/)
#undef SLUICE_ASSIGNMENT

} // namespace sluice
