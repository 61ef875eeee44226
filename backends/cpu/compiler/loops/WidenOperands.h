// Operands of products that are stored in f16 or bf16, as f32 in the kernel's workspace.
//
// The generators of products read f32 and f64. Each operand of halves is widened once, by a stage in front of the product,
// in the layout that it has: its bytes are read once more and twice as many are written and read, which a product of any
// depth outweighs.
#pragma once

#include "backends/cpu/compiler/machine/StageFunction.h"
#include "backends/cpu/compiler/machine/Target.h"
#include "ir/Dialect.h"

namespace sluice::cpu {

class WidenOperands {
public:
  WidenOperands(ir::KernelOp kernel, const StageModule &into, llvm::StringRef name, const Target &target,
                int64_t capacity)
      : kernel(kernel), into(into), name(name), target(target), capacity(capacity) {}

  /// Widens what operands of `root` are of halves.
  mlir::LogicalResult widen(mlir::Operation *root);

  /// Where an operand lies that was widened, in f32 of the workspace.
  std::optional<int64_t> offsetOf(mlir::Value operand) const;

  llvm::ArrayRef<Stage> stages() const { return stages_; }
  int64_t workspaceBytes() const { return bytes; } ///< a multiple of 64

private:
  mlir::LogicalResult widenOne(mlir::BlockArgument operand);

  ir::KernelOp kernel;
  StageModule into;
  llvm::StringRef name;
  const Target &target;
  int64_t capacity, bytes = 0;
  llvm::SmallVector<Stage> stages_;
  llvm::DenseMap<mlir::Value, int64_t> byteOffsets;
};

} // namespace sluice::cpu
