// Widens the f16 and bf16 operands of products to f32 in the kernel's workspace.
//
// The generators of products read f32 and f64. A stage before the product widens each half-precision operand once and
// keeps its layout. This costs one more read of the operand, and a write and a read of twice as many bytes. A product
// of any depth outweighs that cost. This also applies to operands that a cast in the kernel widens. The exception is
// a weight in panels, which the product widens as it reads it (Matmul::Matrix::half).
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

  /// The operand of the kernel that a cast in the kernel widens to `value`, or `value` if there is no such cast.
  static mlir::Value sourceOf(mlir::Value value);

  /// Widens the half-precision operands of `root`, and those of casts that `root` reads. Skips the operand `left`.
  mlir::LogicalResult widen(mlir::Operation *root, mlir::Value left = {});

  /// The offset of a widened operand in the workspace, in f32 elements; none if the operand was not widened.
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
