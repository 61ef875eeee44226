#include "tools/compiler/Magnitudes.h"

#include "ir/ops/layer/AttentionReference.h"
#include "tools/compiler/Deviation.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <random>

using namespace mlir;
using sluice::ir::HostTensor;

namespace sluice::compiler {

static Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }
static bool isFloat(Value value) { return isa<FloatType>(elementOf(value)); }

namespace {

/// A value and its magnitude.
struct Sized {
  HostTensor value, magnitude;
};

/// Parameters of a walk.
struct Measure {
  double ofOperands;                 ///< the part of an operand of the body that its magnitude includes
  double (*ofResults)(Type element); ///< the same for an op's result, by its element type
  double step;                       ///< the part of a magnitude by which values are perturbed
  bool perturbs;                     ///< whether ops that are not elementwise are perturbed
};

class MagnitudeWalk {
public:
  MagnitudeWalk(int64_t rows, const Measure &measure) : rows(rows), measure(measure) {}

  SmallVector<HostTensor> run(Block &body, ArrayRef<HostTensor> operands) {
    for (auto [argument, value] : llvm::zip_equal(body.getArguments(), operands))
      known[argument] = {value, sized(argument, HostTensor(value.shape), value, measure.ofOperands)};
    for (Operation &op : body.without_terminator())
      visit(op);
    return llvm::map_to_vector(body.getTerminator()->getOperands(),
                               [&](Value value) { return known[value].magnitude; });
  }

private:
  void visit(Operation &op) {
    SmallVector<HostTensor> values, magnitudes;
    for (Value operand : op.getOperands()) {
      values.push_back(known[operand].value);
      magnitudes.push_back(known[operand].magnitude);
    }
    SmallVector<HostTensor> results = cast<ir::ReferenceOp>(op).evaluate(values, rows), sums;
    if (auto elementwise = dyn_cast<ir::ElementwiseOp>(op))
      sums.push_back(followed(elementwise, values, magnitudes));
    else
      sums = summed(op, values, magnitudes, results);
    for (auto [result, value, sum] : llvm::zip_equal(op.getResults(), results, sums))
      known[result] = {value, sized(result, sum, value, measure.ofResults(elementOf(result)))};
  }

  //===- elementwise ops ------------------------------------------------------------------------------------------===//

  /// The sum of the changes of the result when each operand changes alone, or its change when all change together if
  /// that is larger. A product of two sums that cancel depends on neither alone.
  HostTensor followed(ir::ElementwiseOp op, ArrayRef<HostTensor> values, ArrayRef<HostTensor> magnitudes) {
    HostTensor sum(ir::runtimeShape(op->getResult(0).getType(), rows));
    SmallVector<double> at(values.size()), sizes(values.size()), alone(values.size());
    for (int64_t i = 0; i < sum.size(); ++i) {
      for (size_t j = 0; j < values.size(); ++j) {
        at[j] = values[j].data[size_t(i)];
        sizes[j] = magnitudes[j].data[size_t(i)];
      }
      double result = op.evaluateElement(at), &element = sum.data[size_t(i)];
      for (size_t j = 0; j < values.size(); ++j) {
        alone[j] = sizes[j];
        element += changeAround(op, at, alone, result);
        alone[j] = 0;
      }
      element = std::max(element, changeAround(op, at, sizes, result));
    }
    return sum;
  }

  /// The largest change of an element when its operands move by these sizes in either direction. A difference between
  /// both directions would be zero for a square around 0.
  double changeAround(ir::ElementwiseOp op, ArrayRef<double> at, ArrayRef<double> sizes, double result) const {
    double most = 0;
    for (double towards : {1.0, -1.0}) {
      SmallVector<double> there;
      for (auto [operand, value, size] : llvm::zip_equal(op->getOperands(), at, sizes))
        there.push_back(size == 0 ? value : moved(operand, value, towards * size));
      most = std::max(most, change(op.evaluateElement(there), result));
    }
    return most;
  }

  /// The value moved by the step's part of its magnitude. Integers move by whole numbers; booleans stay 0 or 1, and
  /// infinities, such as those of a mask, stay.
  double moved(Value operand, double value, double magnitude) const {
    if (std::isinf(value))
      return value;
    double by = measure.step * magnitude;
    if (!isFloat(operand))
      by = by == 0 ? 0 : std::copysign(std::ceil(std::abs(by)), by);
    return elementOf(operand).isInteger(1) ? std::clamp(value + by, 0.0, 1.0) : value + by;
  }

  /// The change relative to the step; 0 if it is not finite.
  double change(double there, double here) const {
    double size = std::abs(there - here) / measure.step;
    return std::isfinite(size) ? size : 0;
  }

  //===- other ops ------------------------------------------------------------------------------------------------===//

  SmallVector<HostTensor> summed(Operation &op, ArrayRef<HostTensor> values, ArrayRef<HostTensor> magnitudes,
                                 ArrayRef<HostTensor> results) {
    auto reference = cast<ir::ReferenceOp>(op);
    SmallVector<HostTensor> sums = reference.evaluate(withFloats(op, values, magnitudes), rows);
    if (measure.ofOperands == 0) // results of exact operands have no error
      subtract(sums, reference.evaluate(withFloats(op, values, {}), rows));
    for (auto [result, sum] : llvm::zip_equal(op.getResults(), sums))
      for (double &element : sum.data)
        element = isFloat(result) && std::isfinite(element) ? element : 0;
    if (measure.perturbs)
      perturb(op, values, magnitudes, results, sums);
    return sums;
  }

