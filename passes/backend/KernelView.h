// The plain C view of a kernel that backends read: its values, ops and attributes, without MLIR.
#pragma once

#include "ir/Dialect.h"
#include "sluice/backend/compile.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Allocator.h"
#include <string>

namespace sluice::passes {

/// Views of types and of single ops, each made once. Many kernels may share them as long as no op changes.
class OpViews {
public:
  struct TypeEntry {
    sluice_type_view view;
    llvm::StringRef unsaid; ///< the part that the view cannot represent
  };
  struct OpEntry {
    sluice_op_view view; ///< without operands
    llvm::ArrayRef<const TypeEntry *> results;
    llvm::StringRef unsaid;
  };

  OpViews() = default;
  OpViews(const OpViews &) = delete;

  const TypeEntry &of(mlir::Type type);
  const OpEntry &of(mlir::Operation *op);

private:
  void leaveUnsaid(const llvm::Twine &what);
  sluice_dtype dtypeOf(mlir::Type element);
  llvm::ArrayRef<sluice_layout_dim> layoutOf(mlir::RankedTensorType type);
  sluice_attribute_view viewOf(mlir::Operation *op, mlir::NamedAttribute attribute);
  const char *keep(llvm::StringRef text);
  template <typename T> llvm::ArrayRef<T> keep(llvm::ArrayRef<T> list) { return list.copy(memory); }
  llvm::StringRef takeUnsaid();

  llvm::DenseMap<mlir::Type, const TypeEntry *> types;
  llvm::DenseMap<mlir::Operation *, const OpEntry *> ops;
  std::string unsaid; // of the view under construction
  llvm::BumpPtrAllocator memory;
};

/// Owns the data that the view refers to, apart from shared views of ops.
class KernelView {
public:
  /// A `sluice.kernel`, or any other op as a kernel of that op alone.
  explicit KernelView(mlir::Operation *op);
  /// Ops that might share a kernel, each after its producers. Values from elsewhere are operands. No single operation
  /// corresponds to the whole view, which must not outlive `views`.
  KernelView(llvm::ArrayRef<mlir::Operation *> ops, mlir::ValueRange results, OpViews &views);
  KernelView(const KernelView &) = delete;

  void setName(llvm::StringRef text);
  /// Sets the prefix of the symbols of a kernel that is lowered alone; empty: none.
  void setSymbol(llvm::StringRef text);
  /// Adds bytecode: a module with one entry point that runs the kernel on its inputs.
  void addBytecode(ir::KernelOp kernel);

  const sluice_kernel_view *get() const { return &view; }
  /// The part of the ops that the view cannot represent; empty if it represents all. If not empty, the view may not be
  /// given to a backend.
  llvm::StringRef unsaid() const { return unsaidText; }

private:
  void addOps(llvm::ArrayRef<mlir::Operation *> members, mlir::ValueRange inputs, mlir::ValueRange outputs,
              OpViews &views);

  sluice_kernel_view view{};
  OpViews ownViews;                   // unless they are shared
  llvm::SmallVector<size_t> operands; // of all ops
  llvm::SmallVector<sluice_type_view, 16> values;
  llvm::SmallVector<sluice_op_view> ops;
  llvm::SmallVector<size_t> results;
  std::string name, symbol;
  llvm::StringRef unsaidText;
  llvm::BumpPtrAllocator memory; // of bytecode
};

} // namespace sluice::passes
