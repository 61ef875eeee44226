// Runs calls of entry points in microbatches, for one replica. The replica's share of the rows is cut into
// microbatches. The parts with `each` run for each microbatch, and their row outputs are concatenated. The host holds
// the rows of the whole call at the entry's inputs and outputs.
#pragma once

#include "runtime/exec/Executor.h"

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace sluice::runtime {

class Microbatches {
public:
  /// Both must outlive this.
  Microbatches(const Plan &plan, Executor &executor);

  /// Enqueues call number `call` of a part with these rows.
  using RunPart = std::function<void(const Entry &part, int64_t call, const RowShare &rows)>;
  /// Runs a call of an entry with parts on this replica's share of its rows. Every replica runs as many microbatches as
  /// the replica with the most rows, or all of its logical shards.
  void run(const Entry &entry, const RowShare &share, const RunPart &runPart);

  /// The host address of an output of the entry's last call. An output with rows has the rows of the whole call.
  const std::byte *output(const Value &output);
  /// The part output that provides an output of the entry.
  const Value &outputOfPart(const Value &output) const { return *gives_.at(&output); }
  /// Number of runs of a part.
  int64_t calls(const Entry &part) const { return calls_[numberOf(part)]; }

private:
  /// A part's input or output, with or without rows, and its location for the whole call.
  struct Link {
    const Value *part, *whole;
  };
  struct Links {
    std::vector<Link> inputs, rowOutputs;
  };

  size_t numberOf(const Entry &entry) const { return static_cast<size_t>(&entry - plan_.entries.data()); }
  void connect(const Entry &entry, const Entry &part);
  std::byte *address(const Value &value, int64_t call) const {
    return executor_.devices().address(value.slot, plan_.copyOf(call));
  }
  /// `first` is the number of the first row within the share.
  void copyIn(const Link &input, int64_t call, int64_t first, int64_t rows);
  void copyOut(const Link &output, int64_t call, int64_t first, int64_t rows);

  const Plan &plan_;
  Executor &executor_;
  std::vector<int64_t> calls_;                   ///< by entry that is a part
  std::vector<Links> links_;                     ///< by entry that is a part
  std::map<const Value *, const Value *> gives_; ///< by output of an entry: the part output that provides it
};

} // namespace sluice::runtime
