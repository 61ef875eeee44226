// The backends of a target's devices: one session per backend, shared by its devices.
#pragma once

#include "ir/Target.h"
#include "passes/backend/Backend.h"
#include "sluice/compile_options.h"
#include "llvm/ADT/StringMap.h"
#include <vector>

namespace sluice::passes {

class DeviceBackends {
public:
  /// Begins the sessions for the module's target. Each session gets the options that concern it; `tables` maps
  /// names to backends. Texts of kernels go to the folder `kernelTexts`, unless that is empty. Null with a diagnostic
  /// if a backend is missing or refuses.
  static std::unique_ptr<DeviceBackends> create(mlir::ModuleOp module,
                                                llvm::ArrayRef<const sluice_backend_compile *> tables,
                                                const CompileOptions &options, const std::string &kernelTexts = "");

  const ir::Target &target() const { return devices; }
  /// The backend of the device of the op's results, or of its operands if it has no results.
  Backend &of(mlir::Operation *op) const;
  Backend &of(llvm::StringRef device) const { return *byDevice.lookup(device); }
  /// The reason why `device` can run neither the op nor its formula, regardless of the op's current device; empty if it
  /// can.
  std::string reasonAgainst(mlir::Operation *op, llvm::StringRef device) const;
  /// The reason why `device` has no kernel for the op itself; empty if it has one. All phases use this rule: crossings
  /// and ops without computation need no kernel. A kernel and its op's formula differ in the order of sums. A device
  /// with the host's instructions may therefore only use the variant that the host uses, so that placement never
  /// changes bits.
  std::string reasonAgainstKernel(mlir::Operation *op, llvm::StringRef device) const;
  /// The reason why the device of `value` cannot relayout or copy it to `type`; empty if it can.
  std::string reasonAgainstRelayout(mlir::Value value, mlir::Type type) const;
  /// Every session once, in device order.
  llvm::ArrayRef<std::unique_ptr<Backend>> sessions() const { return backends; }

private:
  DeviceBackends() = default;

  Backend &host() const { return of(ir::kHostDevice); }
  /// Whether the device promises the host's bits: it uses the host's instructions but its own kernels.
  bool roundsAsHost(llvm::StringRef device) const;

  ir::Target devices;
  sluice_compile_services services{};
  std::vector<std::unique_ptr<Backend>> backends;
  llvm::StringMap<Backend *> byDevice;
};

} // namespace sluice::passes
