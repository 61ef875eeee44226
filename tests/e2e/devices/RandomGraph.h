// Random training graphs, and random pins for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::test {

/// The text of a model "random" with inputs `image` [batch, features] and `label` [batch]. It consists of random
/// layers, elementwise chains, residual sums and branches, and trains by SGD with momentum. A seed determines one
/// graph.
std::string randomGraph(uint32_t seed, int64_t batch);

/// How a random graph reads a value twice. `root` produces the value, formula number `form` reads it at its own
/// indices, and `reader` reads it at other indices.
struct DrawnReader {
  std::string root;
  int form;
  std::string reader;
  auto operator<=>(const DrawnReader &) const = default;
};

/// The same for a graph whose values are also produced by the roots of ReaderGraph.h and read twice. Half of these
/// values have 1 to 7 columns, the others have more. Adds each combination in the graph to `drawn`; consecutive seeds
/// draw different combinations.
std::string randomReaderGraph(uint32_t seed, int64_t batch, std::vector<DrawnReader> &drawn);

/// The text of a model "small" with an input `x` [batch, features] and `layers` dense layers without biases between
/// random other ops. It predicts or trains by SGD. A seed determines one graph.
std::string smallGraph(uint32_t seed, uint32_t layers, bool isTrained);

/// Number of features of that graph's input `image`.
inline constexpr int64_t kRandomFeatures = 24;
inline constexpr int64_t kRandomClasses = 5;

/// `model` for these devices. Each op and state is pinned to a random device or left to the compiler; copies are
/// inserted where pins require them.
std::string randomlyPinned(const std::string &model, const std::string &devices, uint32_t seed);

/// The same with one op or state in `oneIn` pinned, and all others left to the compiler.
std::string sparselyPinned(const std::string &model, const std::string &devices, uint32_t seed, uint32_t oneIn);

/// `model` for these devices, without pins.
std::string forDevices(const std::string &model, const std::string &devices);

} // namespace sluice::test
