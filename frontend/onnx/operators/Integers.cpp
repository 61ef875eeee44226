// Elementwise operators of integers that are known and of sizes, when a model is imported: exact for all of i64, and for
// sizes that depend on the number of rows.
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Moving.h"
#include "frontend/onnx/operators/Sizes.h"

#include <algorithm>
#include <limits>

namespace sluice::onnx {

namespace {

/// Integers or bools, each of which may depend on the number of rows.
struct Numbers {
  std::vector<Size> shape; ///< known
  std::vector<Size> elements;
};

} // namespace

/// The elements of an operand; nothing for floats, for u64, which i64 does not hold, and if there are too many.
static std::optional<Numbers> numbersOf(const Node &node, std::size_t input) {
  const Value &value = node.input(input);
  if (const Sizes *sizes = value.sizes())
    return Numbers{value.shape(), sizes->elements};
  const Known &known = *value.known();
  bool isHeld = isInteger(known.type()) || known.type() == ElementType::boolean;
  if (!isHeld || known.type() == ElementType::u64 || known.count() > kMostMoved)
    return std::nullopt;
  return Numbers{value.shape(), sizesOf(known.integers())};
}

/// Sets the result; false if the graph must compute it.
static bool setNumbers(Node &node, ElementType type, const Numbers &numbers) {
  if (std::optional<Dims> known = knownDims(numbers.elements)) {
    node.set(0, Known::ofIntegers(type, *knownDims(numbers.shape), *known));
    return true;
  }
  if (numbers.shape.size() > 1)
    return false;
  node.set(0, Sizes{.isScalar = numbers.shape.empty(), .elements = numbers.elements});
  return true;
}

/// Before version 7, the second operand does not broadcast by the rules of today.
static bool broadcastsByRule(const Node &node) {
  return node.opset() >= 7 || node.shape(0) == node.shape(1) || node.rank(1) == 0;
}

/// The index of an element of an operand that broadcasts to a shape.
static std::size_t sourceOf(std::size_t index, const std::vector<Size> &to, const std::vector<Size> &from) {
  std::size_t source = 0, stride = 1;
  for (std::size_t fromEnd = 1; fromEnd <= from.size(); ++fromEnd) {
    auto size = std::size_t(to[to.size() - fromEnd].constant), own = std::size_t(from[from.size() - fromEnd].constant);
    source += own == 1 ? 0 : index % size * stride;
    index /= size;
    stride *= own;
  }
  return source;
}

/// Computes each element of the common shape of all operands; `compute` receives one element of each.
template <class Compute>
static bool computeEach(Node &node, ElementType type, const std::vector<Numbers> &operands, Compute compute) {
  Numbers result;
  for (const Numbers &operand : operands)
    result.shape = broadcastShape(result.shape, operand.shape);
  std::int64_t count = elementsOf(result.shape).constant;
  if (count > kMostMoved)
    return false;
  std::vector<Size> elements(operands.size());
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < operands.size(); ++k)
      elements[k] = operands[k].elements[sourceOf(std::size_t(i), result.shape, operands[k].shape)];
    std::optional<Size> element = compute(elements);
    if (!element)
      return false;
    result.elements.push_back(*element);
  }
  return setNumbers(node, type, result);
}

/// A result without elements, of operands of any type.
static bool isEmptyResult(Node &node, ElementType type) {
  std::vector<Size> shape;
  for (std::size_t i = 0; i < node.inputs(); ++i)
    shape = broadcastShape(shape, node.shape(i));
  std::optional<Dims> dims = knownDims(shape);
  if (!dims || countOf(*dims) != 0)
    return false;
  node.set(0, emptyValue(type, *dims));
  return true;
}

bool emptyOperand(Node &node) { return isEmptyResult(node, node.type(0)); }

static std::optional<std::vector<Numbers>> allNumbers(Node &node) {
  std::vector<Numbers> operands;
  for (std::size_t i = 0; i < node.inputs(); ++i) {
    std::optional<Numbers> numbers = numbersOf(node, i);
    if (!numbers)
      return std::nullopt;
    operands.push_back(std::move(*numbers));
  }
  return operands;
}

template <class Combine> static bool combineNumbers(Node &node, ElementType type, Combine combine) {
  if ((node.inputs() == 2 && !broadcastsByRule(node)) || node.inputs() == 0)
    return false;
  if (isEmptyResult(node, type))
    return true;
  std::optional<std::vector<Numbers>> operands = allNumbers(node);
  return operands && computeEach(node, type, *operands, [&](const std::vector<Size> &elements) {
           std::optional<Size> result = elements.front();
           for (std::size_t i = 1; i < elements.size() && result; ++i)
             result = combine(*result, elements[i]);
           return result;
         });
}

//===- arithmetic -------------------------------------------------------------------------------------------------===//

/// A result of numbers that are known, which wraps around.
template <class Wrap, class Exact>
static std::optional<Size> wrappedOr(const Size &a, const Size &b, Wrap wrap, Exact exact) {
  if (!a.isKnown() || !b.isKnown())
    return exact(a, b);
  return Size{std::int64_t(wrap(std::uint64_t(a.constant), std::uint64_t(b.constant))), 0};
}

