// Products and attention, of floats.
#pragma once

#include "sluice/tensor.h"

#include <optional>
#include <string>

namespace sluice {

/// The matrix product a [..., n, k] b [..., k, m] -> [..., n, m], as torch.matmul: leading dimensions broadcast, and a
/// vector is a matrix of one row (a) or one column (b) whose dimension is removed from the result. Scalars fail.
Tensor matmul(Arg a, Arg b);
/// The product of one or two operands by an equation, as torch.einsum: einsum("bthd,bshd->bhts", q, k) sums over d. A
/// letter names a dimension, and letters that the result lacks are summed. Without `->`, the result has the
/// letters that occur once, in alphabetical order. `...` means all other dimensions of an operand, aligned from
/// the last; without `->` they come first. Sizes of 1 broadcast. At most 26 different dimensions. No letter occurs
/// twice in one operand, and there are at most two operands; PyTorch allows both.
Tensor einsum(const std::string &equation, Arg a, Arg b);
Tensor einsum(const std::string &equation, Arg x);
/// x [..., in] weight^T + bias -> [..., out], for weight [out, in] and bias [out]. x has at least two dimensions;
/// PyTorch also accepts one.
Tensor linear(Arg x, const Tensor &weight, const Tensor &bias = {});

/// Options of scaled_dot_product_attention. It has no dropout.
struct AttentionOptions {
  /// Broadcasts to [N, H, T, S]. Floats are added to the scores; bool is true where a query may attend to a key. No
  /// gradient reaches a mask of bool.
  Tensor attn_mask = {};
  bool is_causal = false;           ///< query t attends to keys 0 to t only, also with a mask (PyTorch: not both)
  std::optional<double> scale = {}; ///< 1 / sqrt(D) by default
};
/// softmax(query key^T * scale + mask) value over the keys, for query [N, H, T, D], key [N, Hk, S, D] and value
/// [N, Hk, S, Dv]: [N, H, T, Dv]. Hk must divide H; H / Hk consecutive heads then share a key and value head (PyTorch's
/// enable_gqa). Operands may also be [N, T, D], without heads, or [T, D]. A query that attends to no key gives 0;
/// PyTorch gives NaN. A key that the mask (false or -inf) or is_causal hides has the weight 0. Kernels may skip hidden
/// keys: whether a NaN or infinity in such a key or its value reaches the result is unspecified.
///
/// The scores are computed block by block and never stored. Products and a softmax written out store them.
Tensor scaled_dot_product_attention(Arg query, const Tensor &key, const Tensor &value, AttentionOptions options = {});

} // namespace sluice
