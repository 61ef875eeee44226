// What both halves say of sums in a tree.
#pragma once

namespace sluice::cuda {

inline constexpr const char *kNoTreeSums = "NCCL adds in an order of its own, not in a tree: replicas on devices of "
                                           "cuda cannot be --deterministic, and one alone can";

} // namespace sluice::cuda
