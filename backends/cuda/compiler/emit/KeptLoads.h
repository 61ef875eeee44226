// Loads that a thread makes once. Loops over the same row, as those of a softmax or a norm, load the same elements in the same
// trips: the first of them loads into an array, from which all take them. They are unrolled, so that every trip names its
// elements, and the array is registers.
//
// What several loops load is known when their text has been written: it is written twice, the second time with what
// `LoopLoads` has chosen the first time. Values and the order of sums stay as they are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sluice::cuda {

/// The array that keeps each load, by its number among all of a text, if one does; empty if none is loaded by several loops.
using KeptLoads = std::vector<std::optional<unsigned>>;

/// The loads of a text.
class LoopLoads {
public:
  struct Load {
    std::string what;      ///< the same for all that load the same in the same trips; empty: it is not to be kept
    unsigned loop = 0;     ///< around it
    int64_t buffer = 0;    ///< that it reads
    int64_t registers = 0; ///< of all trips
  };
  void add(Load load) { loads.push_back(std::move(load)); }
  void addStore(int64_t buffer) { stored.insert(buffer); }
  /// What the loop's trips take together, in cycles of ThreadEmitter::cost.
  void addLoop(unsigned loop, double cycles) { cyclesOf[loop] = cycles; }

  KeptLoads chosen() const;

private:
  struct Array;
  std::vector<Array> repeated() const;

  std::vector<Load> loads;
  std::set<int64_t> stored;
  std::map<unsigned, double> cyclesOf;
};

} // namespace sluice::cuda
