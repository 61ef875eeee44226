#include "tools/compiler/Magnitudes.h"

#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace mlir;
using sluice::ir::HostTensor;

namespace sluice::compiler {

namespace {

/// A value and its magnitude.
struct Sized {
  HostTensor value, magnitude;
};

class MagnitudeWalk {
public:
  explicit MagnitudeWalk(int64_t rows) : rows(rows) {}

  SmallVector<HostTensor> run(Block &body, ArrayRef<HostTensor> operands) {
    for (auto [argument, value] : llvm::zip_equal(body.getArguments(), operands))
      known[argument] = {value, absoluteOf(value)};
    for (Operation &op : body.without_terminator())
      visit(op);
    return llvm::map_to_vector(body.getTerminator()->getOperands(),
                               [&](Value value) { return known[value].magnitude; });
  }

private:
  static HostTensor absoluteOf(HostTensor tensor) {
    for (double &element : tensor.data)
      element = std::abs(element);
    return tensor;
  }

  static bool isFloat(Value value) { return isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType()); }

  void visit(Operation &op) {
    SmallVector<HostTensor> values, magnitudes; // magnitudes stand in for floats alone: classes and conditions stay
    for (Value operand : op.getOperands()) {
      values.push_back(known[operand].value);
      magnitudes.push_back(isFloat(operand) ? known[operand].magnitude : known[operand].value);
    }
    auto reference = cast<ir::ReferenceOp>(op);
    SmallVector<HostTensor> results = reference.evaluate(values, rows), sums;
    if (auto elementwise = dyn_cast<ir::ElementwiseOp>(op))
      sums.push_back(followed(elementwise, values, magnitudes));
    else
      sums = reference.evaluate(magnitudes, rows);
    for (auto [result, value, sum] : llvm::zip_equal(op.getResults(), results, sums))
      known[result] = {value, atLeast(sum, value)};
  }

  /// The sum over the operands of their magnitudes, times how much the result changes with them.
  HostTensor followed(ir::ElementwiseOp op, ArrayRef<HostTensor> values, ArrayRef<HostTensor> magnitudes) {
    HostTensor sum(ir::runtimeShape(op->getResult(0).getType(), rows));
    SmallVector<double> at(values.size());
    for (int64_t i = 0; i < sum.size(); ++i) {
      for (size_t j = 0; j < values.size(); ++j)
        at[j] = values[j].data[size_t(i)];
      for (size_t j = 0; j < values.size(); ++j)
        if (isFloat(op->getOperand(unsigned(j))))
          sum.data[size_t(i)] += changeAround(op, at, j, magnitudes[j].data[size_t(i)]);
    }
    return sum;
  }

  /// How much an element changes while operand `number` does by its magnitude, as far as it is linear.
  static double changeAround(ir::ElementwiseOp op, SmallVector<double> &at, size_t number, double magnitude) {
    constexpr double kStep = 0x1p-20;
    double middle = at[number];
    at[number] = middle + kStep * magnitude;
    double above = op.evaluateElement(at);
    at[number] = middle - kStep * magnitude;
    double below = op.evaluateElement(at);
    at[number] = middle;
    double change = std::abs(above - below) / (2 * kStep);
    return std::isfinite(change) ? change : 0;
  }

  static HostTensor atLeast(HostTensor sum, const HostTensor &value) {
    for (auto [element, least] : llvm::zip_equal(sum.data, value.data)) {
      double size = std::abs(element);
      element = size >= std::abs(least) && std::isfinite(size) ? size : std::abs(least);
    }
    return sum;
  }

  int64_t rows;
  llvm::DenseMap<Value, Sized> known;
};

} // namespace

SmallVector<HostTensor> magnitudesOf(Block &body, ArrayRef<HostTensor> operands, int64_t rows) {
  return MagnitudeWalk(rows).run(body, operands);
}

} // namespace sluice::compiler
