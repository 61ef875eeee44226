#include "passes/train/TrainingStates.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

Value readState(OpBuilder &builder, StateOp state, RankedTensorType type) {
  Block &body = *builder.getInsertionBlock();
  for (auto get : body.getOps<GetOp>())
    if (get.getState() == state.getSymName())
      return get.getValue();
  OpBuilder first = OpBuilder::atBlockBegin(&body);
  return first.create<GetOp>(state.getLoc(), type, FlatSymbolRefAttr::get(state.getSymNameAttr()));
}

StateOp TrainingStates::create(Location loc, const Twine &name, StateKind kind, RankedTensorType type, double first,
                               FlatSymbolRefAttr of, TypeAttr physical) {
  auto init = InitAttr::get(builder.getContext(), "constant", builder.getF64FloatAttr(first), FloatAttr());
  return builder.create<StateOp>(loc, builder.getStringAttr(name), kind, type, init, of, physical);
}

StateOp TrainingStates::createSlot(StateOp parameter, StringRef name) {
  return create(parameter.getLoc(), parameter.getSymName() + "." + name, StateKind::Slot, parameter.getTensorType(),
                /*first=*/0, FlatSymbolRefAttr::get(parameter.getSymNameAttr()), parameter.getPhysicalAttr());
}

} // namespace sluice::passes