  /// The values with magnitudes, or zeros, in place of floats. Classes and conditions do not change, and infinities
  /// stay: masked elements are no terms of a sum.
  static SmallVector<HostTensor> withFloats(Operation &op, ArrayRef<HostTensor> values,
                                            ArrayRef<HostTensor> magnitudes) {
    SmallVector<HostTensor> all(values);
    for (auto [number, operand] : llvm::enumerate(op.getOperands()))
      if (isFloat(operand))
        for (auto [i, element] : llvm::enumerate(all[number].data))
          if (!std::isinf(element))
            element = magnitudes.empty() ? 0 : magnitudes[number].data[i];
    return all;
  }

  static void subtract(MutableArrayRef<HostTensor> from, ArrayRef<HostTensor> others) {
    for (auto [tensor, other] : llvm::zip_equal(from, others))
      for (auto [element, less] : llvm::zip_equal(tensor.data, other.data))
        element -= less;
  }

  /// Raises `sums` to the changes of the results when each operand element moves in a random direction. Changes that
  /// cancel for some directions do not cancel for others.
  void perturb(Operation &op, ArrayRef<HostTensor> values, ArrayRef<HostTensor> magnitudes,
               ArrayRef<HostTensor> results, MutableArrayRef<HostTensor> sums) {
    constexpr int kDirections = 6;
    for (int number = 0; number < kDirections; ++number) {
      SmallVector<HostTensor> there(values);
      for (auto [operand, value, magnitude] : llvm::zip_equal(op.getOperands(), there, magnitudes))
        for (auto [element, its] : llvm::zip_equal(value.data, magnitude.data))
          element = moved(operand, element, random() % 2 != 0 ? its : -its);
      for (auto [sum, result, other] : llvm::zip_equal(sums, results, cast<ir::ReferenceOp>(op).evaluate(there, rows)))
        for (auto [element, here, its] : llvm::zip_equal(sum.data, result.data, other.data))
          if (double size = change(its, here); !(std::abs(element) >= size))
            element = size;
    }
  }

  /// The magnitude; for a float, at least `part` of the value.
  static HostTensor sized(Value result, HostTensor sum, const HostTensor &value, double part) {
    for (auto [element, own] : llvm::zip_equal(sum.data, value.data)) {
      double size = std::abs(element), least = part == 0 || !isFloat(result) ? 0 : part * std::abs(own);
      element = size >= least && std::isfinite(size) ? size : least;
    }
    return sum;
  }

  int64_t rows;
  Measure measure;
  std::minstd_rand random; // every walk draws the same directions
  llvm::DenseMap<Value, Sized> known;
};

} // namespace

SmallVector<HostTensor> magnitudesOf(Block &body, ArrayRef<HostTensor> operands, int64_t rows, bool perturbs) {
  return MagnitudeWalk(rows,
                       {.ofOperands = 1, .ofResults = [](Type) { return 1.0; }, .step = 0x1p-20, .perturbs = perturbs})
      .run(body, operands);
}

SmallVector<HostTensor> errorsOfHalves(Block &body, ArrayRef<HostTensor> operands, int64_t rows) {
  auto ofHalves = [](Type element) { return ir::isHalf(element) ? toleranceOf(element) : 0; };
  return MagnitudeWalk(rows, {.ofOperands = 0, .ofResults = ofHalves, .step = 1, .perturbs = true}).run(body, operands);
}

using Evaluate =
    llvm::function_ref<SmallVector<HostTensor>(Operation *op, ArrayRef<HostTensor> operands, int64_t rows)>;

static SmallVector<HostTensor> roundedResults(Block &body, ArrayRef<HostTensor> operands, int64_t rows,
                                              Evaluate evaluate) {
  DenseMap<Value, HostTensor> known;
  for (auto [argument, value] : llvm::zip_equal(body.getArguments(), operands))
    known[argument] = value;
  for (Operation &op : body.without_terminator()) {
    auto values = llvm::map_to_vector(op.getOperands(), [&](Value operand) { return known[operand]; });
    for (auto [result, value] : llvm::zip_equal(op.getResults(), evaluate(&op, values, rows))) {
      for (double &number : value.data)
        number = ir::roundTo(elementOf(result), number);
      known[result] = std::move(value);
    }
  }
  return llvm::map_to_vector(body.getTerminator()->getOperands(), [&](Value value) { return known[value]; });
}

SmallVector<HostTensor> roundedResultsOf(Block &body, ArrayRef<HostTensor> operands, int64_t rows) {
  return roundedResults(body, operands, rows, [](Operation *op, ArrayRef<HostTensor> values, int64_t rows) {
    return cast<ir::ReferenceOp>(op).evaluate(values, rows);
  });
}

SmallVector<HostTensor> hiddenResultsOf(Block &body, ArrayRef<HostTensor> operands, int64_t rows) {
  return roundedResults(body, operands, rows, ir::evaluateHiddenKeys);
}

} // namespace sluice::compiler
