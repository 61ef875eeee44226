// A model that draws random numbers from a key, which is an input.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace sluice::test {

/// The entry `predict` has the input "key" and an output for each draw. `text` is for these devices. `draws` describes
/// each output: its name, the function, the shape and dtype, two numbers, and the key: that of the input, or the row of
/// `keys`, into which the input is split.
struct DrawModel {
  explicit DrawModel(const std::string &devices = "cpu");

  std::string text;
  nlohmann::json draws;
};

/// The keys to try as inputs: the two words of each.
inline constexpr int32_t kDrawKeys[][2] = {{0, 0}, {0, 42}, {-5, 1234567891}};

} // namespace sluice::test
