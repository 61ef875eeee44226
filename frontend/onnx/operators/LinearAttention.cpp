// LinearAttention: a scan along the steps that carries a matrix for each head, in f32.
#include "frontend/onnx/import/Operators.h"
#include "sluice/ops.h"

#include <cmath>

namespace sluice::onnx {

namespace {

/// The inputs with separate heads: [N, T, H, ...]. Queries that share a head of keys are a further dimension.
struct LinearAttentionInputs {
  Tensor query, key, value, decay, beta; ///< decay and beta may be absent
  std::int64_t keyHeads = 0, group = 0;  ///< group: queries for each head of keys
};

} // namespace

/// [N, T, parts * D] as [N, T, parts, D].
static Tensor partsOfSteps(Node &node, std::size_t input, std::int64_t parts) {
  Tensor x = node.tensor(input).to(f32);
  if (x.dim() != 3 || x.size(2).symbolic() || x.size(2).size % parts != 0)
    Node::fail("input " + std::to_string(input) + " of shape " + x.shape().str() + " has no " + std::to_string(parts) +
               " heads");
  return x.reshape({x.size(0), x.size(1), parts, x.size(2).size / parts});
}

static LinearAttentionInputs linearAttentionInputs(Node &node, bool isGated, bool isDelta) {
  static constexpr std::size_t kDecay = 4, kBeta = 5;
  std::int64_t heads = node.integer("q_num_heads", 0), keyHeads = node.integer("kv_num_heads", 0);
  if (heads < 1 || keyHeads < 1 || heads % keyHeads != 0)
    Node::fail(std::to_string(keyHeads) + " heads of keys do not divide " + std::to_string(heads) + " of queries");
  if (node.has(kDecay) != isGated || node.has(kBeta) != isDelta)
    Node::fail("decay or beta does not fit update_rule");
  LinearAttentionInputs in;
  in.keyHeads = keyHeads;
  in.group = heads / keyHeads;
  Tensor query = partsOfSteps(node, 0, heads);
  Shape shape = query.shape();
  in.query = query.reshape({shape[0], shape[1], keyHeads, in.group, shape[3]});
  in.key = partsOfSteps(node, 1, keyHeads);
  in.value = partsOfSteps(node, 2, keyHeads);
  if (isGated)
    in.decay = partsOfSteps(node, kDecay, keyHeads);
  if (isDelta)
    in.beta = partsOfSteps(node, kBeta, node.shape(kBeta).back() == Size{1, 0} ? 1 : keyHeads);
  return in;
}

void linearAttention(Node &node) {
  static constexpr std::size_t kPast = 3;
  std::string rule = node.text("update_rule", "gated_delta");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
    Node::fail("update_rule '" + rule + "' is not supported");
  bool isGated = rule.starts_with("gated"), isDelta = rule.ends_with("delta");
  LinearAttentionInputs in = linearAttentionInputs(node, isGated, isDelta);
  std::int64_t keySize = in.key.size(3).size;
  double scale = node.real("scale", 0.0) == 0.0 ? 1.0 / std::sqrt(double(keySize)) : node.real("scale", 0.0);
  Shape stateShape{in.key.size(0), in.keyHeads, keySize, in.value.size(3)};
  Tensor state = node.has(kPast) ? node.tensor(kPast).to(f32) : node.graph().zeros(stateShape);
  auto body = [&](const std::vector<Tensor> &before, const std::vector<Tensor> &slices) {
    Tensor matrix = before[0], key = slices[1], value = slices[2];
    if (isGated)
      matrix = matrix * sluice::exp(slices[3]).unsqueeze(-1);
    if (isDelta)
      value = slices.back() * (value - einsum("nhkv,nhk->nhv", matrix, key));
    matrix = matrix + key.unsqueeze(-1) * value.unsqueeze(-2);
    return ScanStep{{matrix}, {einsum("nhgk,nhkv->nhgv", slices[0], matrix) * scale}};
  };
  std::vector<Tensor> steps{in.query, in.key, in.value};
  for (const Tensor &optional : {in.decay, in.beta})
    if (bool(optional))
      steps.push_back(optional);
  ScanStep all = scan({state}, steps, 1, body);
  DType dtype = node.tensor(0).dtype();
  node.set(0, all.stacked[0].flatten(2, 4).to(dtype));
  node.set(1, all.carried[0].to(node.has(kPast) ? node.tensor(kPast).dtype() : dtype));
}

} // namespace sluice::onnx
