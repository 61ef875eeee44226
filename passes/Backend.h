// A backend's compile half, with its C table turned into values and diagnostics.
#pragma once

#include "ir/Dialect.h"
#include "mlir/IR/AffineMap.h"
#include "sluice/backend/compile.h"
#include <memory>

namespace sluice::passes {

/// A layout that an operand or result is liked in.
struct LayoutProposal {
  mlir::AffineMap layout; // null: no preference
  bool required = false;
};

class Backend {
public:
  /// Begins a session; null with a diagnostic at `loc` if the backend refuses the target.
  static std::unique_ptr<Backend> create(const sluice_backend_compile &table, const sluice_target_options &options,
                                         mlir::Location loc);
  ~Backend();

  llvm::StringRef name() const { return table.name; }
  /// The reason why the backend cannot run the op; empty if it can.
  std::string reasonAgainst(mlir::Operation *op);
  /// Whether the ops may share a launch.
  bool canFuse(llvm::ArrayRef<mlir::Operation *> ops);
  mlir::FailureOr<LayoutProposal> proposeLayout(mlir::Operation *op, bool isResult, unsigned number);
  mlir::FailureOr<sluice_launch_info> prepare(ir::KernelOp kernel);
  /// The code of all prepared kernels; of kind SLUICE_BLOB_NONE if they need none.
  mlir::FailureOr<sluice_blob> lower(mlir::Location loc);
  sluice_target_info describe() const;

private:
  Backend(const sluice_backend_compile &table, sluice_session *session) : table(table), session(session) {}
  const sluice_backend_compile &table;
  sluice_session *session;
};

} // namespace sluice::passes
