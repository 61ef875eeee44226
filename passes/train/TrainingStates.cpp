#include "passes/train/TrainingStates.h"
#include "passes/place/InheritDevice.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static Value readFirst(Block &body, StateOp state, RankedTensorType type) {
  OpBuilder first = OpBuilder::atBlockBegin(&body);
  return first.create<GetOp>(state.getLoc(), type, FlatSymbolRefAttr::get(state.getSymNameAttr()));
}

Value readState(OpBuilder &builder, StateOp state, RankedTensorType type) {
  Block &body = *builder.getInsertionBlock();
  for (auto get : body.getOps<GetOp>())
    if (get.getStateAttr().getAttr() == state.getSymNameAttr())
      return get.getValue();
  return readFirst(body, state, type);
}

TrainingStates::TrainingStates(MinimizeOp minimize) : builder(minimize->getParentOp()) {
  for (auto state : minimize->getParentOfType<ModuleOp>().getOps<StateOp>())
    states[state.getSymNameAttr()] = state;
}

Value TrainingStates::read(OpBuilder &builder, StateOp state, RankedTensorType type) {
  Block &body = *builder.getInsertionBlock();
  if (reads.empty())
    for (auto get : body.getOps<GetOp>())
      reads.try_emplace(get.getStateAttr().getAttr(), get.getValue());
  Value &value = reads[state.getSymNameAttr()];
  if (!value)
    value = readFirst(body, state, type);
  return value;
}

StringAttr TrainingStates::pinOf(Value value) const {
  auto get = value.getDefiningOp<GetOp>();
  StateOp state = get ? find(get.getStateAttr().getAttr()) : StateOp();
  return state ? getDevice(state.getStoredType()) : passes::pinOf(value);
}

StateOp TrainingStates::create(Location loc, const Twine &name, StateKind kind, RankedTensorType type, double first,
                               FlatSymbolRefAttr of, TypeAttr physical) {
  auto init = InitAttr::get(builder.getContext(), "constant", builder.getF64FloatAttr(first), FloatAttr());
  auto state = builder.create<StateOp>(loc, builder.getStringAttr(name), kind, type, init, of, physical);
  states.try_emplace(state.getSymNameAttr(), state);
  return state;
}

StateOp TrainingStates::createSlot(StateOp parameter, StringRef name) {
  return create(parameter.getLoc(), parameter.getSymName() + "." + name, StateKind::Slot, parameter.getTensorType(),
                /*first=*/0, FlatSymbolRefAttr::get(parameter.getSymNameAttr()), parameter.getPhysicalAttr());
}

} // namespace sluice::passes
