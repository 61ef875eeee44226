// Multi-head attention.
#pragma once

#include "sluice/layers/linear.h"
#include "sluice/module.h"

#include <cstdint>
#include <string>

namespace sluice::nn {

/// Options of MultiheadAttention. PyTorch's dropout, kdim, vdim, add_bias_kv and add_zero_attn are not available.
struct MultiheadAttentionOptions {
  bool bias = true;         ///< of both projections
  bool batch_first = false; ///< operands and result are [N, T, E], not [T, N, E]
  bool is_causal = false;   ///< query t attends to keys 0 to t only (PyTorch: an argument of forward)
};
/// Masks as in torch.nn: bool is true where a query does *not* attend, the opposite of scaled_dot_product_attention.
/// Floats are added to the scores.
struct AttentionMasks {
  Tensor key_padding_mask = {}; ///< [N, S]
  Tensor attn_mask = {};        ///< [T, S], or broadcasts to [N, num_heads, T, S]
};
/// torch.nn.MultiheadAttention: attention in heads of embed_dim / num_heads elements between an input and an output
/// projection. Queries [T, N, E], keys and values [S, N, E] -> [T, N, E], with E = embed_dim. It returns no attention
/// weights. num_heads must divide embed_dim.
class MultiheadAttention : public Module {
public:
  MultiheadAttention(Module *parent, std::string name, std::int64_t embed_dim, std::int64_t num_heads,
                     MultiheadAttentionOptions options = {}, Where where = Where::current());
  /// Self-attention: forward(x, x, x).
  Tensor forward(Tensor x) override;
  /// Attention of queries to keys and values.
  Tensor forward(Tensor query, Tensor key, Tensor value) override;
  using Module::operator();
  /// The same with masks.
  Tensor operator()(Arg x, AttentionMasks masks);
  Tensor operator()(Arg query, Arg key, Arg value, AttentionMasks masks);

  Tensor in_proj_weight; ///< [3 * embed_dim, embed_dim] of queries, keys and values; begins as Xavier's uniform
  Tensor in_proj_bias;   ///< [3 * embed_dim]; begins as zeros
  Linear out_proj;       ///< its bias begins as zeros

private:
  /// Converts x to [batch, items, features], or such a result back to the layout of the operands.
  Tensor batchFirst(const Tensor &x) const;
  Tensor inHeads(const Tensor &projected, std::int64_t first) const;
  /// The projections `first` to below `last` of queries (0), keys (1) and values (2).
  Tensor project(const Tensor &x, std::int64_t first, std::int64_t last) const;
  Tensor attend(const Tensor &query, const Tensor &key, const Tensor &value);
  Tensor mask() const;

  std::int64_t embedding, heads;
  MultiheadAttentionOptions options;
  AttentionMasks masks; ///< of the call
};

} // namespace sluice::nn
