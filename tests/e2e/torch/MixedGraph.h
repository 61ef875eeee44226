// Training graphs that mix ops of all families.
#pragma once

#include "sluice/dtype.h"
#include <cstdint>
#include <string>

namespace sluice::test {

/// The text of a model of this dtype with inputs `image` [batch, channels, height, width] and `label` [batch, i32]. It
/// contains three to `most` random elementwise ops, casts, reductions, softmax, products, convolutions, pools,
/// movements, batch norms and losses. Momentum buffers keep its gradients, and no value is dead. A seed determines one
/// graph.
std::string mixedGraph(uint32_t seed, DType dtype, int64_t batch, uint32_t most);

inline constexpr int64_t kMixedImage[] = {3, 8, 6};
inline constexpr int64_t kMixedClasses = 5;

} // namespace sluice::test
