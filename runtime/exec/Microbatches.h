// Calls of entry points that are done in parts, of one replica: its share of the rows is cut into microbatches, for
// each of which the parts that are `each` run, and what they give of rows is put together again. The host holds the rows
// of the whole call where the plan says that the entry's inputs and outputs lie.
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

  /// Puts call number `call` of a part into the queues, with these rows.
  using RunPart = std::function<void(const Entry &part, int64_t call, const RowShare &rows)>;
  /// Does a call of an entry that has parts, on this replica's share of its rows. Every replica does as many
  /// microbatches as the one with most rows, or all of its logical shards.
  void run(const Entry &entry, const RowShare &share, const RunPart &runPart);

  /// Where the host has an output of the last call: with rows, those of the whole call.
  const std::byte *output(const Value &output);
  /// The part that gives an output, and what it is there.
  const Value &outputOfPart(const Value &output) const { return *gives_.at(&output); }
  /// How often a part has run.
  int64_t calls(const Entry &part) const { return calls_[numberOf(part)]; }

private:
  /// What one part takes or gives, with rows or without, and where it lies for the whole call.
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
  /// `first` is the number of the first row among those of the share.
  void copyIn(const Link &input, int64_t call, int64_t first, int64_t rows);
  void copyOut(const Link &output, int64_t call, int64_t first, int64_t rows);

  const Plan &plan_;
  Executor &executor_;
  std::vector<int64_t> calls_; ///< of each entry that is a part
  std::vector<Links> links_;   ///< the same
  std::map<const Value *, const Value *> gives_;
};

} // namespace sluice::runtime
