// Which values touch which groups of a placement problem.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::passes {

/// Of a problem whose values have a producer and consumers among its groups.
class GroupValues {
public:
  template <typename Problem>
  explicit GroupValues(const Problem &problem)
      : made_(problem.groups.size()), read_(problem.groups.size()), touched(problem.values.size()) {
    for (uint32_t number = 0; number < problem.values.size(); ++number)
      add(number, problem.values[number].producer, problem.values[number].consumers);
  }

  /// The values that a group makes, and those of others that it reads, each once.
  const std::vector<uint32_t> &made(uint32_t group) const { return made_[group]; }
  const std::vector<uint32_t> &read(uint32_t group) const { return read_[group]; }

  /// All groups, breadth first from the first one along values in either direction: cut anywhere, the order tears few
  /// values. In a training step a layer's forward and backward groups are close together in it, unlike in the order of
  /// the program.
  std::vector<uint32_t> breadthFirst() const;

private:
  void add(uint32_t value, uint32_t producer, const std::vector<uint32_t> &consumers);

  std::vector<std::vector<uint32_t>> made_, read_;
  std::vector<std::vector<uint32_t>> touched; // per value, the groups that make and read it
};

} // namespace sluice::passes
