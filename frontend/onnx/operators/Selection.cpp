// Operators whose results have as many elements as the data says: the data must be known when a model is imported.
#include "frontend/onnx/file/Wire.h"
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Moving.h"
#include "frontend/onnx/operators/Sizes.h"
#include "sluice/ops.h"

#include <algorithm>
#include <compare>

namespace sluice::onnx {

/// An input whose elements must be known, and are few enough to be examined.
static const Known &examined(Node &node, std::size_t input, const char *what) {
  const Known *known = node.known(input);
  if (!known)
    Node::fail(std::string(what) + " must be known when the model is imported: the number of results depends on it");
  if (known->count() > kMostMoved)
    Node::fail(std::string(what) + " has more than 2^22 elements");
  return *known;
}

/// The indices of the elements that are not 0: one column for each.
void nonZeroIndices(Node &node) {
  const Known &x = examined(node, 0, "the operand");
  std::vector<std::int64_t> found;
  for (std::int64_t i = 0; i < x.count(); ++i)
    if (x.real(i) != 0)
      found.push_back(i);
  Dims strides = stridesOf(x.dims()), indices;
  for (std::size_t axis = 0; axis < strides.size(); ++axis)
    for (std::int64_t index : found)
      indices.push_back(index / strides[axis] % x.dims()[axis]);
  node.set(0, Known::ofIntegers(ElementType::i64, {x.rank(), std::int64_t(found.size())}, indices));
}

/// Elements along an axis, or of all dimensions as one, where a condition holds.
void compressed(Node &node) {
  const Known &condition = examined(node, 1, "the condition");
  bool isFlat = !node.hasAttribute("axis");
  std::vector<Size> shape = isFlat ? std::vector{elementsOf(node.shape(0))} : node.shape(0);
  auto axis = std::size_t(isFlat ? 0 : Node::axisOf(node.integer("axis", 0), node.rank(0)));
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < condition.count(); ++i)
    if (condition.integer(i) != 0)
      chosen.push_back(i);
  if (!shape[axis].isKnown() || (!chosen.empty() && chosen.back() >= shape[axis].constant))
    Node::fail("the condition chooses from a dimension of " + textOf(shape[axis]));
  if (!chosen.empty()) {
    Tensor x = reshapedTo(node, node.tensor(0), shape);
    return node.set(0, index_select(x, std::int64_t(axis), node.constant(Known::vector(chosen))), node.type(0));
  }
  shape[axis] = {};
  std::optional<Dims> dims = knownDims(shape);
  if (!dims)
    Node::fail("a tensor without elements is computed with");
  node.set(0, emptyValue(node.type(0), *dims));
}

namespace {

/// The slices of a tensor along an axis, compared element by element.
class Slices {
public:
  /// `axis`: -1: the elements of the tensor.
  Slices(const Known &x, std::int64_t axis) : x(x) {
    Dims strides = stridesOf(x.dims());
    step = axis < 0 ? 1 : strides[std::size_t(axis)];
    size = axis < 0 ? x.count() : x.dims()[std::size_t(axis)];
  }

  std::int64_t count() const { return size; }
  std::weak_ordering order(std::int64_t a, std::int64_t b) const {
    for (std::int64_t outer = 0; outer < x.count(); outer += step * size)
      for (std::int64_t inner = 0; inner < step; ++inner)
        if (std::weak_ordering order = orderOf(outer + a * step + inner, outer + b * step + inner); order != 0)
          return order;
    return std::weak_ordering::equivalent;
  }

private:
  std::weak_ordering orderOf(std::int64_t a, std::int64_t b) const {
    if (!isFloat(x.type()))
      return x.integer(a) <=> x.integer(b);
    double left = x.real(a), right = x.real(b);
    return left < right   ? std::weak_ordering::less
           : left > right ? std::weak_ordering::greater
                          : std::weak_ordering::equivalent;
  }

  const Known &x;
  std::int64_t step, size;
};

/// The different slices: for each the index of its first occurrence and the number of all, and for each slice its group.
struct Groups {
  std::vector<std::int64_t> first, counts, groupOf;
};

} // namespace

/// Groups in ascending order.
static Groups sortedGroups(const Slices &slices) {
  Groups groups;
  std::vector<std::int64_t> order = offsetsOf(slices.count(), 1);
  std::ranges::sort(order, [&](std::int64_t a, std::int64_t b) {
    std::weak_ordering between = slices.order(a, b);
    return between == 0 ? a < b : between < 0;
  });
  groups.groupOf.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || slices.order(order[i - 1], order[i]) != 0) {
      groups.first.push_back(order[i]);
      groups.counts.push_back(0);
    }
    groups.groupOf[std::size_t(order[i])] = std::int64_t(groups.first.size()) - 1;
    ++groups.counts.back();
  }
  return groups;
}

/// The same groups in the order of their first occurrences.
static Groups inOrderOfOccurrence(const Groups &groups) {
  Groups ordered = groups;
  std::ranges::sort(ordered.first);
  std::vector<std::int64_t> places;
  for (std::size_t i = 0; i < groups.first.size(); ++i) {
    places.push_back(std::ranges::lower_bound(ordered.first, groups.first[i]) - ordered.first.begin());
    ordered.counts[std::size_t(places[i])] = groups.counts[i];
  }
  for (std::int64_t &group : ordered.groupOf)
    group = places[std::size_t(group)];
  return ordered;
}

/// The different elements or slices, in ascending order or in the order of their first occurrence; those first
/// occurrences, the result of each element, and their numbers.
void uniqueElements(Node &node) {
  const Known &x = examined(node, 0, "the operand");
  std::int64_t axis = node.hasAttribute("axis") ? Node::axisOf(node.integer("axis", 0), x.rank()) : -1;
  if (x.type() == ElementType::u64)
    Node::fail("values of type uint64 are not supported");
  for (std::int64_t i = 0; i < x.count() && isFloat(x.type()); ++i)
    if (x.real(i) != x.real(i))
      Node::fail("NaN is not supported");
  Groups groups = sortedGroups(Slices(x, axis));
  if (node.integer("sorted", 1) == 0)
    groups = inOrderOfOccurrence(groups);
  Dims dims = axis < 0 ? Dims{x.count()} : x.dims(), strides = stridesOf(dims), to = dims;
  auto along = std::size_t(std::max<std::int64_t>(axis, 0));
  to[along] = std::int64_t(groups.first.size());
  ValuePtr flat = redimensioned(node.input(0), sizesOf(dims));
  node.set(0, moved(*flat, to, [&] {
             Offsets offsets;
             for (std::size_t i = 0; i < dims.size(); ++i)
               offsets.push_back(offsetsOf(i == along ? 0 : dims[i], strides[i]));
             for (std::int64_t index : groups.first)
               offsets[along].push_back(index * strides[along]);
             return offsets;
           }));
  node.set(1, Known::vector(groups.first));
  node.set(2, Known::vector(groups.groupOf));
  node.set(3, Known::vector(groups.counts));
}

} // namespace sluice::onnx
