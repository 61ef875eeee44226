// Batch normalization: PyTorch's semantics, and its expansion into sums. Its gradient is in BatchNormGrad.cpp.
#include "ir/ops/layer/Normalised.h"
#include <cmath>

using namespace mlir;

namespace sluice::ir {

LogicalResult BatchNormOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands, DictionaryAttr,
                                            OpaqueProperties, RegionRange, SmallVectorImpl<Type> &types) {
  if (failed(checkFloats(loc, operands)))
    return failure();
  ArrayRef<int64_t> x = shapeOf(operands[0]);
  if (x.size() < 2 || ShapedType::isDynamic(x[1]))
    return inferenceFailure(loc, "batch normalization needs [N, C, ...] with a known number of channels; got ",
                            printShape(x));
  const char *names[] = {"weight", "bias", "running_mean", "running_var"};
  for (auto [name, operand] : llvm::zip_equal(names, operands.drop_front()))
    if (shapeOf(operand) != x.slice(1, 1))
      return inferenceFailure(loc, name, " differs from the channels: ", printShape(shapeOf(operand)), " and ",
                              printShape(x));
  Type element = elementOf(operands[0]);
  return failure(failed(addResult(loc, x, element, types)) || failed(addResult(loc, x[1], element, types)) ||
                 failed(addResult(loc, x[1], element, types)));
}

/// Calls `body` with every offset in x and its channel.
static void forEachElement(const HostTensor &x, llvm::function_ref<void(size_t, size_t)> body) {
  size_t inner = 1, channels = size_t(x.shape[1]);
  for (int64_t size : ArrayRef(x.shape).drop_front(2))
    inner *= size_t(size);
  for (size_t at = 0; at < x.data.size(); ++at)
    body(at, at / inner % channels);
}

SmallVector<HostTensor> BatchNormOp::evaluate(ArrayRef<HostTensor> operands, int64_t) {
  const HostTensor &x = operands[0], &weight = operands[1], &bias = operands[2];
  HostTensor mean = operands[3], var = operands[4], y(x.shape), newMean = mean, newVar = var;
  double momentum = getMomentum().convertToDouble(), eps = getEps().convertToDouble();
  if (getTraining()) {
    double count = double(x.data.size()) / double(x.shape[1]);
    mean = var = HostTensor(weight.shape);
    forEachElement(x, [&](size_t at, size_t c) { mean.data[c] += x.data[at] / count; });
    forEachElement(x, [&](size_t at, size_t c) {
      var.data[c] += (x.data[at] - mean.data[c]) * (x.data[at] - mean.data[c]) / count;
    });
    for (size_t c = 0; c < mean.data.size(); ++c) {
      newMean.data[c] += momentum * (mean.data[c] - newMean.data[c]);
      if (count > 1)
        newVar.data[c] += momentum * (var.data[c] * (count / (count - 1)) - newVar.data[c]);
    }
  }
  forEachElement(x, [&](size_t at, size_t c) {
    y.data[at] = (x.data[at] - mean.data[c]) / std::sqrt(var.data[c] + eps) * weight.data[c] + bias.data[c];
  });
  return {y, newMean, newVar};
}

SmallVector<Value> BatchNormOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  if (!dResults[0])
    return SmallVector<Value>(5);
  auto gradient = builder.create<BatchNormGradOp>(getLoc(), getX(), getWeight(), getRunningMean(), getRunningVar(),
                                                  dResults[0], getEps(), getTraining());
  return {gradient.getDx(), gradient.getDweight(), gradient.getDbias(), Value(), Value()};
}

SmallVector<Sample> BatchNormOp::samples() {
  auto sample = [](const char *attributes, const std::string &x) {
    std::string channels = "tensor<3xf64>";
    return Sample{std::string("\"sluice.batch_norm\"(%0, %1, %2, %3, %4) {") + attributes + "} : (" + x + ", " +
                      channels + ", " + channels + ", " + channels + ", " + channels + ") -> (" + x + ", " + channels +
                      ", " + channels + ")",
                  {{-2, 2}, {0.5, 1.5}, {-1, 1}, {-1, 1}, {0.5, 2}},
                  {3, 4},
                  {1, 2}};
  };
  return {sample("eps = 1.0e-3 : f64, training", "tensor<?x3x2x2xf64>"), sample("training", "tensor<?x3xf64>"),
          sample("", "tensor<2x3x2xf64>")};
}

SmallVector<Value> BatchNormOp::expand(OpBuilder &builder) {
  Normalised norm(builder, getLoc(), NormOperands::of(*this));
  auto wide = [&](Value operand) { return widened(Node(builder, getLoc(), operand)); };
  auto stored = [&](Node result) -> Value { return castTo(result, elementOf(getX())); };
  Node weight = wide(getWeight()), bias = wide(getBias());
  if (!getTraining()) {
    Node scale = norm.inverseDeviation * weight; // depends only on weights: computed once, not in every call
    Node y = norm.centred * norm.overChannels(scale) + norm.overChannels(bias);
    return {stored(y), getRunningMean(), getRunningVar()};
  }
  Node y = norm.xHat * norm.overChannels(weight) + norm.overChannels(bias);
  Node runningMean = wide(getRunningMean()), runningVar = wide(getRunningVar());
  Node n = count(norm.x, norm.axes, norm.var), others = n - 1.0;
  Node unbiased = norm.var * (n / where(others > 1.0, others, 1.0));
  double momentum = getMomentum().convertToDouble();
  Node newVar = where(n > 1.0, runningVar + momentum * (unbiased - runningVar), runningVar);
  return {stored(y), stored(runningMean + momentum * (norm.mean - runningMean)), stored(newVar)};
}

bool BatchNormOp::isExpandedEarly() { return true; }

/// The running statistics of the first replica are kept.
RowFlow BatchNormOp::getRowFlow() { return RowFlow::First; }

void BatchNormOp::setTraining() { setTraining(true); }

/// The number of values per channel in each row; in total if the shape has no rows.
static ElementCount valuesPerChannel(BatchNormOp op) {
  SmallVector<int64_t> others = llvm::to_vector(llvm::seq<int64_t>(0, tensorOf(op.getX()).getRank()));
  others.erase(others.begin() + 1);
  return countElements(shapeOf(op.getX()), others);
}

LogicalResult BatchNormOp::checkTraining(int64_t rows) {
  ElementCount values = valuesPerChannel(*this);
  if (!getTraining() || values.known * (values.rows ? rows : 1) > 1)
    return success();
  InFlightDiagnostic error = mlir::emitError(getLoc());
  error << "cannot train batch normalization of " << printShape(shapeOf(getX()));
  if (values.rows)
    error << " with up to " << rows << (rows == 1 ? " row" : " rows");
  return error << ": each channel has one value, which has no variance";
}

int64_t BatchNormOp::getLeastTrainingRows() {
  ElementCount values = valuesPerChannel(*this);
  return values.rows && values.known == 1 ? 2 : 1;
}

} // namespace sluice::ir
