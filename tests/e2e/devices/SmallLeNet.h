// LeNet small enough for frequent training on emulated devices: two convolutions with average pools, and two dense
// layers, trained by plain SGD.
#pragma once

#include <string>

namespace sluice::test {

inline constexpr int64_t kSmallLeNetSide = 14, kSmallLeNetClasses = 10;

/// Its text for `devices`, a --devices list, with inputs `image` [batch, 1, 14, 14] and `label`. Its parts "conv1",
/// "conv2", "fc1" and "fc2" are assigned to the accelerators in order.
std::string smallLeNet(const std::string &devices, int64_t batch);

} // namespace sluice::test
