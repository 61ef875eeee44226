// Multi-head attention.
#pragma once

#include "sluice/layers/linear.h"
#include "sluice/module.h"

#include <cstdint>
#include <string>

namespace sluice::nn {

struct MultiheadAttentionOptions {
  bool bias = true;
  bool batch_first = false; ///< queries, keys, values and the result are [N, T, E], not [T, N, E]
  bool is_causal = false;   ///< query t attends to keys 0 to t alone
};
/// As torch.nn has them, of bool true where a query does *not* attend; of floats, added to the scores.
struct AttentionMasks {
  Tensor key_padding_mask = {}; ///< [N, S]
  Tensor attn_mask = {};        ///< [T, S], or what broadcasts to [N, num_heads, T, S]
};
/// Attention in heads of embed_dim / num_heads elements, between projections: in_proj_weight [3 embed_dim, embed_dim] and
/// in_proj_bias of queries, keys and values, and out_proj. Without dropout.
class MultiheadAttention : public Module {
public:
  MultiheadAttention(Module *parent, std::string name, std::int64_t embed_dim, std::int64_t num_heads,
                     MultiheadAttentionOptions options = {}, Where where = Where::current());
  /// Of x to itself.
  Tensor forward(Tensor x) override;
  Tensor forward(Tensor query, Tensor key, Tensor value) override;
  using Module::operator();
  Tensor operator()(Arg x, AttentionMasks masks);
  Tensor operator()(Arg query, Arg key, Arg value, AttentionMasks masks);

  Tensor in_proj_weight, in_proj_bias;
  Linear out_proj;

private:
  Tensor batchFirst(const Tensor &x) const;
  Tensor inHeads(const Tensor &projected, std::int64_t first) const;
  /// Parts `first` to `last` of what projects queries, keys and values.
  Tensor project(const Tensor &x, std::int64_t first, std::int64_t last) const;
  Tensor attend(const Tensor &query, const Tensor &key, const Tensor &value);
  Tensor mask() const;

  std::int64_t embedding, heads;
  MultiheadAttentionOptions options;
  AttentionMasks masks; ///< of the call
};

} // namespace sluice::nn
