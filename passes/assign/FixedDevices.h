// What the user has decided of where an entry point works.
#pragma once

#include "passes/backend/DeviceBackends.h"
#include "llvm/ADT/DenseSet.h"

namespace sluice::passes {

/// Pins say where an op works. `to`, `copy_to` and creation on a device fix where a value lives, and all that is made
/// of it follows. To be found before devices are given to values.
///
/// What `init` makes for a state is pinned where the state lives; that is no wish of the user's. Where that device
/// cannot make it, the host does. Without `backends` every device can.
class FixedDevices {
public:
  explicit FixedDevices(ir::EntryOp entry, const DeviceBackends *backends = nullptr);

  /// The device where the op must work; null if nobody has said.
  mlir::StringAttr of(mlir::Operation *op) const { return devices.lookup(op); }
  /// The device that what is made of a value follows, too; null if nobody has said, or it is the wish of a pin.
  mlir::StringAttr followed(mlir::Value value) const { return fixedValues.lookup(value); }
  /// Whether the op needs no data: constants, and what is made of them alone, are made wherever they are read.
  bool isMadeAnywhere(mlir::Operation *op) const { return madeAnywhere.contains(op); }

private:
  void visit(mlir::Operation &op);
  mlir::StringAttr whereItCan(mlir::Operation *op, mlir::StringAttr pin) const;

  const DeviceBackends *backends;
  bool isInit;

  llvm::DenseMap<mlir::Operation *, mlir::StringAttr> devices;
  llvm::DenseSet<mlir::Operation *> madeAnywhere;
  llvm::DenseMap<mlir::Value, mlir::StringAttr> fixedValues; // by the model's choice, as opposed to a pin's
};

} // namespace sluice::passes
