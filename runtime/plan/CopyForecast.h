// The copies between devices that a plan implies for the host's requests. The executor's own count must match it, so
// this code shares nothing with the executor.
#pragma once

#include "runtime/plan/CopyCounts.h"
#include "runtime/plan/Plan.h"

#include <map>
#include <vector>

namespace sluice::runtime {

/// Reasons for copies that the host requests: it sets a state, reads a state, or fetches an output log.
inline const std::string setReason = "set", readReason = "read", logReason = "log";

/// A copy of a call: its executions per microbatch, and the number of microbatches that execute it.
struct CopyOfCall {
  const Copy *copy;
  int64_t times;
  int64_t microbatches = 1;

  /// For a call with `rows` rows over all replicas.
  CopyCount countFor(int64_t rows) const {
    return {times * microbatches, times * (copy->bytes * microbatches + copy->bytesPerRow * rows)};
  }
};

class CopyForecast {
public:
  explicit CopyForecast(const Plan &plan);

  /// Records that the host calls an entry, writes or reads a state, or reads an output of the last call for the first
  /// time.
  void call(const Entry &entry, int64_t rows);
  void write(const State &state);
  void read(const State &state);
  void read(const Entry &entry, const Value &output, int64_t rows);
  /// Records that future calls keep these outputs in the output log.
  void keep(const Entry &entry, const std::vector<const Value *> &outputs);
  /// Records that the host fetches the log.
  void bring(const Entry &entry);

  const CopyCounts &counts() const { return counts_; }
  int64_t mirrorsRefreshed() const { return mirrorsRefreshed_; }

private:
  struct Mirror {
    Slot state, mirror;
    bool stale = true;
  };
  /// The effects of an entry's call, and its outputs kept on accelerators.
  struct Calls {
    std::vector<CopyOfCall> copies;
    std::vector<size_t> written;           ///< mirrors that it makes stale
    std::vector<size_t> derivations;       ///< derivations that it makes stale, by entry
    bool stale = true;                     ///< of a derivation: it runs before the next call that reads its states
    std::map<size_t, int64_t> keptOutputs; ///< by accelerator, the number of outputs that each call keeps there
    int64_t kept = 0;                      ///< calls whose outputs have not been fetched
  };

  Calls &callsOf(const Entry &entry) { return calls_[static_cast<size_t>(&entry - plan_.entries.data())]; }
  void add(const Copy &copy, int64_t rows, int64_t times = 1);
  void makeStale(const Slot &state);
  void countCall(Calls &calls, int64_t rows);

  const Plan &plan_;
  CopyCounts counts_;
  std::vector<Mirror> mirrors_;
  std::vector<Calls> calls_; ///< by entry
  int64_t mirrorsRefreshed_ = 0;
};

/// The copies of each call of an entry with this many microbatches, if the host changes no state. These are all `step`
/// copies, and `stale` copies of states that the entry itself writes.
std::vector<CopyOfCall> copiesPerCall(const Plan &plan, const Entry &entry, int64_t microbatches = 1);

} // namespace sluice::runtime
