#include "backends/cuda/compiler/emit/KeptLoads.h"

#include <algorithm>
#include <utility>

namespace sluice::cuda {

// Half of a thread's registers if 512 threads, the size of the largest blocks, fill a multiprocessor. An element of two
// bytes counts as one of four, because compilers may keep values derived from it, for example the exponentials of a
// softmax.
static constexpr int64_t kMostRegisters = 64;
// Maximum cost of an unrolled loop, about one instruction of 16 bytes per cycle: 64 KB of an instruction cache of about
// 128 KB.
static constexpr double kMostCycles = 4096;

/// A load that several loops share.
struct LoopLoads::Array {
  int64_t registers = 0;
  std::set<unsigned> loops;
  std::vector<size_t> loads; // by number
};

std::vector<LoopLoads::Array> LoopLoads::repeated() const {
  std::map<std::string, size_t> known;
  std::vector<Array> arrays;
  for (size_t number = 0; number < loads.size(); ++number) {
    const Load &load = loads[number];
    if (load.what.empty() || stored.contains(load.buffer) || cyclesOf.at(load.loop) > kMostCycles)
      continue;
    auto [place, isNew] = known.try_emplace(load.what, arrays.size());
    if (isNew)
      arrays.push_back({load.registers, {}, {}});
    arrays[place->second].loops.insert(load.loop);
    arrays[place->second].loads.push_back(number);
  }
  std::erase_if(arrays, [](const Array &array) { return array.loops.size() < 2; });
  return arrays;
}

// Prefers the loads that most loops share.
KeptLoads LoopLoads::chosen() const {
  std::vector<Array> arrays = repeated();
  if (arrays.empty())
    return {};
  std::ranges::sort(arrays, {},
                    [](const Array &array) { return std::pair(-int64_t(array.loops.size()), array.loads); });
  KeptLoads kept(loads.size());
  int64_t left = kMostRegisters;
  for (unsigned number = 0; const Array &array : arrays) {
    if (array.registers > left)
      continue;
    left -= array.registers;
    for (size_t load : array.loads)
      kept[load] = number;
    ++number;
  }
  return kept;
}

} // namespace sluice::cuda
