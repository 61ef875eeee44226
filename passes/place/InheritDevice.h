// Ops that passes build for another op work where that op works.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// The device that a value is pinned to: by the op that makes it, or with the state that it reads.
mlir::StringAttr pinOf(mlir::Value value);
/// Same as above, in constant time.
mlir::StringAttr pinOf(mlir::Value value, const mlir::SymbolTable &symbols);

/// A copy of a value to wherever its readers work, as if the user had written it.
mlir::Value copyAnywhere(mlir::OpBuilder &builder, mlir::Value value);

/// While it lives, every op that the builder inserts gets a device or a pin (see ir::setDeviceAndPin):
///
///     InheritDevice devices(builder, op);            // that of `op`: the device of its results, or its pin
///     InheritDevice devices(builder, fixed, pin);    // these devices, each may be null
class InheritDevice : public mlir::OpBuilder::Listener {
public:
  InheritDevice(mlir::OpBuilder &builder, mlir::StringAttr fixed, mlir::StringAttr pin)
      : builder(builder), before(builder.getListener()), fixed(fixed), pin(pin) {
    builder.setListener(this);
  }
  InheritDevice(mlir::OpBuilder &builder, mlir::Operation *op) : InheritDevice(builder, fixedOf(op), ir::getPin(op)) {}
  InheritDevice(const InheritDevice &) = delete;
  InheritDevice &operator=(const InheritDevice &) = delete;
  ~InheritDevice() override { builder.setListener(before); }

  void notifyOperationInserted(mlir::Operation *op, mlir::OpBuilder::InsertPoint) override {
    ir::setDeviceAndPin(op, fixed, pin);
  }

private:
  static mlir::StringAttr fixedOf(mlir::Operation *op) {
    return op->getNumResults() ? ir::getDevice(op->getResult(0).getType()) : mlir::StringAttr();
  }

  mlir::OpBuilder &builder;
  mlir::OpBuilder::Listener *before;
  mlir::StringAttr fixed, pin;
};

} // namespace sluice::passes
