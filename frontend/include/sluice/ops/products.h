// Products and attention.
#pragma once

#include "sluice/tensor.h"

#include <optional>
#include <string>

namespace sluice {

/// NumPy's matmul: leading dimensions broadcast, a vector is a matrix of one row (on the left) or column.
Tensor matmul(Arg a, Arg b);
/// A product by PyTorch's notation: einsum("bthd,bshd->bhts", q, k) sums over d alone. Each dimension has a letter, letters
/// that the result lacks are summed over, and without `->` the result has those that are there once, in the order of the
/// alphabet. Sizes of 1 broadcast. `...` stands for all other dimensions of an operand, which are aligned from the last; without
/// `->` they come first. No letter is twice in an operand.
Tensor einsum(const std::string &equation, Arg a, Arg b);
/// Sums and permutes.
Tensor einsum(const std::string &equation, Arg x);
/// x weight^T + bias; weight is [out, in].
Tensor linear(Arg x, const Tensor &weight, const Tensor &bias = {});

struct AttentionOptions {
  /// Added to the scores, or of bool whether a query may attend to a key; broadcasts to [N, H, T, S]. No gradient reaches one of bool.
  Tensor attn_mask = {};
  bool is_causal = false;           ///< query t attends to keys 0 to t alone; also where there is a mask
  std::optional<double> scale = {}; ///< 1 / sqrt(D) unless given
};
/// softmax(query key^T * scale + mask) value over the keys, for queries [N, H, T, D], keys [N, Hk, S, D] and values
/// [N, Hk, S, Dv]: [N, H, T, Dv]. Hk divides H: as many heads after one another share those of keys and values (PyTorch's
/// enable_gqa). Without heads they are [N, T, D], and so on, or [T, D]. A query that may attend to no key gives 0.
///
/// It is an op of its own: scores are computed block by block, and never stored as a whole. Products and a softmax that
/// are written out are what they say.
Tensor scaled_dot_product_attention(Arg query, const Tensor &key, const Tensor &value, AttentionOptions options = {});

} // namespace sluice
