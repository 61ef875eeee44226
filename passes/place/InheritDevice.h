// Ops that passes build for another op run on that op's device.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// The device to which a value's producer, or the state that it reads, is pinned.
mlir::StringAttr pinOf(mlir::Value value);
/// Same as above, in constant time.
mlir::StringAttr pinOf(mlir::Value value, const mlir::SymbolTable &symbols);

/// A copy of a value without a destination: it goes to the device of its consumers, like a `to` of the user.
mlir::Value copyAnywhere(mlir::OpBuilder &builder, mlir::Value value);

/// During its lifetime, every op that the builder inserts gets a device or a pin (see ir::setDeviceAndPin):
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
