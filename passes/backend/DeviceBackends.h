// The backends of a target's devices: one session per backend, shared by its devices.
#pragma once

#include "ir/Target.h"
#include "passes/backend/Backend.h"
#include "llvm/ADT/StringMap.h"
#include <vector>

namespace sluice::passes {

class DeviceBackends {
public:
  /// Begins the sessions that the module's target needs, each for `cpu` as it understands that and with its own
  /// settings; `tables` has them by name. What people read of code goes into a folder for each backend in `temporaries`,
  /// if that is not empty. Null with a diagnostic if a backend is missing or refuses.
  static std::unique_ptr<DeviceBackends> create(mlir::ModuleOp module,
                                                llvm::ArrayRef<const sluice_backend_compile *> tables,
                                                const std::string &cpu, const BackendSettings &settings = {},
                                                const std::string &temporaries = "");

  const ir::Target &target() const { return devices; }
  /// The backend of the device that the op's results, or operands if it has none, live on.
  Backend &of(mlir::Operation *op) const;
  Backend &of(llvm::StringRef device) const { return *byDevice.lookup(device); }
  /// Why `device` cannot run the op, wherever the op is now, nor the formula that it stands for; empty if it can.
  std::string reasonAgainst(mlir::Operation *op, llvm::StringRef device) const;
  /// Why `device` has no kernel for the op itself; empty if it has. The one rule for every phase: crossings and what
  /// computes nothing need no kernel. A kernel and the formula that its op stands for differ in the order of sums: of the
  /// two, devices with the host's instructions may only have the host's, so that where the op is changes no bits.
  std::string reasonAgainstKernel(mlir::Operation *op, llvm::StringRef device) const;
  /// Why the device of `value` cannot lay it out, or copy it, as `type`; empty if it can.
  std::string reasonAgainstRelayout(mlir::Value value, mlir::Type type) const;
  /// Every session once, in the order of the devices.
  llvm::ArrayRef<std::unique_ptr<Backend>> sessions() const { return backends; }

private:
  DeviceBackends() = default;

  Backend &host() const { return of(ir::kHostDevice); }
  /// Whether the device has other kernels than the host, of the same instructions, by which bits are promised.
  bool roundsAsHost(llvm::StringRef device) const;

  ir::Target devices;
  sluice_compile_services services{};
  std::vector<std::unique_ptr<Backend>> backends;
  llvm::StringMap<Backend *> byDevice;
};

} // namespace sluice::passes
