#include "tools/compiler/Magnitudes.h"

#include "tools/compiler/Verify.h"
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

/// How much of its size a value adds to its magnitude, by its type.
using Share = double (*)(Type element);

class MagnitudeWalk {
public:
  /// `ofOperands` is the share of those that come in.
  MagnitudeWalk(int64_t rows, double ofOperands, Share share) : rows(rows), ofOperands(ofOperands), share(share) {}

  SmallVector<HostTensor> run(Block &body, ArrayRef<HostTensor> operands) {
    for (auto [argument, value] : llvm::zip_equal(body.getArguments(), operands))
      known[argument] = {value, atLeast(HostTensor(value.shape), value, ofOperands)};
    for (Operation &op : body.without_terminator())
      visit(op);
    return llvm::map_to_vector(body.getTerminator()->getOperands(),
                               [&](Value value) { return known[value].magnitude; });
  }

private:
  static Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }
  static bool isFloat(Value value) { return isa<FloatType>(elementOf(value)); }

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
    if (ofOperands == 0 && !isa<ir::ElementwiseOp>(op)) // of errors: what an op gives without any is none
      subtract(sums, reference.evaluate(withoutMagnitudes(op, magnitudes), rows));
    for (auto [result, value, sum] : llvm::zip_equal(op.getResults(), results, sums))
      known[result] = {value, atLeast(sum, value, share(elementOf(result)))};
  }

  static SmallVector<HostTensor> withoutMagnitudes(Operation &op, SmallVector<HostTensor> magnitudes) {
    for (auto [operand, tensor] : llvm::zip_equal(op.getOperands(), magnitudes))
      if (isFloat(operand))
        tensor = HostTensor(tensor.shape);
    return magnitudes;
  }

  static void subtract(MutableArrayRef<HostTensor> from, ArrayRef<HostTensor> others) {
    for (auto [tensor, other] : llvm::zip_equal(from, others))
      for (auto [element, less] : llvm::zip_equal(tensor.data, other.data))
        element -= less;
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

  /// A magnitude, and at least this part of the value.
  static HostTensor atLeast(HostTensor sum, const HostTensor &value, double part) {
    for (auto [element, own] : llvm::zip_equal(sum.data, value.data)) {
      double size = std::abs(element), least = part == 0 ? 0 : part * std::abs(own);
      element = size >= least && std::isfinite(size) ? size : least;
    }
    return sum;
  }

  int64_t rows;
  double ofOperands;
  Share share;
  llvm::DenseMap<Value, Sized> known;
};

} // namespace

SmallVector<HostTensor> magnitudesOf(Block &body, ArrayRef<HostTensor> operands, int64_t rows) {
  return MagnitudeWalk(rows, 1, [](Type) { return 1.0; }).run(body, operands);
}

SmallVector<HostTensor> errorsOfHalves(Block &body, ArrayRef<HostTensor> operands, int64_t rows) {
  Share share = [](Type element) { return ir::isHalf(element) ? toleranceOf(element) : 0; };
  return MagnitudeWalk(rows, 0, share).run(body, operands);
}

} // namespace sluice::compiler
