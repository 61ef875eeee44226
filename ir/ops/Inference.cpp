#include "ir/ops/Inference.h"
#include "ir/ops/model/Init.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace sluice::ir {

std::string printDim(int64_t size) { return ShapedType::isDynamic(size) ? "?" : std::to_string(size); }

bool isSmallEnough(ArrayRef<int64_t> shape) {
  int64_t elements = 1;
  for (int64_t size : shape) {
    if (ShapedType::isDynamic(size))
      continue;
    if (size > kMostElements / elements)
      return false;
    elements *= size;
  }
  return true;
}

LogicalResult addResult(MaybeLocation loc, ArrayRef<int64_t> shape, Type element, SmallVectorImpl<Type> &types) {
  if (llvm::any_of(shape, [](int64_t size) { return size < 1 && !ShapedType::isDynamic(size); }))
    return inferenceFailure(loc, "the result would have an empty dimension: ", printShape(shape));
  if (llvm::count(shape, ShapedType::kDynamic) > 1)
    return inferenceFailure(loc, "the result would have more than one ?: ", printShape(shape));
  if (!isSmallEnough(shape))
    return inferenceFailure(loc, "the result would have more than 2^40 elements: ", printShape(shape));
  if (failed(checkElement(loc, element)))
    return failure();
  types.push_back(RankedTensorType::get(shape, element));
  return success();
}

LogicalResult checkAxes(MaybeLocation loc, ArrayRef<int64_t> axes, ArrayRef<int64_t> shape) {
  llvm::SmallSet<int64_t, 8> seen;
  for (int64_t axis : axes) {
    if (axis < 0 || axis >= int64_t(shape.size()))
      return inferenceFailure(loc, "axis ", axis, " is not a dimension of ", printShape(shape));
    if (!seen.insert(axis).second)
      return inferenceFailure(loc, "axis ", axis, " is given twice");
  }
  return success();
}

LogicalResult checkNumbers(MaybeLocation loc, StringRef name, ArrayRef<int64_t> numbers, size_t count, int64_t least) {
  if (numbers.size() != count)
    return inferenceFailure(loc, name, " needs ", count, " numbers; got ", numbers.size());
  for (int64_t number : numbers)
    if (number < least || number > INT32_MAX)
      return inferenceFailure(loc, name, " needs numbers from ", least, " to 2^31 - 1; got ", number);
  return success();
}

LogicalResult checkRank(MaybeLocation loc, StringRef name, Value value, int64_t rank) {
  if (tensorOf(value).getRank() == rank)
    return success();
  return inferenceFailure(loc, name, " needs ", rank, " dimensions; got ", printShape(shapeOf(value)));
}

LogicalResult checkFloats(MaybeLocation loc, ValueRange operands) {
  for (Value operand : operands) {
    if (!isa<FloatType>(elementOf(operand)))
      return inferenceFailure(loc, "needs floating-point operands; got ", elementOf(operand));
    if (elementOf(operand) != elementOf(operands[0]))
      return inferenceFailure(loc, "element types differ: ", elementOf(operands[0]), " and ", elementOf(operand));
  }
  return success();
}

LogicalResult checkKey(MaybeLocation loc, Value key) {
  if (isKey(tensorOf(key)))
    return success();
  return inferenceFailure(loc, "a key is [2] i32; got ", printShape(shapeOf(key)), " ", elementOf(key));
}

LogicalResult checkProbability(MaybeLocation loc, const APFloat &p) {
  double value = p.convertToDouble();
  return value >= 0 && value <= 1 ? success() : inferenceFailure(loc, "a probability is within [0, 1]; got ", value);
}

LogicalResult checkElement(MaybeLocation loc, Type element) {
  if (succeeded(dtypeOf(element)))
    return success();
#define SLUICE_DTYPE_IN_IR(name, number, type, text, ir, ...) ir,
  static constexpr const char *known[] = {SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_IN_IR)};
#undef SLUICE_DTYPE_IN_IR
  return inferenceFailure(loc, "element type ", element, " is none of ", llvm::join(ArrayRef(known).drop_back(), ", "),
                          " and ", ArrayRef(known).back());
}

ElementCount countElements(ArrayRef<int64_t> shape, ArrayRef<int64_t> axes) {
  ElementCount count;
  for (int64_t axis : axes) {
    if (ShapedType::isDynamic(shape[axis]))
      count.rows = true;
    else
      count.known *= shape[axis];
  }
  return count;
}

ElementCount countElements(ArrayRef<int64_t> shape) {
  return countElements(shape, llvm::to_vector(llvm::seq<int64_t>(0, shape.size())));
}

std::pair<int64_t, int64_t> countFlops(std::initializer_list<ArrayRef<int64_t>> shapes) {
  uint64_t flops = 2;
  bool perRow = false;
  for (ArrayRef<int64_t> shape : shapes) {
    ElementCount count = countElements(shape);
    flops = llvm::SaturatingMultiply(flops, uint64_t(count.known));
    perRow |= count.rows;
  }
  int64_t clamped = int64_t(std::min<uint64_t>(flops, INT64_MAX));
  return perRow ? std::pair<int64_t, int64_t>{0, clamped} : std::pair<int64_t, int64_t>{clamped, 0};
}

} // namespace sluice::ir
