// Shared code of the transformers: heads of 64 elements.
#pragma once

#include <sluice/sluice.h>

namespace models {

inline constexpr std::int64_t kHead = 64;

/// [N, T, heads * 64] as [N, heads, T, 64].
inline sluice::Tensor split_heads(const sluice::Tensor &x) {
  sluice::Shape shape = x.shape();
  return x.reshape({shape[0], shape[1], -1, kHead}).transpose(1, 2);
}

/// Multi-head attention: queries, keys, values and result are [N, T, heads * 64].
inline sluice::Tensor attention(const sluice::Tensor &q, const sluice::Tensor &k, const sluice::Tensor &v,
                                sluice::AttentionOptions options = {}) {
  return scaled_dot_product_attention(split_heads(q), split_heads(k), split_heads(v), std::move(options))
      .transpose(1, 2)
      .flatten(2);
}

/// The same for concatenated queries, keys and values: [N, T, 3 * heads * 64].
inline sluice::Tensor attention(const sluice::Tensor &qkv, sluice::AttentionOptions options = {}) {
  std::vector<sluice::Tensor> parts = qkv.chunk(3, 2);
  return attention(parts[0], parts[1], parts[2], std::move(options));
}

/// Shape of a layer's key or value cache in generation: [1, heads, length, 64].
inline sluice::Shape cache_shape(std::int64_t width, std::int64_t length) { return {1, width / kHead, length, kHead}; }

/// The causal mask [count, length]: for each of the `count` words from `position` on, the positions that it attends to,
/// which are its position and all earlier ones.
inline sluice::Tensor is_before(sluice::Graph &graph, const sluice::Tensor &position, std::int64_t count,
                                std::int64_t length) {
  sluice::Tensor places = graph.arange(double(count), sluice::i32) + position;
  return graph.arange(double(length), sluice::i32) <= places.unsqueeze(1);
}

/// Attention of the words from `position` on to themselves and to earlier words, whose keys and values are in the
/// caches `keys` and `values`. Adds the keys and values of the new words to the caches.
inline sluice::Tensor cached_attention(const sluice::Tensor &qkv, sluice::Tensor keys, sluice::Tensor values,
                                       const sluice::Tensor &position, const sluice::Tensor &mask) {
  std::vector<sluice::Tensor> parts = qkv.chunk(3, 2);
  keys.copy_(slice_scatter(keys, split_heads(parts[1]), 2, position));
  values.copy_(slice_scatter(values, split_heads(parts[2]), 2, position));
  return scaled_dot_product_attention(split_heads(parts[0]), keys, values, {.attn_mask = mask})
      .transpose(1, 2)
      .flatten(2);
}

} // namespace models
