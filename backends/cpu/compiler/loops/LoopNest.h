// Stages that iterate over the elements of results in memory order, with lanes over the innermost dimension.
//
// Every mapping of a nest to lanes is generated, its cost is estimated from the code, and the cheapest is kept.
#pragma once

#include "backends/cpu/compiler/machine/StageFunction.h"
#include "backends/cpu/compiler/machine/Target.h"
#include "backends/loops/LoopNest.h"

namespace sluice::cpu {

struct EmittedNest {
  Stage stage;
  double lanes = 1; // the share of vector lanes that do work
};

/// The maximum number of columns that a loop down columns computes together. Rows are far apart, typically in different
/// pages, so several cache lines of a row are read at once.
inline constexpr int64_t kColumns = 128;

mlir::FailureOr<EmittedNest> emitLoopNest(const loops::LoopNest &nest, mlir::ModuleOp module, const Target &target,
                                          int64_t capacity);

/// The number of lanes, the same for every element type, so that fusion does not change which elements share a vector.
inline int64_t lanesOf(const Target &target) { return target.lanes(32); }

} // namespace sluice::cpu
