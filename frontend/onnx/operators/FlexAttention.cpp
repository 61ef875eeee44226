// FlexAttention: attention whose scores and weights are changed by graphs.
#include "frontend/onnx/import/Operators.h"
#include "sluice/ops.h"

#include <cmath>

namespace sluice::onnx {

/// The result of a graph attribute for x, which has the shape and the dtype of x; x if there is none.
static Tensor modified(Node &node, const char *attribute, const Tensor &x) {
  if (!node.hasAttribute(attribute))
    return x;
  std::vector<ValuePtr> results = node.call(node.graphAttribute(attribute), {valueOf(x)});
  if (results.size() != 1 || !results.front() || results.front()->isLost() || results.front()->sequence())
    Node::fail(std::string(attribute) + " has no result that is supported");
  Tensor y = node.tensorOf(results.front());
  if (y.shape() != x.shape() || y.dtype() != x.dtype())
    Node::fail(std::string(attribute) + " changes the shape or the type of its operand");
  return y;
}

/// The dtype of scores and weights.
static DType scorePrecision(const Node &node, DType dtype) {
  auto type = ElementType(node.integer("softmax_precision", std::int64_t(ElementType::undefined)));
  std::optional<DType> precision =
      type == ElementType::undefined ? std::optional(dtype == DType::f64 ? f64 : f32) : heldAs(type);
  if (!precision || !is_float(*precision) || !is_float(dtype))
    Node::fail("softmax_precision " + nameOf(type) + " is not supported");
  return *precision;
}

/// Query [N, H, T, D], key [N, Hk, S, D] and value [N, Hk, S, Dv]: H / Hk adjacent heads of queries share one of keys.
void flexAttention(Node &node) {
  if (node.rank(0) != 4 || node.rank(1) != 4 || node.rank(2) != 4)
    Node::fail("queries, keys and values must have four dimensions");
  Tensor query = node.tensor(0), key = node.tensor(1), value = node.tensor(2);
  Shape shape = query.shape();
  std::int64_t heads = shape[1].size, keyHeads = key.size(1).size;
  if (shape[1].symbolic() || keyHeads < 1 || heads % keyHeads != 0)
    Node::fail(std::to_string(keyHeads) + " heads of keys do not divide " + std::to_string(heads) + " of queries");
  DType precision = scorePrecision(node, query.dtype());
  double scale = node.real("scale", 1.0 / std::sqrt(double(shape[3].size)));
  bool isPlain = !node.hasAttribute("score_mod") && !node.hasAttribute("prob_mod") && scale >= 0;
  if (isPlain && (precision == f32 || precision == query.dtype()))
    return node.set(0, scaled_dot_product_attention(query, key, value, {.scale = scale}));
  query = (query.to(precision) * scale).reshape({shape[0], keyHeads, heads / keyHeads, shape[2], shape[3]});
  Tensor scores = einsum("bgrtd,bgsd->bgrts", query, key.to(precision));
  Shape perHead{shape[0], heads, shape[2], key.size(2)}, perGroup = scores.shape();
  Tensor weights = modified(node, "score_mod", scores.reshape(perHead)).softmax(-1);
  weights = modified(node, "prob_mod", weights).to(value.dtype()).reshape(perGroup);
  Tensor y = einsum("bgrts,bgsd->bgrtd", weights, value);
  node.set(0, y.reshape({shape[0], heads, shape[2], value.size(3)}));
}

} // namespace sluice::onnx
