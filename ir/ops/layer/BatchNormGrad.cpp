// The gradient of batch normalization, in closed form.
#include "ir/Module.h"
#include "ir/ops/layer/Normalised.h"
#include <cmath>

using namespace mlir;

namespace sluice::ir {

static SmallVector<int64_t> axesButChannels(Value x) {
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, tensorOf(x).getRank()));
  axes.erase(axes.begin() + 1);
  return axes;
}

bool sharesStatistics(Operation *op) {
  auto module = op->getParentOfType<ModuleOp>();
  ModelOp model = module ? findModel(module) : ModelOp();
  return model && model.getSyncBatchNorm() && sharesRows(module);
}

/// Per channel.
static Node meanOfAll(Node x) {
  SmallVector<int64_t> axes = axesButChannels(x);
  Node total = sum(x, axes);
  return total / count(x, axes, total);
}

/// For rows on several replicas: the exchanged value for the variance does not depend on the mean, so both are
/// exchanged together. See "Two sums at once" below.
static Moments getSharedMoments(Node x, Node runningMean) {
  Node shift = castTo(runningMean, x.builder->getF64Type());
  auto meanOfPower = [&](int64_t power) {
    Node total(*x.builder, x.loc, x.builder->create<PowerSumOp>(x.loc, x, shift, power));
    return total / count(castTo(x, elementOf(total)), axesButChannels(x), total);
  };
  Node mean = meanOfPower(1), var = meanOfPower(2) - mean * mean;
  Type element = elementOf(runningMean);
  return {castTo(shift + mean, element), castTo(maximum(var, var.like(0.0)), element)};
}

static Moments getMoments(Node x, const NormOperands &of) {
  auto wide = [&](Value running) { return widened(Node(*x.builder, x.loc, running)); };
  if (!of.training)
    return {wide(of.runningMean), wide(of.runningVar)};
  if (of.isShared && !x.type().hasStaticShape() && !elementOf(x).isF64())
    return getSharedMoments(x, wide(of.runningMean));
  Node mean = meanOfAll(x), centred = x - expand(mean, 1, x.type());
  return {mean, meanOfAll(centred * centred)};
}

Normalised::Normalised(OpBuilder &builder, Location loc, const NormOperands &of)
    : Normalised(widened(Node(builder, loc, of.x)), getMoments(widened(Node(builder, loc, of.x)), of),
                 of.eps.convertToDouble()) {}

Normalised::Normalised(Node x, const Moments &moments, double eps)
    : axes(axesButChannels(x)), x(x), mean(moments.mean), centred(x - overChannels(mean)), var(moments.var),
      inverseDeviation(rsqrt(var + eps)), xHat(centred * overChannels(inverseDeviation)) {}

LogicalResult BatchNormGradOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands, DictionaryAttr,
                                                OpaqueProperties, RegionRange, SmallVectorImpl<Type> &types) {
  if (failed(checkFloats(loc, operands)))
    return failure();
  ArrayRef<int64_t> x = shapeOf(operands[0]), dy = shapeOf(operands[4]);
  if (x.size() < 2 || ShapedType::isDynamic(x[1]) || dy != x)
    return inferenceFailure(loc, "the gradient of a batch normalization needs x and dY [N, C, ...]; got ",
                            printShape(x), " and ", printShape(dy));
  for (Value channels : operands.slice(1, 3))
    if (shapeOf(channels) != x.slice(1, 1))
      return inferenceFailure(loc, "an operand differs from the channels: ", printShape(shapeOf(channels)), " and ",
                              printShape(x));
  Type element = elementOf(operands[0]);
  return failure(failed(addResult(loc, x, element, types)) || failed(addResult(loc, x[1], element, types)) ||
                 failed(addResult(loc, x[1], element, types)));
}

