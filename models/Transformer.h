// What the transformers share: heads of 64 elements.
#pragma once

#include <sluice/sluice.h>

namespace models {

inline constexpr std::int64_t kHead = 64;

/// [N, T, heads * 64] as [N, heads, T, 64].
inline sluice::Tensor split_heads(const sluice::Tensor &x) {
  sluice::Shape shape = x.shape();
  return x.reshape({shape[0], shape[1], -1, kHead}).transpose(1, 2);
}

/// Attention in heads: queries, keys and values are [N, T, heads * 64], and so is what it gives.
inline sluice::Tensor attention(const sluice::Tensor &q, const sluice::Tensor &k, const sluice::Tensor &v,
                                sluice::AttentionOptions options = {}) {
  return scaled_dot_product_attention(split_heads(q), split_heads(k), split_heads(v), std::move(options))
      .transpose(1, 2)
      .flatten(2);
}

/// Of queries, keys and values one behind another, [N, T, 3 * heads * 64].
inline sluice::Tensor attention(const sluice::Tensor &qkv, sluice::AttentionOptions options = {}) {
  std::vector<sluice::Tensor> parts = qkv.chunk(3, 2);
  return attention(parts[0], parts[1], parts[2], std::move(options));
}

} // namespace models