static std::optional<Size> truncatedQuotient(const Size &a, const Size &b) {
  if (!a.isKnown() || !b.isKnown() || b.constant == 0)
    return quotientOf(a, b);
  return Size{b.constant == -1 ? std::int64_t(0 - std::uint64_t(a.constant)) : a.constant / b.constant, 0};
}

/// The remainder, with the sign of the divisor, or of the dividend with fmod.
static std::optional<Size> remainderOf(const Size &a, const Size &b, bool isFmod) {
  if (!b.isKnown() || b.constant == 0 || a.rows % b.constant != 0 || (isFmod && !a.isKnown()))
    return std::nullopt;
  std::int64_t rest = b.constant == -1 ? 0 : a.constant % b.constant;
  return Size{!isFmod && rest != 0 && (rest < 0) != (b.constant < 0) ? rest + b.constant : rest, 0};
}

bool addNumbers(Node &node) {
  return combineNumbers(node, node.type(0), [](const Size &a, const Size &b) {
    return wrappedOr(a, b, std::plus<std::uint64_t>(), sumOf);
  });
}
bool subtractNumbers(Node &node) {
  return combineNumbers(node, node.type(0), [](const Size &a, const Size &b) {
    return wrappedOr(a, b, std::minus<std::uint64_t>(), differenceOf);
  });
}
bool multiplyNumbers(Node &node) {
  return combineNumbers(node, node.type(0), [](const Size &a, const Size &b) {
    return wrappedOr(a, b, std::multiplies<std::uint64_t>(), productOf);
  });
}
bool divideNumbers(Node &node) { return combineNumbers(node, node.type(0), truncatedQuotient); }
bool moduloNumbers(Node &node) {
  bool isFmod = node.integer("fmod", 0) != 0;
  return combineNumbers(node, node.type(0), [&](const Size &a, const Size &b) { return remainderOf(a, b, isFmod); });
}
bool negateNumbers(Node &node) {
  std::optional<std::vector<Numbers>> operands = allNumbers(node);
  return operands && computeEach(node, node.type(0), *operands, [](const std::vector<Size> &elements) {
           return wrappedOr({}, elements.front(), std::minus<std::uint64_t>(), differenceOf);
         });
}

static std::optional<Size> lesserOf(const Size &a, const Size &b) {
  std::optional<bool> isFirst = isLess(a, b), isSecond = isLess(b, a);
  return isFirst == true || isSecond == false   ? std::optional(a)
         : isSecond == true || isFirst == false ? std::optional(b)
                                                : std::nullopt;
}
static std::optional<Size> greaterOf(const Size &a, const Size &b) {
  std::optional<Size> lesser = lesserOf(a, b);
  return lesser ? std::optional(*lesser == a ? b : a) : std::nullopt;
}
bool minimumOfNumbers(Node &node) { return combineNumbers(node, node.type(0), lesserOf); }
bool maximumOfNumbers(Node &node) { return combineNumbers(node, node.type(0), greaterOf); }

//===- comparisons ------------------------------------------------------------------------------------------------===//

static std::optional<Size> truthOf(std::optional<bool> answer, bool expected = true) {
  return answer ? std::optional(Size{*answer == expected, 0}) : std::nullopt;
}
#define COMPARING(evaluator, answer)                                                                                   \
  bool evaluator(Node &node) {                                                                                         \
    return combineNumbers(node, ElementType::boolean, [](const Size &a, const Size &b) { return answer; });            \
  }
COMPARING(equalNumbers, truthOf(isEqual(a, b)))
COMPARING(lessNumbers, truthOf(isLess(a, b)))
COMPARING(greaterNumbers, truthOf(isLess(b, a)))
COMPARING(lessOrEqualNumbers, truthOf(isLess(b, a), false))
COMPARING(greaterOrEqualNumbers, truthOf(isLess(a, b), false))
#undef COMPARING

bool selectNumbers(Node &node) {
  if (isEmptyResult(node, node.type(1)))
    return true;
  std::optional<std::vector<Numbers>> operands = allNumbers(node);
  return operands && computeEach(node, node.type(1), *operands, [](const std::vector<Size> &elements) {
           return std::optional(elements[0] != Size() ? elements[1] : elements[2]);
         });
}

/// The product of all sizes, as of a shape.
bool multiplyAllNumbers(Node &node) {
  std::optional<std::vector<Size>> sizes = node.sizes(0);
  bool hasAxes =
      node.opset() < 18 ? node.hasAttribute("axes") : node.has(1) && node.input(1).shape() != std::vector<Size>{{}};
  bool isEverything = !hasAxes || node.rank(0) == 1;
  if (!node.input(0).sizes() || !sizes || !isEverything || (!hasAxes && node.integer("noop_with_empty_axes", 0) != 0))
    return false;
  bool isScalar = node.integer("keepdims", 1) == 0 || node.rank(0) == 0;
  node.set(0, Sizes{.isScalar = isScalar, .elements = {elementsOf(*sizes)}});
  return true;
}

} // namespace sluice::onnx
