// The values that each group of a placement problem produces and reads.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::passes {

/// For a problem whose values have a producer and consumers among its groups.
class GroupValues {
public:
  template <typename Problem>
  explicit GroupValues(const Problem &problem)
      : made_(problem.groups.size()), read_(problem.groups.size()), touched(problem.values.size()) {
    for (uint32_t number = 0; number < problem.values.size(); ++number)
      add(number, problem.values[number].producer, problem.values[number].consumers);
  }

  /// The values that a group produces, and the values of other groups that it reads, each once.
  const std::vector<uint32_t> &made(uint32_t group) const { return made_[group]; }
  const std::vector<uint32_t> &read(uint32_t group) const { return read_[group]; }

  /// All groups, breadth first from the first one along values in either direction. A cut anywhere in this order splits
  /// few values. In a training step the forward and backward groups of a layer are close in it, unlike in program
  /// order.
  std::vector<uint32_t> breadthFirst() const;

private:
  void add(uint32_t value, uint32_t producer, const std::vector<uint32_t> &consumers);

  std::vector<std::vector<uint32_t>> made_, read_;
  std::vector<std::vector<uint32_t>> touched; // per value, its producer and consumer groups
};

} // namespace sluice::passes
