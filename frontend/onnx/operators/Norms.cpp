// Norms, softmax and dropout.
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Rows.h"
#include "sluice/formulas.h"

#include <cmath>

namespace sluice::onnx {

/// f16 and bf16 are normalized in f32.
static DType wideOf(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16 ? f32 : dtype; }

/// An input as a vector that broadcasts along dimension 1 of x. An input of more dimensions is for all of x but its rows.
static Tensor alongChannels(const Tensor &vector, const Tensor &x) {
  if (vector.dim() != 1)
    return vector;
  std::vector<Dim> shape(std::size_t(x.dim() - 1), Dim(1));
  if (shape.empty())
    Node::fail("the input has no channels");
  shape[0] = vector.size(0);
  return vector.reshape(Shape(shape));
}

/// (x - mean) / sqrt(var + epsilon) with the mean and the variance over some dimensions.
struct Standardized {
  Tensor y, mean, inverse;

  Standardized(const Tensor &x, const Axes &axes, double epsilon) {
    mean = x.mean(axes, /*keepdim=*/true);
    Tensor centered = x - mean;
    inverse = rsqrt(square(centered).mean(axes, /*keepdim=*/true) + epsilon);
    y = centered * inverse;
  }
};

static Axes axesFrom(std::int64_t axis, std::int64_t rank) {
  std::vector<std::int64_t> axes;
  for (; axis < rank; ++axis)
    axes.push_back(axis);
  return axes;
}

//===- BatchNormalization -----------------------------------------------------------------------------------------===//

namespace {

/// y = x * scale + shift.
struct Affine {
  Tensor scale, shift;
};

} // namespace

/// A vector that is computed from weights: a parameter with the name of one of them.
static Tensor derivedWeight(Node &node, std::size_t input, ElementType type, const std::vector<double> &numbers) {
  ValuePtr value = valueOf(Known::ofReals(type, node.known(input)->dims(), numbers));
  value->name = node.input(input).name;
  value->isWeight = node.input(input).isWeight;
  return node.tensorOf(value);
}

/// Computes both when the model is imported, so that the graph has one product and one sum per element.
static Affine knownAffine(Node &node, ElementType type, double epsilon) {
  std::vector<double> scale = node.known(1)->reals(), shift = node.known(2)->reals(), mean = node.known(3)->reals(),
                      variance = node.known(4)->reals();
  if (shift.size() != scale.size() || mean.size() != scale.size() || variance.size() != scale.size())
    Node::fail("scale, bias, mean and variance differ in size");
  for (std::size_t i = 0; i < scale.size(); ++i) {
    scale[i] /= std::sqrt(variance[i] + epsilon);
    shift[i] -= mean[i] * scale[i];
  }
  return {derivedWeight(node, 1, type, scale), derivedWeight(node, 2, type, shift)};
}

static Affine affineOf(Node &node, DType dtype, double epsilon) {
  if (node.known(1) && node.known(2) && node.known(3) && node.known(4))
    return knownAffine(node, elementTypeOf(dtype), epsilon);
  Tensor scale = node.weight(1).to(dtype) * rsqrt(node.tensor(4).to(dtype) + epsilon);
  return {scale, node.weight(2).to(dtype) - node.tensor(3).to(dtype) * scale};
}

/// The statistics of this batch. Results: y, both running statistics and, before version 14, those of the batch.
static void normalizeBatch(Node &node, const Tensor &x, double epsilon) {
  std::vector<std::int64_t> axes{0};
  for (std::int64_t axis = 2; axis < x.dim(); ++axis)
    axes.push_back(axis);
  Tensor wide = x.to(wideOf(x.dtype()));
  double momentum = node.real("momentum", 0.9f);
  Standardized standardized(wide, axes, epsilon);
  Tensor mean = wide.mean(axes), variance = square(wide - alongChannels(mean, x)).mean(axes);
  Tensor y = standardized.y * alongChannels(node.weight(1).to(wide.dtype()), x) +
             alongChannels(node.weight(2).to(wide.dtype()), x);
  node.set(0, y.to(x.dtype()));
  for (std::size_t i : {1, 2}) {
    Tensor running = node.tensor(i + 2), batch = (i == 1 ? mean : variance).to(running.dtype());
    node.set(i, momentum * running + (1.0 - momentum) * batch);
    node.set(i + 2, batch);
  }
}

/// PyTorch's BatchNorm: the statistics of the batch in training steps, and the stored ones elsewhere. Training steps move
/// the stored ones, whose variance divides by n - 1, as PyTorch's does. Further results are those of inference.
static void trainStatistics(Node &node, const Tensor &x, double epsilon) {
  Tensor mean = node.state(3, "statistic"), variance = node.state(4, "statistic");
  Tensor weight = node.state(1, "parameter").to(mean.dtype()), bias = node.state(2, "parameter").to(mean.dtype());
  double momentum = 1.0 - node.real("momentum", 0.9f);
  Tensor y = batch_norm(x.to(mean.dtype()), mean, variance, weight, bias, {.eps = epsilon, .momentum = momentum});
  node.set(0, y.to(x.dtype()));
  for (std::size_t i : {1, 3}) {
    node.set(i, mean);
    node.set(i + 1, variance);
  }
}

/// The stored statistics, also in training steps, unless the node is in training mode. Before version 14, a node with
/// more results than one was.
void batchNormalization(Node &node) {
  Tensor x = node.tensor(0);
  double epsilon = node.real("epsilon", 1e-5f);
  if (node.trainsBatchNorm())
    return trainStatistics(node, x, epsilon);
  bool isTraining = node.opset() >= 14 ? node.integer("training_mode", 0) != 0
                                       : node.wants(1) && (node.opset() >= 7 || node.integer("is_test", 0) == 0);
  if (isTraining)
    return normalizeBatch(node, x, epsilon);
  DType wide = wideOf(x.dtype());
  Affine affine = affineOf(node, wide, epsilon);
  node.set(0, (x.to(wide) * alongChannels(affine.scale, x) + alongChannels(affine.shift, x)).to(x.dtype()));
}

//===- norms of a row ---------------------------------------------------------------------------------------------===//

/// Whether a norm over the dimensions of x from `axis` on stays within a row.
static bool isWithinRow(const Tensor &x, std::int64_t axis) {
  for (std::int64_t i = axis; i < x.dim(); ++i)
    if (x.size(i).symbolic())
      return false;
  return true;
}

/// The dimensions from `axis` on.
static Shape trailingShape(const Tensor &x, std::int64_t axis) {
  std::vector<Dim> shape;
  for (; axis < x.dim(); ++axis)
    shape.push_back(x.size(axis));
  return Shape(shape);
}

/// LayerNormalization, or RMSNormalization with `isRms`. A weight of another shape than the row broadcasts.
static Tensor normalizedRow(Node &node, const Tensor &x, std::int64_t axis, double epsilon, bool isRms) {
  Tensor weight = node.weight(1), bias = node.has(2) ? node.weight(2) : Tensor();
  Shape row = trailingShape(x, axis);
  bool fits = weight.shape() == row && (!bool(bias) || bias.shape() == row);
  if (fits && isWithinRow(x, axis) && epsilon > 0)
    return isRms ? rms_norm(x, row, weight, epsilon) : layer_norm(x, row, weight, bias, epsilon);
  Tensor wide = x.to(wideOf(x.dtype()));
  Axes axes = axesFrom(axis, x.dim());
  Tensor y =
      isRms ? wide * rsqrt(square(wide).mean(axes, /*keepdim=*/true) + epsilon) : Standardized(wide, axes, epsilon).y;
  y = y.to(x.dtype()) * weight;
  return bool(bias) ? y + bias : y;
}

void layerNormalization(Node &node) {
  Tensor x = node.tensor(0);
  std::int64_t axis = Node::axisOf(node.integer("axis", -1), x.dim());
  double epsilon = node.real("epsilon", 1e-5f);
  node.set(0, normalizedRow(node, x, axis, epsilon, /*isRms=*/false));
  if (!node.wants(1) && !node.wants(2))
    return;
  std::optional<DType> stash = heldAs(ElementType(node.integer("stash_type", 1)));
  if (!stash || !is_float(*stash))
    Node::fail("stash_type " + std::to_string(node.integer("stash_type", 1)) + " is not supported");
  Standardized standardized(x.to(wideOf(x.dtype())), axesFrom(axis, x.dim()), epsilon);
  node.set(1, standardized.mean.to(*stash));
  node.set(2, standardized.inverse.to(*stash));
}

void rmsNormalization(Node &node) {
  Tensor x = node.tensor(0);
  std::int64_t axis = Node::axisOf(node.integer("axis", -1), x.dim());
  node.set(0, normalizedRow(node, x, axis, node.real("epsilon", 1e-5f), /*isRms=*/true));
}

//===- norms of channels ------------------------------------------------------------------------------------------===//

/// group_norm; images of a batch that is merged with another dimension are channels of a row.
static Tensor normalizedGroups(const Tensor &x, std::int64_t groups, const Tensor &weight, const Tensor &bias,
                               double epsilon) {
  std::int64_t factor = factorOfRows(x);
  if (factor == 1)
    return group_norm(x, groups, weight, bias, epsilon);
  std::vector<Dim> rest{x.size(1) * factor};
  for (std::int64_t i = 2; i < x.dim(); ++i)
    rest.push_back(x.size(i));
  return group_norm(withRows(x, rest), groups * factor, repeat(weight, {factor}), repeat(bias, {factor}), epsilon)
      .reshape(x.shape());
}

void instanceNormalization(Node &node) {
  Tensor x = node.tensor(0);
  if (x.dim() < 3 || x.size(1).symbolic())
    Node::fail("the input " + x.shape().str() + " has no images of channels");
  node.set(0, normalizedGroups(x, x.size(1).size, node.weight(1), node.weight(2), node.real("epsilon", 1e-5f)));
}

/// Before version 21, scale and bias were those of groups.
void groupNormalization(Node &node) {
  Tensor x = node.tensor(0);
  std::int64_t groups = node.integer("num_groups", 0), channels = x.dim() > 1 ? x.size(1).size : 0;
  if (groups < 1 || channels < 1 || channels % groups != 0)
    Node::fail(std::to_string(groups) + " groups do not divide " + std::to_string(channels) + " channels");
  auto ofChannels = [&](const Tensor &vector) {
    return node.opset() < 21 ? vector.unsqueeze(1).expand({groups, channels / groups}).reshape(channels) : vector;
  };
  Tensor weight = ofChannels(node.weight(1)), bias = ofChannels(node.weight(2));
  node.set(0, normalizedGroups(x, groups, weight, bias, node.real("epsilon", 1e-5f)));
}

/// An even size has one more channel after each one than before.
void localResponseNormalization(Node &node) {
  Tensor x = node.tensor(0);
  std::int64_t size = node.integer("size", 0);
  double alpha = node.real("alpha", 1e-4f), beta = node.real("beta", 0.75), bias = node.real("bias", 1.0);
  if (size < 1 || size > std::numeric_limits<std::int32_t>::max())
    Node::fail("size is " + std::to_string(size));
  // A window over an even number of channels has its additional channel before each one in local_response_norm.
  auto turned = [&](const Tensor &y) { return size % 2 == 0 ? flip(y, 1) : y; };
  node.set(0, turned(local_response_norm(turned(x), size, alpha, beta, bias)));
}

//===- other norms ------------------------------------------------------------------------------------------------===//

void lpNormalization(Node &node) {
  Tensor x = node.tensor(0);
  std::int64_t p = node.integer("p", 2);
  if (p != 1 && p != 2)
    Node::fail("p is " + std::to_string(p));
  Tensor length = norm(x, double(p), Node::axisOf(node.integer("axis", -1), x.dim()), /*keepdim=*/true);
  node.set(0, where(length == 0.0, 0.0, x / length));
}

void meanVarianceNormalization(Node &node) {
  Tensor x = node.tensor(0), wide = x.to(wideOf(x.dtype()));
  std::vector<std::int64_t> axes = node.integers("axes", {0, 2, 3});
  for (std::int64_t &axis : axes)
    axis = Node::axisOf(axis, x.dim());
  Tensor centered = wide - wide.mean(axes, /*keepdim=*/true);
  Tensor deviation = sluice::sqrt(square(centered).mean(axes, /*keepdim=*/true));
  node.set(0, (centered / (deviation + 1e-9)).to(x.dtype()));
}

//===- softmax and dropout ----------------------------------------------------------------------------------------===//

/// Along one dimension; before version 13, along all dimensions from `axis` on together.
static void setSoftmax(Node &node, Tensor (*function)(Arg, std::int64_t)) {
  Tensor x = node.tensor(0);
  bool isFlattened = node.opset() < 13;
  std::int64_t axis = Node::axisOf(node.integer("axis", isFlattened ? 1 : -1), x.dim());
  if (!isFlattened || axis == x.dim() - 1)
    return node.set(0, function(x, axis));
  node.set(0, function(x.flatten(axis, -1), axis).reshape(x.shape()));
}

void softmaxOf(Node &node) { setSoftmax(node, softmax); }
void logSoftmaxOf(Node &node) { setSoftmax(node, log_softmax); }

/// The input itself and a mask of ones, unless the node is in training mode, which an input states since version 12:
/// then training steps drop elements, as those of `dropout` do.
void dropoutOf(Node &node) {
  bool isTraining = node.opset() >= 12 && node.has(2) && node.integer(2, "training_mode") != 0;
  double ratio = node.opset() >= 12 && node.has(1) && isTraining ? node.real(1, "the ratio") : 0.5;
  if (isTraining && ratio > 0) {
    if (node.wants(1))
      Node::fail("the mask in training mode is not supported");
    return node.set(0, dropout(node.tensor(0), ratio));
  }
  node.set(0, node.inputValue(0));
  if (node.wants(1)) {
    Tensor mask = full_like(node.tensor(0), 1.0);
    node.set(1, node.opset() < 10 ? mask : mask.to(DType::boolean));
  }
}

} // namespace sluice::onnx
