// A residual network small enough for emulated devices: a stem, a block with an identity shortcut, and a block with a
// strided convolution and a projection. Batch norms follow all convolutions, and a dense layer is last. Trains with
// momentum and weight decay.
#pragma once

#include <string>

namespace sluice::test {

inline constexpr int64_t kSmallResNetChannels = 3, kSmallResNetSide = 9, kSmallResNetClasses = 10;

/// Its text for `devices`, a --devices list, with inputs `image` [batch, 3, 9, 9] and `label`. Its parts "stem",
/// "identity", "strided" and "fc" are assigned to the accelerators in turn.
std::string smallResNet(const std::string &devices, int64_t batch);

} // namespace sluice::test
