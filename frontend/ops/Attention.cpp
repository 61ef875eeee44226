// Attention, and its layer.
#include "frontend/graph/Call.h"
#include "sluice/error.h"
#include "sluice/layers.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace sluice {

using detail::Call;

/// [T, D] and [N, T, D] as [N, H, T, D], with a batch of one and one head.
static Tensor withHeads(Call &call, const Tensor &x) {
  constexpr int64_t kRank = 4;
  SmallVector<int64_t> shape(Call::shape(x));
  if (shape.size() < 2 || shape.size() > kRank)
    call.fail("queries, keys and values have 2 to 4 dimensions, not " + std::to_string(shape.size()));
  if (shape.size() == 2)
    shape.insert(shape.begin(), 1);
  if (int64_t(shape.size()) < kRank)
    shape.insert(shape.begin() + 1, 1);
  return call.reshape(x, shape);
}

/// The mask with four dimensions. A mask [N, T, S] of operands without heads gets a dimension 1 after the batch; all
/// others get leading dimensions of size 1.
static Tensor maskWithHeads(Call &call, const Tensor &mask, int64_t rankOfQueries) {
  constexpr size_t kRank = 4;
  SmallVector<int64_t> shape(Call::shape(mask));
  if (int64_t(shape.size()) > rankOfQueries)
    call.fail("the mask has " + std::to_string(shape.size()) + " dimensions, the queries " +
              std::to_string(rankOfQueries));
  if (rankOfQueries == 3 && shape.size() == 3)
    shape.insert(shape.begin() + 1, 1);
  shape.insert(shape.begin(), kRank - shape.size(), 1);
  return call.reshape(mask, shape);
}

Tensor scaled_dot_product_attention(Arg query, const Tensor &key, const Tensor &value, AttentionOptions options) {
  Call call("scaled_dot_product_attention", Call::present({query.tensor, key, value, options.attn_mask}), query.where);
  for (const Tensor &operand : {query.tensor, key, value})
    call.requireFloat(operand);
  int64_t rank = Call::rank(query.tensor);
  for (const Tensor &operand : {key, value})
    if (call.requireSameDType(query.tensor, operand); Call::rank(operand) != rank)
      call.fail("queries, keys and values differ in how many dimensions they have: " + std::to_string(rank) + " and " +
                std::to_string(Call::rank(operand)));
  SmallVector<Tensor> operands;
  for (const Tensor &operand : {query.tensor, key, value})
    operands.push_back(withHeads(call, operand));
  if (options.attn_mask)
    operands.push_back(maskWithHeads(call, options.attn_mask, rank));
  double scale = options.scale.value_or(1 / std::sqrt(double(Call::shape(query.tensor).back())));
  SmallVector<NamedAttribute> attributes{call.real("scale", scale)};
  if (options.is_causal)
    attributes.push_back(call.unit("causal"));
  Tensor y = call.emitAll(ir::ScaledDotProductAttentionOp::getOperationName(), operands, attributes).front();
  SmallVector<int64_t> shape(Call::shape(query.tensor));
  shape.back() = Call::shape(y).back();
  return call.reshape(y, shape);
}

