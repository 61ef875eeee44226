// A backend's compile half, with its C table converted to values and diagnostics.
#pragma once

#include "ir/Work.h"
#include "mlir/IR/AffineMap.h"
#include "passes/backend/KernelKey.h"
#include "sluice/backend/compile.h"
#include <memory>
#include <string>
#include <vector>

namespace sluice::passes {

class KernelView;

/// The preferred layout of an operand or result.
struct LayoutProposal {
  mlir::AffineMap layout; // null: no preference
  bool required = false;
};

/// The cost of a launch, as far as known before it is compiled.
struct LaunchCost {
  ir::Work work;
  std::string kind; ///< launches of one kind reach about the same share of the peak
};

/// Resources that a function of a backend's device code requires of a device, as in sluice_function_needs.
struct FunctionNeeds {
  std::string backend, function, target;
  int64_t registers, spilledBytes, stackBytes, sharedBytes;
};

class Backend {
public:
  /// Begins a session; null with a diagnostic at `loc` if the backend refuses the target.
  static std::unique_ptr<Backend> create(const sluice_backend_compile &table, const sluice_target_options &options,
                                         mlir::Location loc);
  ~Backend();

  llvm::StringRef name() const { return table.name; }
  /// The backend that implements `prepare`: this one, or the host's, in which case the kernels of both are identical.
  llvm::StringRef makerOfKernels() const;
  /// The reason why the backend has no kernel for the op; empty if it has.
  std::string reasonAgainst(mlir::Operation *op);
  /// Whether the last op of a view of several ops may join the ops before it in one launch. The view's results are the
  /// values read outside the launch.
  bool canFuse(const KernelView &kernel);
  /// Whether the backend proposes layouts; if not, it accepts row-major only.
  bool proposesLayouts() const;
  /// The proposal for an operand or a result, by its number, of the only op of `kernel`.
  mlir::FailureOr<LayoutProposal> proposeLayout(const KernelView &kernel, bool isResult, unsigned number);
  /// The cost of ops as one launch that reads `inputs` and writes `outputs`: the backend's figure, else that of the
  /// ops.
  LaunchCost cost(llvm::ArrayRef<mlir::Operation *> ops, mlir::ValueRange inputs, mlir::ValueRange outputs);
  /// `name`: of the kernel for the backend, which names files after it; empty: the kernel's own. `symbol`: of its key,
  /// for `lowerKernels`; empty: for `lower`.
  mlir::FailureOr<sluice_launch_info> prepare(ir::KernelOp kernel, llvm::StringRef name = "",
                                              llvm::StringRef symbol = "");
  /// The code of all prepared kernels; of kind SLUICE_BLOB_NONE if they need none.
  mlir::FailureOr<sluice_blob> lower(mlir::Location loc);
  /// Whether the backend lowers single kernels, whose code can be reused in other sessions.
  bool lowersKernels() const;
  /// The kernel's identity in all sessions.
  KernelKey keyOf(ir::KernelOp kernel) const;
  /// The host object of each kernel, by the symbols that they were prepared with; empty if a kernel needs no code.
  mlir::FailureOr<std::vector<std::string>> lowerKernels(llvm::ArrayRef<std::string> symbols, mlir::Location loc);
  /// The known requirements of the functions in a blob of `lower`.
  std::vector<FunctionNeeds> needsIn(const sluice_blob &blob) const;
  sluice_target_info describe() const;

private:
  Backend(const sluice_backend_compile &table, sluice_session *session, const sluice_target_options &options);
  const sluice_backend_compile &table;
  sluice_session *session;
  int64_t capacity;
  std::string target; // the backend and its options, for keys
};

} // namespace sluice::passes
