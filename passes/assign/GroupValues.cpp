#include "passes/assign/GroupValues.h"

namespace sluice::passes {

void GroupValues::add(uint32_t value, uint32_t producer, const std::vector<uint32_t> &consumers) {
  made_[producer].push_back(value);
  touched[value].push_back(producer);
  for (uint32_t consumer : consumers) {
    bool isKnown = consumer == producer || (!read_[consumer].empty() && read_[consumer].back() == value);
    if (isKnown)
      continue;
    read_[consumer].push_back(value);
    touched[value].push_back(consumer);
  }
}

std::vector<uint32_t> GroupValues::breadthFirst() const {
  std::vector<uint32_t> order;
  std::vector<bool> isReached(made_.size()), isFollowed(touched.size());
  auto reach = [&](uint32_t group) {
    if (!isReached[group])
      order.push_back(group);
    isReached[group] = true;
  };
  uint32_t next = 0;
  for (uint32_t root = 0; root < made_.size(); ++root) {
    reach(root);
    for (; next < order.size(); ++next)
      for (const std::vector<uint32_t> *values : {&made_[order[next]], &read_[order[next]]})
        for (uint32_t value : *values) {
          if (isFollowed[value])
            continue;
          isFollowed[value] = true;
          for (uint32_t group : touched[value])
            reach(group);
        }
  }
  return order;
}

} // namespace sluice::passes
