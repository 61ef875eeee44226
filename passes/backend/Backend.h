// A backend's compile half, with its C table turned into values and diagnostics.
#pragma once

#include "ir/Work.h"
#include "mlir/IR/AffineMap.h"
#include "sluice/backend/compile.h"
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sluice::passes {

class KernelView;

/// Settings of backends' own, by name: "arch=sm_90" of "cuda".
using BackendSettings = std::map<std::string, std::string>;

/// A layout that an operand or result is liked in.
struct LayoutProposal {
  mlir::AffineMap layout; // null: no preference
  bool required = false;
};

/// What a launch costs, as far as that is known before it is made.
struct LaunchCost {
  ir::Work work;
  std::string kind; ///< launches of a kind reach a like share of the peak
};

/// What a function of a backend's device code needs of a device, as sluice_function_needs has it.
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
  /// The backend that answers `prepare`: itself, or the host's, which then makes the same of a kernel for both.
  llvm::StringRef makerOfKernels() const;
  /// The reason why the backend has no kernel for the op; empty if it has.
  std::string reasonAgainst(mlir::Operation *op);
  /// Whether the last of the ops may join those before it in a launch, of which anything outside reads `results`.
  bool canFuse(llvm::ArrayRef<mlir::Operation *> ops, mlir::ValueRange results);
  /// Whether it has a say in layouts; one that has not takes row-major only.
  bool proposesLayouts() const;
  /// For a value of the op that `kernel` shows alone.
  mlir::FailureOr<LayoutProposal> proposeLayout(const KernelView &kernel, bool isResult, unsigned number);
  /// The cost of ops as one launch, which reads `inputs` and leaves `outputs`: as the ops say, unless the backend knows
  /// better.
  LaunchCost cost(llvm::ArrayRef<mlir::Operation *> ops, mlir::ValueRange inputs, mlir::ValueRange outputs);
  mlir::FailureOr<sluice_launch_info> prepare(ir::KernelOp kernel);
  /// The code of all prepared kernels; of kind SLUICE_BLOB_NONE if they need none.
  mlir::FailureOr<sluice_blob> lower(mlir::Location loc);
  /// What is known of the functions in a blob of `lower`.
  std::vector<FunctionNeeds> needsIn(const sluice_blob &blob) const;
  sluice_target_info describe() const;

private:
  Backend(const sluice_backend_compile &table, sluice_session *session, int64_t capacity)
      : table(table), session(session), capacity(capacity) {}
  const sluice_backend_compile &table;
  sluice_session *session;
  int64_t capacity;
};

} // namespace sluice::passes
