#include "frontend/onnx/operators/Sizes.h"

#include "sluice/ops.h"

#include <algorithm>

namespace sluice::onnx {

/// The largest number of rows of a call.
static constexpr std::int64_t kMostRows = (std::int64_t(1) << 31) - 1;

std::optional<Size> sumOf(const Size &a, const Size &b) {
  Size sum;
  if (__builtin_add_overflow(a.constant, b.constant, &sum.constant) ||
      __builtin_add_overflow(a.rows, b.rows, &sum.rows))
    return std::nullopt;
  return sum;
}

std::optional<Size> differenceOf(const Size &a, const Size &b) {
  Size difference;
  if (__builtin_sub_overflow(a.constant, b.constant, &difference.constant) ||
      __builtin_sub_overflow(a.rows, b.rows, &difference.rows))
    return std::nullopt;
  return difference;
}

std::optional<Size> productOf(const Size &a, const Size &b) {
  if (!a.isKnown() && !b.isKnown())
    return std::nullopt;
  const Size &one = a.isKnown() ? b : a;
  std::int64_t times = a.isKnown() ? a.constant : b.constant;
  Size product;
  if (__builtin_mul_overflow(one.constant, times, &product.constant) ||
      __builtin_mul_overflow(one.rows, times, &product.rows))
    return std::nullopt;
  return product;
}

std::optional<Size> quotientOf(const Size &a, const Size &b) {
  if (b == Size() || (b.isKnown() && b.constant == -1))
    return b == Size() ? std::nullopt : differenceOf({}, a);
  if (b.isKnown())
    return a.constant % b.constant == 0 && a.rows % b.constant == 0
               ? std::optional(Size{a.constant / b.constant, a.rows / b.constant})
               : std::nullopt;
  if (b.rows == -1)
    return std::nullopt;
  std::optional<Size> product = productOf(b, {a.rows / b.rows, 0});
  return product == a && isEqual(b, {}) == false ? std::optional(Size{a.rows / b.rows, 0}) : std::nullopt;
}

/// a - b for a number of rows.
static __int128 distanceFor(std::int64_t rows, const Size &a, const Size &b) {
  return __int128(a.constant) - b.constant + (__int128(a.rows) - b.rows) * rows;
}

std::optional<bool> isLess(const Size &a, const Size &b) {
  bool first = distanceFor(1, a, b) < 0, last = distanceFor(kMostRows, a, b) < 0;
  return first == last ? std::optional(first) : std::nullopt;
}

std::optional<bool> isEqual(const Size &a, const Size &b) {
  __int128 slope = __int128(a.rows) - b.rows, constant = __int128(a.constant) - b.constant;
  if (slope == 0)
    return constant == 0;
  bool isPossible = constant % slope == 0 && -constant / slope >= 1 && -constant / slope <= kMostRows;
  return isPossible ? std::nullopt : std::optional(false);
}

bool isPositive(const Size &size) { return isLess({}, size).value_or(false); }

Size elementsOf(const std::vector<Size> &shape) {
  std::optional<Size> count = Size{1, 0};
  for (const Size &size : shape) {
    count = count ? productOf(*count, size) : count;
    if (!count || std::abs(count->constant) > std::int64_t(1) << 40 || std::abs(count->rows) > std::int64_t(1) << 40)
      Node::fail("a shape has more than 2^40 elements, or twice the batch");
  }
  return *count;
}

std::optional<Dims> knownDims(const std::vector<Size> &shape) {
  Dims dims;
  for (const Size &size : shape) {
    if (!size.isKnown())
      return std::nullopt;
    dims.push_back(size.constant);
  }
  return dims;
}

std::vector<Size> sizesOf(const Dims &dims) {
  std::vector<Size> sizes;
  for (std::int64_t dim : dims)
    sizes.push_back({dim, 0});
  return sizes;
}

std::vector<Size> broadcastShape(const std::vector<Size> &a, const std::vector<Size> &b) {
  constexpr Size one{1, 0};
  std::vector<Size> common(std::max(a.size(), b.size()), one);
  for (std::size_t fromEnd = 1; fromEnd <= common.size(); ++fromEnd) {
    const Size &left = fromEnd <= a.size() ? a[a.size() - fromEnd] : one;
    const Size &right = fromEnd <= b.size() ? b[b.size() - fromEnd] : one;
    if (left != right && left != one && right != one)
      Node::fail("sizes do not broadcast: " + textOf(left) + " and " + textOf(right));
    common[common.size() - fromEnd] = left == one ? right : left;
  }
  return common;
}

Tensor reshapedTo(const Node &node, const Tensor &x, const std::vector<Size> &shape) {
  return reshape(x, node.shapeOf(shape));
}

/// A shape with merged rows as two dimensions.
static std::vector<Size> unmerged(const std::vector<Size> &shape) {
  std::vector<Size> apart;
  for (const Size &size : shape) {
    apart.push_back(size.rows > 1 ? Size{0, 1} : size);
    if (size.rows > 1)
      apart.push_back({size.rows, 0});
  }
  return apart;
}

Tensor expandedTo(const Node &node, const Tensor &x, const std::vector<Size> &shape) {
  std::vector<Size> from = shapeOf(x);
  if (from == shape)
    return x;
  if (std::ranges::none_of(shape, [](const Size &size) { return size.rows > 1; }))
    return expand(x, node.shapeOf(shape));
  from.insert(from.begin(), shape.size() - from.size(), Size{1, 0});
  std::vector<Size> apart;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i].rows > 1 && from[i] == Size{1, 0})
      apart.insert(apart.end(), 2, from[i]);
    else
      apart.push_back(from[i]);
  Tensor wide = expand(reshapedTo(node, x, unmerged(apart)), node.shapeOf(unmerged(shape)));
  return reshapedTo(node, wide, shape);
}

} // namespace sluice::onnx
