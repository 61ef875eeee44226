// The devices that the compiler chose for ops and states that the user left open: an attribute, from phase `chosen`
// until `place-values` has assigned all devices.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// The device chosen for an op or state; null if none was chosen, or if `op` is null.
inline mlir::StringAttr getChosenDevice(mlir::Operation *op) {
  return op ? op->getAttrOfType<mlir::StringAttr>(ir::kChosenAttr) : mlir::StringAttr();
}

inline void setChosenDevice(mlir::Operation *op, mlir::StringAttr device) { op->setAttr(ir::kChosenAttr, device); }

inline void removeChosenDevices(mlir::ModuleOp module) {
  module.walk([](mlir::Operation *op) { op->removeAttr(ir::kChosenAttr); });
}

} // namespace sluice::passes
