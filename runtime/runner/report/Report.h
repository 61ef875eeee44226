// `--report`: what the plan predicts of copies and memory, beside what was counted.
#pragma once

#include "runtime/base/Json.h"
#include "runtime/instance/Instance.h"

namespace sluice::runtime {

/// The copies of an entry's calls, as the plan has them; `bytes` are those of a call with `rows` rows, or of its first
/// microbatch, and "times" says how often where that is not once.
Json plannedCopies(const Plan &plan, const Entry &entry, int64_t rows);

/// "4 microbatches of 16 rows"
std::string microbatchesText(int64_t microbatches, int64_t rows);

/// {"kept", "replays"}: the sequences of kernels that are kept, and how often one was replayed.
Json sequencesJson(const ReplayCount &count);

/// Waits for all work, then, where "replica" is there only if there are several, and "collectives", too:
///   {"entries": [{"name", "calls", "copies": [...], "per_call": {"copies", "bytes"}}],
///    "copies": [{"from", "to", "predicted", "executed", "engine": {"copies", "bytes"}}],   one for each pair of
///    devices "reasons": [{"from", "to", "reason", "copies", "bytes"}], "mirrors_refreshed": 1,
///    "sequences": {"kept", "replays"}, "memory": [{"device",
///    "predicted_bytes", "allocated_bytes", "taken_bytes"}], "collectives": [{"kind",
///    "predicted": {"exchanges", "bytes"}, "executed", "engine"}]}
/// The copies of an entry are those of the first replica's share of the rows, `per_call` is of all replicas in this process.
/// `engine` is what the backend itself counted, null if it does not count; `allocated_bytes` were asked for, of an accelerator
/// at once; `taken_bytes` is what the device says that the instance took of it, null for the host.
Json reportOf(Instance &instance);

/// The same as lines for people.
void printReport(const Json &report);

} // namespace sluice::runtime
