// The copies between devices that a plan leads to expect, from what the host asks for. The executor's own count must
// equal it; nothing of the executor is used here.
#pragma once

#include "runtime/plan/CopyCounts.h"
#include "runtime/plan/Plan.h"

#include <map>
#include <vector>

namespace sluice::runtime {

/// Why the host itself has states copied.
inline const std::string setReason = "set", readReason = "read", logReason = "log";

/// A copy, and how often a call makes it: so often for each of its microbatches.
struct CopyOfCall {
  const Copy *copy;
  int64_t times;
  int64_t microbatches = 1;

  /// In a call with so many rows in all.
  CopyCount countFor(int64_t rows) const {
    return {times * microbatches, times * (copy->bytes * microbatches + copy->bytesPerRow * rows)};
  }
};

class CopyForecast {
public:
  explicit CopyForecast(const Plan &plan);

  /// The host calls an entry, writes or reads a state, or reads an output of the last call for the first time.
  void call(const Entry &entry, int64_t rows);
  void write(const State &state);
  void read(const State &state);
  void read(const Entry &entry, const Value &output, int64_t rows);
  /// The host keeps outputs of the calls to come, or has them brought.
  void keep(const Entry &entry, const std::vector<const Value *> &outputs);
  void bring(const Entry &entry);

  const CopyCounts &counts() const { return counts_; }
  int64_t mirrorsRefreshed() const { return mirrorsRefreshed_; }

private:
  struct Mirror {
    Slot state, mirror;
    bool stale = true;
  };
  /// What a call of an entry does, and its outputs that are kept on accelerators.
  struct Calls {
    std::vector<CopyOfCall> copies;
    std::vector<size_t> written;           ///< the mirrors that it makes stale
    std::map<size_t, int64_t> keptOutputs; ///< how many, by device
    int64_t kept = 0;                      ///< calls whose outputs were not brought yet
  };

  Calls &callsOf(const Entry &entry) { return calls_[static_cast<size_t>(&entry - plan_.entries.data())]; }
  void add(const Copy &copy, int64_t rows, int64_t times = 1);
  void makeStale(const Slot &state);

  const Plan &plan_;
  CopyCounts counts_;
  std::vector<Mirror> mirrors_;
  std::vector<Calls> calls_; ///< of the entries
  int64_t mirrorsRefreshed_ = 0;
};

/// The copies of each call of an entry with so many microbatches, if the host changes no state: each `step` copy, and
/// each `stale` copy of a state that the entry itself writes.
std::vector<CopyOfCall> copiesPerCall(const Plan &plan, const Entry &entry, int64_t microbatches = 1);

} // namespace sluice::runtime
