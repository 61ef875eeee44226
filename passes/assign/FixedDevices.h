// Devices that the user chose for an entry point.
#pragma once

#include "passes/backend/DeviceBackends.h"
#include "llvm/ADT/DenseSet.h"

namespace sluice::passes {

/// A pin fixes the device of an op. `to`, `copy_to` and creation on a device fix the device of a value, and every value
/// computed from it follows. Compute this before values are given devices.
///
/// The ops of a state's `init` are pinned to the state's device, but not by the user: the host computes them if that
/// device cannot. Without `backends` every device can run every op.
class FixedDevices {
public:
  explicit FixedDevices(ir::EntryOp entry, const DeviceBackends *backends = nullptr);

  /// The device on which the op must run; null if the user chose none.
  mlir::StringAttr of(mlir::Operation *op) const { return devices.lookup(op); }
  /// The device that values computed from this value follow; null if the user chose none, or only by a pin.
  mlir::StringAttr followed(mlir::Value value) const { return fixedValues.lookup(value); }
  /// Whether the op needs no data: constants, and values computed from constants alone, are computed on each reader's
  /// device.
  bool isMadeAnywhere(mlir::Operation *op) const { return madeAnywhere.contains(op); }

private:
  void visit(mlir::Operation &op);
  mlir::StringAttr whereItCan(mlir::Operation *op, mlir::StringAttr pin) const;

  const DeviceBackends *backends;
  bool isInit;

  llvm::DenseMap<mlir::Operation *, mlir::StringAttr> devices;
  llvm::DenseSet<mlir::Operation *> madeAnywhere;
  llvm::DenseMap<mlir::Value, mlir::StringAttr> fixedValues; // chosen by the model, not by a pin
};

} // namespace sluice::passes
