#include "passes/parallel/Accumulated.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

Value Kept::get(OpBuilder &builder) const {
  auto its = state;
  return builder.create<GetOp>(its.getLoc(), type, FlatSymbolRefAttr::get(its.getSymNameAttr()));
}

void Kept::set(OpBuilder &builder, Value value) const {
  auto its = state;
  builder.create<SetOp>(its.getLoc(), FlatSymbolRefAttr::get(its.getSymNameAttr()), value);
}

StateOp KeptStates::parameterOf(Value whole) const {
  llvm::SetVector<Operation *> behind;
  behind.insert(whole.user_begin(), whole.user_end());
  StateOp parameter;
  // A clip or a scaled loss depends on all gradients: a value computed from a sum over one parameter updates other
  // parameters too.
  ArrayRef<int64_t> shape = cast<RankedTensorType>(whole.getType()).getShape();
  auto hasItsShape = [&](Type type) { return cast<RankedTensorType>(type).getShape() == shape; };
  for (size_t i = 0; i < behind.size(); ++i) {
    if (llvm::any_of(behind[i]->getResultTypes(), hasItsShape))
      behind.insert(behind[i]->user_begin(), behind[i]->user_end());
    auto set = dyn_cast<SetOp>(behind[i]);
    auto state = set ? symbols.lookup<StateOp>(set.getStateAttr().getAttr()) : StateOp();
    if (!state || state.getKind() != StateKind::Parameter)
      continue;
    if (parameter || !sameShapesAndElements({state.getType()}, {whole.getType()}))
      return {};
    parameter = state;
  }
  return parameter;
}

std::string KeptStates::freeName(const std::string &first, const std::string &base) const {
  std::string name = first;
  for (int number = 2; symbols.lookup(name); ++number)
    name = base + " " + std::to_string(number);
  return name;
}

std::string KeptStates::nameFor(StateOp parameter) const {
  std::string base = parameter ? "accumulator of " + parameter.getSymName().str() : "accumulator";
  return freeName(parameter ? base : base + " 1", base);
}

Kept KeptStates::keep(Value value, RankedTensorType type, CollectiveReduction reduction, StateOp parameter) {
  double first = reduction == CollectiveReduction::Max ? leastOf(type.getElementType()) : 0;
  return make(value, type, nameFor(parameter), first, parameter);
}

Kept KeptStates::keepBeside(const Accumulated &its) {
  CollectiveOp collective = its.collective;
  return keep(its.part, its.kept.type, collective.getReduction(), parameterOf(collective->getResult(0)));
}

Kept KeptStates::keepNumber(Value value, StringRef name, StringAttr followed) {
  auto number = RankedTensorType::get({}, IntegerType::get(entry.getContext(), 64));
  return make(value, withDevice(number, followed), freeName(name.str(), name.str()), /*first=*/0, StateOp());
}

Kept KeptStates::make(Value value, RankedTensorType type, const std::string &name, double first, StateOp parameter) {
  StringAttr device = deviceOf(value);
  auto plain = RankedTensorType::get(type.getShape(), type.getElementType());
  bool liesAlike = parameter && getDevice(parameter.getStoredType()) == device &&
                   sameShapesAndElements({parameter.getType()}, {plain});
  OpBuilder builder(entry);
  auto init = InitAttr::get(builder.getContext(), "constant", builder.getF64FloatAttr(first), FloatAttr());
  auto state =
      builder.create<StateOp>(value.getLoc(), builder.getStringAttr(name), StateKind::Accumulator, plain, init,
                              liesAlike ? FlatSymbolRefAttr::get(parameter.getSymNameAttr()) : FlatSymbolRefAttr(),
                              device ? TypeAttr::get(withDevice(plain, device)) : TypeAttr());
  symbols.insert(state);
  StringAttr followed = getDevice(value.getType()) ? getDevice(value.getType()) : fixed.followed(value);
  return {state, withDevice(plain, followed)};
}

} // namespace sluice::passes