namespace nn {

MultiheadAttention::MultiheadAttention(Module *parent, std::string name, std::int64_t embed_dim, std::int64_t num_heads,
                                       MultiheadAttentionOptions options, Where where)
    : Module(parent, std::move(name), where), out_proj(this, "out_proj", embed_dim, embed_dim, {options.bias}, where),
      embedding(embed_dim), heads(num_heads), options(options) {
  if (num_heads < 1 || embed_dim < 1 || embed_dim % num_heads != 0)
    throw Error("MultiheadAttention: " + std::to_string(num_heads) + " heads do not divide an embed_dim of " +
                    std::to_string(embed_dim),
                declared());
  double bound = std::sqrt(6.0 / double(4 * embed_dim)); // Xavier's bound for all three weights together
  in_proj_weight = parameter("in_proj_weight", {3 * embed_dim, embed_dim}, init::uniform(-bound, bound), where);
  if (!options.bias)
    return;
  in_proj_bias = parameter("in_proj_bias", {3 * embed_dim}, init::zeros(), where);
  out_proj.initialize("bias", init::zeros(), where);
}

Tensor MultiheadAttention::operator()(Arg x, AttentionMasks masks) {
  this->masks = std::move(masks);
  Tensor y = (*this)(x);
  this->masks = {};
  return y;
}

Tensor MultiheadAttention::operator()(Arg query, Arg key, Arg value, AttentionMasks masks) {
  this->masks = std::move(masks);
  Tensor y = (*this)(query, key, value);
  this->masks = {};
  return y;
}

Tensor MultiheadAttention::batchFirst(const Tensor &x) const {
  if (x.shape().size() != 3)
    throw Error("MultiheadAttention takes three dimensions, batch, items and features, not " + x.shape().str(),
                at(x).where);
  return options.batch_first ? x : transpose(at(x), 0, 1);
}

Tensor MultiheadAttention::project(const Tensor &x, std::int64_t first, std::int64_t last) const {
  auto part = [&](const Tensor &of) {
    return of && last - first < 3 ? slice(at(of), 0, first * embedding, last * embedding) : of;
  };
  return linear(at(x), part(in_proj_weight), part(in_proj_bias));
}

/// Third number `first` of a projection (0: query, 1: key, 2: value), as [N, heads, T, D].
Tensor MultiheadAttention::inHeads(const Tensor &projected, std::int64_t first) const {
  Tensor part = slice(at(projected), 2, first * embedding, (first + 1) * embedding);
  Shape shape = projected.shape();
  return transpose(at(reshape(at(part), {shape[0], shape[1], heads, embedding / heads})), 1, 2);
}

Tensor MultiheadAttention::forward(Tensor x) {
  Tensor all = project(batchFirst(x), 0, 3);
  return attend(inHeads(all, 0), inHeads(all, 1), inHeads(all, 2));
}

Tensor MultiheadAttention::forward(Tensor query, Tensor key, Tensor value) {
  auto projected = [&](const Tensor &x, std::int64_t part) {
    return inHeads(project(batchFirst(x), part, part + 1), 0);
  };
  return attend(projected(query, 0), projected(key, 1), projected(value, 2));
}

/// The combined mask: boolean, true where queries attend; if one of the masks is float, float and added to the scores.
Tensor MultiheadAttention::mask() const {
  auto isBool = [](const Tensor &mask) { return mask.dtype() == DType::boolean; };
  auto attends = [&](const Tensor &mask) { return isBool(mask) ? logical_not(at(mask)) : mask; };
  const Tensor &all = masks.attn_mask;
  if (!bool(masks.key_padding_mask))
    return all ? attends(all) : all;
  Tensor padding = unsqueeze(at(unsqueeze(at(masks.key_padding_mask), 1)), 1);
  if (!bool(all))
    return attends(padding);
  if (isBool(padding) && isBool(all))
    return attends(logical_or(at(padding), at(all)));
  auto added = [&](const Tensor &mask) {
    double hidden = -std::numeric_limits<double>::infinity();
    Tensor other = isBool(padding) ? all : padding;
    return isBool(mask) ? cast(at(where(at(mask), hidden, 0.0)), other.dtype()) : mask;
  };
  return at(added(padding)) + at(added(all));
}

Tensor MultiheadAttention::attend(const Tensor &query, const Tensor &key, const Tensor &value) {
  Tensor y = scaled_dot_product_attention(at(query), key, value, {.attn_mask = mask(), .is_causal = options.is_causal});
  Shape shape = y.shape();
  y = reshape(at(transpose(at(y), 1, 2)), {shape[0], shape[2], embedding});
  return batchFirst(out_proj(at(y)));
}

} // namespace nn

} // namespace sluice
