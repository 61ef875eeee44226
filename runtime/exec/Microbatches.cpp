#include "runtime/exec/Microbatches.h"

namespace sluice::runtime {

Microbatches::Microbatches(const Plan &plan, Executor &executor)
    : plan_(plan), executor_(executor), calls_(plan.entries.size()), links_(plan.entries.size()) {
  for (const Entry &entry : plan.entries)
    for (const CallPart &part : entry.parts)
      connect(entry, plan.entries[part.entry]);
}

void Microbatches::connect(const Entry &entry, const Entry &part) {
  Links &links = links_[numberOf(part)];
  for (const Value &input : part.inputs)
    links.inputs.push_back({&input, entry.findInput(input.name)});
  for (const Value &output : part.outputs) {
    const Value *whole = entry.findOutput(output.name);
    gives_[whole] = &output;
    if (output.rowsDim >= 0)
      links.rowOutputs.push_back({&output, whole});
  }
}

void Microbatches::run(const Entry &entry, const RowShare &share, const RunPart &runPart) {
  int64_t microbatches = plan_.microbatchesFor(entry, share.all);
  for (const CallPart &part : entry.parts) {
    const Entry &its = plan_.entries[part.entry];
    const Links &links = links_[part.entry];
    for (int64_t i = 0; i < (part.when == CallPart::When::each ? microbatches : 1); ++i) {
      RowShare rows = microbatchOf(plan_, share, executor_.devices().replica(), i);
      int64_t call = calls_[part.entry]++, first = rows.first - share.first;
      for (const Link &input : links.inputs)
        copyIn(input, call, first, rows.rows);
      runPart(its, call, rows);
      for (const Link &output : links.rowOutputs)
        copyOut(output, call, first, rows.rows);
    }
  }
}

/// An input without rows is one row, shared by all microbatches.
void Microbatches::copyIn(const Link &input, int64_t call, int64_t first, int64_t rows) {
  executor_.waitForInput(*input.part, call);
  RowBlocks from(*input.whole, plan_), to(*input.part, plan_);
  bool isBatched = input.part->rowsDim >= 0;
  from.copy(address(*input.part, call), to.room, 0, address(*input.whole, 0), from.room, isBatched ? first : 0,
            isBatched ? rows : 1);
}

/// Called before the next microbatch overwrites the output.
void Microbatches::copyOut(const Link &output, int64_t call, int64_t first, int64_t rows) {
  executor_.fetchOutput(*output.part, call, rows);
  RowBlocks from(*output.part, plan_), to(*output.whole, plan_);
  from.copy(address(*output.whole, 0), to.room, first, address(*output.part, call), from.room, 0, rows);
}

const std::byte *Microbatches::output(const Value &output) {
  if (output.rowsDim >= 0)
    return address(output, 0);
  const Value &its = outputOfPart(output);
  int64_t call = calls_[its.entry] - 1;
  executor_.fetchOutput(its, call, /*rows=*/1);
  return address(its, call);
}

} // namespace sluice::runtime
