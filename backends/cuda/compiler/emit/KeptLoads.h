// Loads that a thread executes once and keeps in registers.
//
// Loops over the same row, for example those of a softmax or a norm, load the same elements in the same trips. The
// first of them loads into an array, which the others read. The loops are unrolled, so that every index of the array is
// constant and the array stays in registers.
//
// The loads that loops share are known only after emission. The kernel is therefore emitted twice, the second time with
// the choice of `LoopLoads` from the first. Values and the order of sums do not change.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sluice::cuda {

/// For each load, by its number in the text, the array that keeps it, if any; empty if no load is shared by several
/// loops.
using KeptLoads = std::vector<std::optional<unsigned>>;

/// The loads of a kernel's text.
class LoopLoads {
public:
  struct Load {
    std::string what;      ///< key: equal for loads of the same elements in the same trips; empty: not kept
    unsigned loop = 0;     ///< number of the loop around the load
    int64_t buffer = 0;    ///< that the load reads
    int64_t registers = 0; ///< that keep the elements of all trips
  };
  void add(Load load) { loads.push_back(std::move(load)); }
  void addStore(int64_t buffer) { stored.insert(buffer); }
  /// Cost of all trips of the loop, in cycles of ThreadEmitter::cost.
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
