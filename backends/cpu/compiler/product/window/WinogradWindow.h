// The stages of a window sum by Winograd's algorithm. Its sums differ from those of the direct sum by a few more
// roundings, and a NaN or an infinity of the input reaches all outputs of the tiles whose patches contain it. They do
// not depend on the number of threads.
#pragma once

#include "backends/cpu/compiler/product/window/WinogradPlan.h"

namespace sluice::cpu {

// Adds the stages to `result`, whose names begin with `name`, and their memory to its workspace, which is at
// `workspace`. The weights of `sum` are in panels, padded with zeros to whole vectors; it has no narrow channels.
void emitWinograd(const StageModule &module, llvm::StringRef name, mlir::Location loc, const WindowSum &sum,
                  const WinogradPlan &plan, Place workspace, const Target &target, Contraction &result);

} // namespace sluice::cpu
