// Building blocks of hand-written plans, as JSON.
#pragma once

#include "sluice/runtime/artifact.h"

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::test {

using Json = nlohmann::ordered_json;
using Waits = std::vector<std::pair<int, int>>;

/// A slot of an arena.
Json place(int arena, int offset, int stride = 0);
Json buffer(Json place, int bytes, const char *access);

/// The bytes that a copy moves, and the size of the whole buffer.
struct CopyBytes {
  int fixed, perRow, capacity;
};
Json copyAction(const char *value, const Json &from, const Json &to, const CopyBytes &bytes, const char *when,
                const char *reason, int queue, const Waits &waits);
Json launchAction(int kernel, const std::vector<Json> &buffers, int queue, const Waits &waits);

Json value(const char *name, const char *dtype, const Json &shape, int rowsDim, const Json &place, int bytes);
/// A scalar of type f64, for example an output.
Json scalarValue(const char *name, const Json &place);
/// A scalar state.
Json state(const char *name, const char *kind, const char *dtype, const Json &place, int bytes);
/// An entry with 1024 bytes of transient memory.
Json entry(const char *name, std::vector<Json> inputs, std::vector<Json> outputs, std::vector<Json> actions);
/// A kernel of one stage with one task.
Json kernel(const char *name, int device, int function, double flopsPerRow);

/// A plan without states, kernels and entries for one queue of one CPU. Arena 0 has the states, arena 1 the transient
/// memory of calls.
Json cpuPlan(const char *model, int stateBytes, int transientBytes);

/// The table of functions with `plan` as its plan; both must outlive it.
sluice_artifact artifactOf(const std::string &plan, std::span<const sluice_stage_fn> stages);

} // namespace sluice::test
