// Attention of several nodes: softmax(q k^T * scale + mask) v.
#include "frontend/onnx/recognize/Recognize.h"
#include "sluice/ops.h"

namespace sluice::onnx {

namespace {

struct Scores {
  ValuePtr query, keyTransposed;
  double scale = 1;
};

} // namespace

/// The product of queries and transposed keys behind an input, with the factor of its scores and operands.
static std::optional<Scores> scoresOf(const Node &reader, std::size_t input) {
  Factors factors = factorsOf(reader, input);
  auto product = factors.values.size() == 1 ? reader.producer(factors.values.front(), "MatMul") : std::nullopt;
  if (!product || !isFloat(product->type(0)))
    return std::nullopt;
  Factors query = factorsOf(*product, 0), key = factorsOf(*product, 1);
  if (query.values.size() != 1 || key.values.size() != 1)
    return std::nullopt;
  return Scores{query.values.front(), key.values.front(), factors.scale * query.scale * key.scale};
}

/// Whether a mask broadcasts to scores of these dimensions. The batch is a separate size.
static bool broadcasts(const std::vector<Size> &mask, const std::vector<Size> &scores) {
  if (mask.size() > scores.size())
    return false;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    const Size &size = mask[mask.size() - 1 - i];
    if (!(size == Size{1, 0}) && !(size == scores[scores.size() - 1 - i]))
      return false;
  }
  return true;
}

bool recognizeAttention(Node &node) {
  auto softmax = node.producer(0, "Softmax");
  std::int64_t rank = softmax ? softmax->rank(0) : 0;
  std::int64_t axis = softmax ? softmax->integer("axis", softmax->opset() < 13 ? 1 : -1) : 0;
  if ((rank != 3 && rank != 4) || node.rank(1) != rank || (axis != -1 && axis != rank - 1) || node.known(1))
    return false;
  std::optional<Scores> scores = scoresOf(*softmax, 0);
  Tensor mask;
  auto sum = softmax->producer(0, "Add");
  for (std::size_t i = 0; sum && !scores && i < 2; ++i) {
    scores = scoresOf(*sum, i);
    if (scores && sum->shape(i) == softmax->shape(0) && broadcasts(sum->shape(1 - i), softmax->shape(0)))
      mask = sum->tensor(1 - i);
    else
      scores.reset();
  }
  if (!scores || std::int64_t(scores->query->shape().size()) != rank ||
      std::int64_t(scores->keyTransposed->shape().size()) != rank)
    return false;
  std::vector<Size> query = scores->query->shape(), key = scores->keyTransposed->shape(), value = node.shape(1);
  for (std::int64_t i = 0; i < rank - 2; ++i)
    if (!(query[i] == key[i]) || !(query[i] == value[i]))
      return false;
  for (std::int64_t i = rank - 2; i < rank; ++i)
    if (!query[i].isKnown() || !key[i].isKnown() || !value[i].isKnown())
      return false;
  if (key[std::size_t(rank - 1)] != value[std::size_t(rank - 2)])
    return false;
  Tensor transposed = node.tensorOf(scores->keyTransposed);
  AttentionOptions options{.attn_mask = mask, .scale = scores->scale};
  node.set(0, scaled_dot_product_attention(node.tensorOf(scores->query), transposed.transpose(-1, -2), node.tensor(1),
                                           options));
  return true;
}

} // namespace sluice::onnx
