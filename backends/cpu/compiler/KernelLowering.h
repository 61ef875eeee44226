// Lowers one `sluice.kernel` to the stage functions that run it.
//
// Three generators share the work. The contraction generator handles a product or convolution, with its elementwise
// consumers as the epilogue. The attention generator handles attention. The loop generator handles every other kernel.
// Buffers are the kernel's operands, its results, then its workspace.
#pragma once

#include "backends/cpu/compiler/machine/StageFunction.h"
#include "backends/cpu/compiler/machine/Target.h"
#include "ir/Work.h"

namespace sluice::cpu {

struct LoweredKernel {
  llvm::SmallVector<Stage> stages; // run in this order
  int64_t workspaceBytes = 0;
  ir::Work work;
  double lanes = 1;      // share of the vector lanes that the shapes can fill
  bool hasBodies = true; // of the stage functions; see StageModule
};

/// Whether the op is a grouped convolution, or a gradient of one, whose groups are each large enough for a separate
/// product. Convolutions with many small groups, such as depthwise ones, become one loop nest, so that code size does
/// not grow with the number of groups.
bool hasLargeGroups(mlir::Operation *op);

/// Adds the kernel's stage functions to `into`; their names begin with `name`. Only stages of products and attention
/// can omit their bodies, because loop nests are chosen by their generated code. Fails with a diagnostic on the op that
/// cannot be lowered.
///
/// A result may share the memory of an operand of the same type if the operand is only read elementwise, by ops whose
/// results are yielded or are elementwise operands of such ops.
mlir::FailureOr<LoweredKernel> lowerKernel(ir::KernelOp kernel, const StageModule &into, llvm::StringRef name,
                                           const Target &target, int64_t capacity);

} // namespace sluice::cpu
