// `--report`: predicted copies and memory of the plan, with the measured counts.
#pragma once

#include "runtime/base/Json.h"
#include "runtime/instance/Instance.h"

namespace sluice::runtime {

/// The copies of an entry's calls in the plan. `bytes` are for a call with `rows` rows, or for its first microbatch;
/// "times" is the number of executions if not 1.
Json plannedCopies(const Plan &plan, const Entry &entry, int64_t rows);

/// "4 microbatches of 16 rows".
std::string microbatchesText(int64_t microbatches, int64_t rows);

/// {"kept", "replays"}: the numbers of captured kernel sequences and of their replays.
Json sequencesJson(const ReplayCount &count);

/// Waits for all work and returns the report. "replica" and "collectives" are present only if there are several
/// replicas.
///   {"entries": [{"name", "calls", "copies": [...], "per_call": {"copies", "bytes"}}],
///    "copies": [{"from", "to", "predicted", "executed", "engine": {"copies", "bytes"}}],   one for each device pair
///    "reasons": [{"from", "to", "reason", "copies", "bytes"}], "mirrors_refreshed": 1,
///    "sequences": {"kept", "replays"},
///    "memory": [{"device", "predicted_bytes", "allocated_bytes", "taken_bytes"}],
///    "collectives": [{"kind", "predicted": {"exchanges", "bytes"}, "executed", "engine"}]}
/// The copies of an entry are those of the first replica's share of the rows; `per_call` covers all replicas in this
/// process. `engine` is the backend's own count, null if it does not count. `allocated_bytes` were requested, for an
/// accelerator in one allocation. `taken_bytes` is the device's report of the instance's memory, null for the host.
Json reportOf(Instance &instance);

/// Prints the report as text for users.
void printReport(const Json &report);

} // namespace sluice::runtime
