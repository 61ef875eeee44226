// Stages that walk over the elements of results in the order of their memory, lanes over the innermost.
//
// Each way to lay a nest on lanes is generated, its cost counted on the code, and the cheapest kept.
#pragma once

#include "backends/cpu/compiler/machine/StageFunction.h"
#include "backends/cpu/compiler/machine/Target.h"
#include "backends/loops/LoopNest.h"

namespace sluice::cpu {

struct EmittedNest {
  Stage stage;
  double lanes = 1; // the share of vector lanes that do work
};

/// Of the rows that a walk down columns passes, each lies in another page: some cache lines of it are taken at once.
inline constexpr int64_t kColumns = 128;

mlir::FailureOr<EmittedNest> emitLoopNest(const loops::LoopNest &nest, mlir::ModuleOp module, const Target &target,
                                          int64_t capacity);

/// Lanes of every element type: fixed, so that the same elements share a vector whatever they are fused with.
inline int64_t lanesOf(const Target &target) { return target.lanes(32); }

} // namespace sluice::cpu
