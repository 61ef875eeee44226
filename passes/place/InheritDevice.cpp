#include "passes/place/InheritDevice.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

/// `find` returns the state with a name.
static StringAttr pinOf(Value value, llvm::function_ref<StateOp(StringAttr)> find) {
  Operation *op = value.getDefiningOp();
  auto get = dyn_cast_or_null<GetOp>(op);
  if (StateOp state = get ? find(get.getStateAttr().getAttr()) : StateOp())
    return getDevice(state.getStoredType());
  return op ? getPin(op) : StringAttr();
}

StringAttr pinOf(Value value) {
  return pinOf(value, [&](StringAttr name) {
    auto module = value.getDefiningOp()->getParentOfType<ModuleOp>();
    return module ? module.lookupSymbol<StateOp>(name) : StateOp();
  });
}

StringAttr pinOf(Value value, const SymbolTable &symbols) {
  return pinOf(value, [&](StringAttr name) { return symbols.lookup<StateOp>(name); });
}

Value copyAnywhere(OpBuilder &builder, Value value) {
  return builder.create<CopyOp>(value.getLoc(), withDevice(value.getType(), {}), value, CopyReason::To);
}

} // namespace sluice::passes
