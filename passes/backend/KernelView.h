// The plain C view of a kernel that backends read: its values, ops and attributes, without MLIR.
#pragma once

#include "ir/Dialect.h"
#include "sluice/backend/compile.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Allocator.h"
#include <string>

namespace sluice::passes {

/// Owns the data that the view refers to.
class KernelView {
public:
  /// A `sluice.kernel`, or any other op as a kernel of that op alone.
  explicit KernelView(mlir::Operation *op);
  /// Ops that might share a kernel, each after its producers. Values from elsewhere are operands. No single operation
  /// corresponds to the whole view.
  KernelView(llvm::ArrayRef<mlir::Operation *> ops, mlir::ValueRange results);
  KernelView(const KernelView &) = delete;

  /// Adds bytecode: a module with one entry point that runs the kernel on its inputs.
  void addBytecode(ir::KernelOp kernel);

  const sluice_kernel_view *get() const { return &view; }
  /// The part of the ops that the view cannot represent; empty if it represents all. If not empty, the view may not be
  /// given to a backend.
  llvm::StringRef unsaid() const { return unsaidText; }

private:
  /// Records an unrepresentable part, unless one is recorded already.
  void leaveUnsaid(const llvm::Twine &what);
  sluice_dtype dtypeOf(mlir::Type element);
  llvm::ArrayRef<sluice_layout_dim> layoutOf(mlir::RankedTensorType type);
  void addValue(mlir::Value value);
  void addOp(mlir::Operation *op);
  sluice_attribute_view viewOf(mlir::Operation *op, mlir::NamedAttribute attribute);
  void finish(mlir::ValueRange outputs);
  const char *keep(llvm::StringRef text);
  template <typename T> llvm::ArrayRef<T> keep(llvm::ArrayRef<T> list) { return list.copy(memory); }

  sluice_kernel_view view{};
  llvm::SmallDenseMap<mlir::Value, size_t, 16> numbers;
  llvm::SmallVector<sluice_type_view, 16> values;
  llvm::SmallVector<sluice_op_view> ops;
  llvm::SmallVector<size_t> results;
  std::string unsaidText;
  llvm::BumpPtrAllocator memory; // of lists and strings
};

} // namespace sluice::passes
