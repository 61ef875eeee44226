// From one `sluice.kernel` to the stage functions that run it.
//
// A kernel with a product or convolution is made by the contraction generator, with its elementwise consumers as
// epilogue; attention by that of attention; every other kernel by the loop generator. Buffers are the kernel's operands, its results, then its
// workspace.
#pragma once

#include "backends/cpu/compiler/machine/StageFunction.h"
#include "backends/cpu/compiler/machine/Target.h"
#include "ir/Work.h"

namespace sluice::cpu {

struct LoweredKernel {
  llvm::SmallVector<Stage> stages; // run in this order
  int64_t workspaceBytes = 0;
  ir::Work work;
  double lanes = 1; // share of the vector lanes that the shapes can fill
  bool hasBodies = true;
};

/// Whether the op is a convolution in groups, or a gradient of one, in which each group is worth a product of its own.
/// Those in many small groups, such as depthwise ones, are one loop nest, so that no kernel grows with their number.
bool hasLargeGroups(mlir::Operation *op);

/// A name that no function of the module begins with, as those of a kernel's stages do.
std::string uniqueName(mlir::ModuleOp module, llvm::StringRef wanted);

/// Adds the kernel's stage functions to `into`; their names begin with `name`. Only those of products and attention can be
/// without bodies: loop nests are chosen by what they become. Fails with a diagnostic on the op that cannot be lowered.
///
/// A result may lie where an operand of the same type lies if the operand is only read elementwise, by ops whose
/// results are yielded or elementwise operands of such ops.
mlir::FailureOr<LoweredKernel> lowerKernel(ir::KernelOp kernel, const StageModule &into, llvm::StringRef name,
                                           const Target &target, int64_t capacity);

} // namespace sluice::cpu