/// As in autograd, through the mean and the variance one after the other. So the reference checks the closed form.
SmallVector<HostTensor> BatchNormGradOp::evaluate(ArrayRef<HostTensor> operands, int64_t) {
  const HostTensor &x = operands[0], &weight = operands[1], &runningMean = operands[2], &runningVar = operands[3],
                   &dY = operands[4];
  size_t inner = 1, channels = weight.data.size();
  for (int64_t size : ArrayRef(x.shape).drop_front(2))
    inner *= size_t(size);
  HostTensor dX(x.shape), dWeight(weight.shape), dBias(weight.shape);
  double eps = getEps().convertToDouble(), count = double(x.data.size()) / double(channels);
  for (size_t c = 0; c < channels; ++c) {
    auto forEach = [&](llvm::function_ref<void(size_t)> body) {
      for (size_t at = 0; at < x.data.size(); ++at)
        if (at / inner % channels == c)
          body(at);
    };
    double mean = runningMean.data[c], var = runningVar.data[c];
    if (getTraining()) {
      mean = var = 0;
      forEach([&](size_t at) { mean += x.data[at] / count; });
      forEach([&](size_t at) { var += (x.data[at] - mean) * (x.data[at] - mean) / count; });
    }
    double deviation = std::sqrt(var + eps), dVar = 0, dMean = 0;
    forEach([&](size_t at) {
      double centred = x.data[at] - mean, dXHat = dY.data[at] * weight.data[c];
      dBias.data[c] += dY.data[at];
      dWeight.data[c] += dY.data[at] * centred / deviation;
      dVar += dXHat * centred * -0.5 / (deviation * deviation * deviation);
      dMean -= dXHat / deviation;
    });
    forEach([&](size_t at) {
      dX.data[at] = dY.data[at] * weight.data[c] / deviation;
      if (getTraining())
        dX.data[at] += dVar * 2 * (x.data[at] - mean) / count + dMean / count;
    });
  }
  return {dX, dWeight, dBias};
}

// With x^ = (x - mean) / deviation: dWeight = sum(dY x^), dBias = sum(dY) and, where mean and variance are the batch's,
// dX = weight / deviation (dY - dBias / n - x^ dWeight / n).
static SmallVector<Value> buildFormulaOf(BatchNormGradOp op, OpBuilder &builder, const Normalised &norm) {
  auto wide = [&](Value operand) { return widened(Node(builder, op.getLoc(), operand)); };
  Node dY = wide(op.getDy()), weight = wide(op.getWeight());
  Type element = elementOf(op.getX());
  Node dBias = sum(dY, norm.axes), dWeight = sum(dY * norm.xHat, norm.axes), dXHat = dY;
  if (op.getTraining()) {
    Node n = count(norm.x, norm.axes, dBias);
    dXHat = dY - norm.overChannels(dBias / n) - norm.xHat * norm.overChannels(dWeight / n);
  }
  Node dX = dXHat * norm.overChannels(weight * norm.inverseDeviation);
  return {castTo(dX, element), castTo(dWeight, element), castTo(dBias, element)};
}

SmallVector<Value> BatchNormGradOp::expand(OpBuilder &builder) {
  return buildFormulaOf(*this, builder, Normalised(builder, getLoc(), NormOperands::of(*this)));
}

// Sums of powers have no gradient, so that the formula uses the moments of one device. Statistics of each replica's own
// rows have no formula, because its sums would be over all rows.
SmallVector<Value> BatchNormGradOp::buildFormula(OpBuilder &builder) {
  NormOperands of = NormOperands::of(*this);
  auto module = (*this)->getParentOfType<ModuleOp>();
  if (getTraining() && !of.isShared && module && sharesRows(module))
    return {};
  of.isShared = false;
  return buildFormulaOf(*this, builder, Normalised(builder, getLoc(), of));
}

bool BatchNormGradOp::isExpandedEarly() { return true; }

/// With the statistics of a replica's own rows: each replica's gradient is of its own computation, and the total is the
/// sum.
RowFlow BatchNormGradOp::getRowFlow() { return RowFlow::Sum; }

} // namespace sluice::ir

// Two sums at once. The variance is that of d = x - s for any common s: E[d^2] - E[d]^2. Replicas and microbatches add
// both sums in one exchange, for any number of them and any number of rows; shares without rows add zeros. In f64 its
// error is about 2^-52 (E[d]^2 + var). The single-device formula sums squared differences from the mean in f32; its
// error is the square of the mean's own rounding, 2^-48 E[x]^2, plus the rounding of its sums, which is no smaller. s
// is the running mean, which approaches the batch's mean. For f64 inputs there is no wider type, so replicas exchange
// the mean first and then the squares. Rejected: merging counts, means and sums of squares in pairs, because it needs
// the values of all replicas side by side and so a program for a known number of them.
