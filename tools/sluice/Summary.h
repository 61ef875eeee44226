// The summary printed by `sluice compile`.
#pragma once

#include "tools/compiler/Compiler.h"
#include "llvm/Support/raw_ostream.h"

namespace sluice::tool {

void printSummary(llvm::raw_ostream &out, const compiler::Compiled &compiled);

/// {"output", "bytes", "model", "precision", "entries", "parameters", "kernels", "capacity", "replicas",
/// "microbatches", "zero", "optimizer_bytes", "logical_shards", "peak_bytes", "devices": [{"name", "ops", "kernels",
/// "peak_bytes", "state_bytes", "settings"}], "functions", "copies": [{"entry", "copies", "bytes"}], "collectives":
/// [{"entry", "collectives", "bytes"}], "replica_link", "communication": [{"entry", "call_ms", "ms", "exposed_ms",
/// "collectives": [{"name", "kind", "bytes", "ready_ms", "start_ms", "end_ms", "exposed_ms"}]}], "seconds", "phases",
/// "passes": [{"phase", "pass", "seconds"}], "others"}; "others" has such an object for each other device list.
void printSummaryAsJson(llvm::raw_ostream &out, const compiler::Compiled &compiled);

/// One line per phase with its time.
void printPhases(llvm::raw_ostream &out, const compiler::Compiled &compiled);

} // namespace sluice::tool
