// Ops that passes build for another op work where that op works.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// While it lives, every op that the builder inserts gets a place (see ir::setPlace):
///
///     InheritPlace place(builder, op);              // that of `op`: the device of its results, or its pin
///     InheritPlace place(builder, fixed, pin);      // these devices, each may be null
class InheritPlace : public mlir::OpBuilder::Listener {
public:
  InheritPlace(mlir::OpBuilder &builder, mlir::StringAttr fixed, mlir::StringAttr pin)
      : builder(builder), before(builder.getListener()), fixed(fixed), pin(pin) {
    builder.setListener(this);
  }
  InheritPlace(mlir::OpBuilder &builder, mlir::Operation *op) : InheritPlace(builder, fixedOf(op), ir::getPin(op)) {}
  InheritPlace(const InheritPlace &) = delete;
  InheritPlace &operator=(const InheritPlace &) = delete;
  ~InheritPlace() override { builder.setListener(before); }

  void notifyOperationInserted(mlir::Operation *op, mlir::OpBuilder::InsertPoint) override {
    ir::setPlace(op, fixed, pin);
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
