// LayerNorm of several nodes: d = x - mean(x), y = d / sqrt(mean(d^2) + eps) * weight + bias.
#include "frontend/onnx/recognize/Recognize.h"
#include "sluice/ops.h"

#include <numeric>

namespace sluice::onnx {

namespace {

/// The parts of a normalization.
struct Normalized {
  ValuePtr x;
  std::int64_t dims; ///< the number of last dimensions
  double eps;
};

} // namespace

/// The number of last dimensions over which a ReduceMean takes means and which it keeps with size 1; 0 for others.
static std::int64_t lastDims(const Node &mean) {
  if (mean.integer("keepdims", 1) != 1)
    return 0;
  std::vector<std::int64_t> axes = mean.integers("axes");
  if (mean.opset() >= 18 && mean.known(1))
    axes = mean.known(1)->integers();
  std::int64_t rank = mean.rank(0);
  for (std::int64_t &axis : axes)
    axis += axis < 0 ? rank : 0;
  std::sort(axes.begin(), axes.end());
  std::vector<std::int64_t> last(axes.size());
  std::iota(last.begin(), last.end(), rank - std::int64_t(axes.size()));
  return axes == last ? std::int64_t(axes.size()) : 0;
}

/// Whether an input is the square of a value.
static bool isSquareOf(const Node &reader, std::size_t input, const ValuePtr &value) {
  if (auto power = reader.producer(input, "Pow"))
    return power->inputValue(0) == value && numberAt(*power, 1) == 2.0;
  auto product = reader.producer(input, "Mul");
  return product && product->inputValue(0) == value && product->inputValue(1) == value;
}

/// The parts of (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps), a Div.
static std::optional<Normalized> normalizedBy(const Node &div) {
  auto difference = div.producer(0, "Sub");
  auto root = div.producer(1, "Sqrt");
  auto mean = difference ? difference->producer(1, "ReduceMean") : std::nullopt;
  auto sum = root ? root->producer(0, "Add") : std::nullopt;
  if (!mean || !sum || mean->inputValue(0) != difference->inputValue(0) || !isFloat(div.type(0)))
    return std::nullopt;
  for (std::size_t variance : {0, 1}) {
    std::optional<double> eps = numberAt(*sum, 1 - variance);
    auto second = sum->producer(variance, "ReduceMean");
    std::int64_t dims = second ? lastDims(*second) : 0;
    bool fits = dims > 0 && dims == lastDims(*mean) && isSquareOf(*second, 0, div.inputValue(0));
    if (eps && *eps > 0 && fits)
      return Normalized{difference->inputValue(0), dims, *eps};
  }
  return std::nullopt;
}

static std::optional<Shape> normalizedShape(const Normalized &parts) {
  std::vector<Size> shape = parts.x->shape();
  std::vector<Dim> last;
  for (std::size_t i = shape.size() - std::size_t(parts.dims); i < shape.size(); ++i) {
    if (!shape[i].isKnown())
      return std::nullopt;
    last.emplace_back(shape[i].constant);
  }
  return Shape(std::move(last));
}

bool recognizeLayerNorm(Node &node) {
  std::optional<Normalized> parts = normalizedBy(node);
  std::optional<Shape> shape = parts ? normalizedShape(*parts) : std::nullopt;
  if (!shape)
    return false;
  node.set(0, layer_norm(node.tensorOf(parts->x), *shape, {}, {}, parts->eps));
  return true;
}

/// Whether an input is a known tensor of this shape.
static bool isOfShape(const Node &node, std::size_t input, const Shape &shape) {
  const Known *known = node.known(input);
  if (!known || !isFloat(known->type()) || known->rank() != std::int64_t(shape.size()))
    return false;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (known->dims()[i] != shape[i].size)
      return false;
  return true;
}

bool recognizeAffineLayerNorm(Node &node) {
  for (std::size_t bias : {1, 0}) {
    auto scaled = node.producer(1 - bias, "Mul");
    for (std::size_t weight : {1, 0}) {
      auto div = scaled ? scaled->producer(1 - weight, "Div") : std::nullopt;
      std::optional<Normalized> parts = div ? normalizedBy(*div) : std::nullopt;
      std::optional<Shape> shape = parts ? normalizedShape(*parts) : std::nullopt;
      if (!shape || !isOfShape(*scaled, weight, *shape) || !isOfShape(node, bias, *shape))
        continue;
      node.set(0, layer_norm(node.tensorOf(parts->x), *shape, scaled->weight(weight), node.weight(bias), parts->eps));
      return true;
    }
  }
  return false;
}

} // namespace sluice::onnx
