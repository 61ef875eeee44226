// BatchNormalization of a convolution: a convolution with other weights and bias. Exporters fold it in the same way.
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/recognize/Recognize.h"

#include <cmath>

namespace sluice::onnx {

/// The elements of an input that are known floats, one for each of the channels; nothing for others.
static std::optional<std::vector<double>> perChannel(const Node &node, std::size_t input, std::int64_t channels) {
  const Known *known = node.known(input);
  if (!known || !isFloat(known->type()) || known->dims() != Dims{channels})
    return std::nullopt;
  return known->reals();
}

static ValuePtr weightLike(const Value &other, std::string_view name, Dims dims, const std::vector<double> &numbers) {
  ValuePtr value = valueOf(Known::ofReals(other.type, std::move(dims), numbers));
  value->name = name;
  value->isWeight = true;
  return value;
}

bool recognizeConvolutionNorm(Node &node) {
  std::optional<Node> conv = node.producer(0, "Conv");
  const Known *weight = conv ? conv->known(1) : nullptr;
  bool isInference = node.integer("training_mode", 0) == 0 && !node.wants(1) && !node.trainsBatchNorm();
  if (!weight || !isInference || !node.inputValue(0)->isReadOnce || weight->rank() < 2 || !isFloat(weight->type()))
    return false;
  std::int64_t channels = weight->dims()[0];
  auto scale = perChannel(node, 1, channels), shift = perChannel(node, 2, channels),
       mean = perChannel(node, 3, channels), variance = perChannel(node, 4, channels);
  auto bias = conv->has(2) ? perChannel(*conv, 2, channels) : std::vector<double>(std::size_t(channels), 0.0);
  if (!scale || !shift || !mean || !variance || !bias || channels == 0)
    return false;
  double epsilon = node.real("epsilon", 1e-5f);
  std::vector<double> elements = weight->reals();
  std::size_t perOutput = elements.size() / std::size_t(channels);
  for (std::size_t c = 0; c < std::size_t(channels); ++c) {
    double factor = (*scale)[c] / std::sqrt((*variance)[c] + epsilon);
    (*bias)[c] = ((*bias)[c] - (*mean)[c]) * factor + (*shift)[c];
    for (std::size_t i = 0; i < perOutput; ++i)
      elements[c * perOutput + i] *= factor;
  }
  const Value &first = conv->input(1);
  conv->replace(1, weightLike(first, first.name, weight->dims(), elements));
  conv->replace(2, weightLike(first, conv->has(2) ? conv->input(2).name : node.input(2).name, {channels}, *bias));
  convolution(*conv);
  node.set(0, conv->result(0));
  return true;
}

} // namespace sluice::onnx
