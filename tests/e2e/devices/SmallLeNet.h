// LeNet small enough for emulated devices to train it often: two convolutions with average pools behind them, and two dense
// layers; trained by plain SGD.
#pragma once

#include <string>

namespace sluice::test {

inline constexpr int64_t kSmallLeNetSide = 14, kSmallLeNetClasses = 10;

/// Its text for `devices`, a list as of --devices, with input `image` [batch, 1, 14, 14] and `label`. Its parts "conv1", "conv2",
/// "fc1" and "fc2" are shared out among the accelerators in their order.
std::string smallLeNet(const std::string &devices, int64_t batch);

} // namespace sluice::test
