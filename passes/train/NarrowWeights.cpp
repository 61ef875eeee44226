// Stores the weight matrices that products read in f16 or bf16. A weight is rounded when it is set or loaded, and
// widened when it is read. So products and sums stay in f32:
//
//   %w = sluice.get @w : tensor<3x4xf32>   ==>   %n = sluice.get @w : tensor<3x4xbf16>
//                                                %w = sluice.cast %n {to = f32} : (tensor<3x4xbf16>) -> tensor<3x4xf32>
//
// Inference with few rows, such as text generation, spends most of its time on reading these matrices. Training would
// lose small updates of 16-bit weights, so an entry point that updates such a weight is an error.
#include "ir/Module.h"
#include "ir/build/Node.h"
#include "passes/Passes.h"
#include "passes/place/InheritDevice.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

class WeightNarrowing {
public:
  WeightNarrowing(ModuleOp module, FloatType narrow) : module(module), builder(module.getContext()), narrow(narrow) {
    module.walk([&](GetOp get) { gets[get.getState()].push_back(get); });
    module.walk([&](SetOp set) { sets[set.getState()].push_back(set); });
    for (auto state : module.getOps<StateOp>())
      if (state.getLike())
        for (StringRef name : {state.getSymName(), *state.getLike()})
          copies.insert(name);
  }

  LogicalResult run() {
    for (auto state : module.getOps<StateOp>())
      if (isWeight(state) && failed(narrowState(state)))
        return failure();
    return success();
  }

private:
  bool isWeight(StateOp state) {
    auto type = cast<RankedTensorType>(state.getType());
    return state.getKind() == StateKind::Parameter && type.getRank() == 2 && type.getElementType().isF32() &&
           !copies.contains(state.getSymName()) && llvm::any_of(gets[state.getSymName()], [](GetOp get) {
             return llvm::any_of(get->getUsers(), [](Operation *user) { return isa<ContractionOp>(user); });
           });
  }

  LogicalResult narrowState(StateOp state) {
    for (SetOp set : sets[state.getSymName()])
      if (auto entry = set->getParentOfType<EntryOp>(); entry.getSymName() != "init")
        return entry.emitError("cannot store weights in ")
               << narrow << ": '" << entry.getSymName() << "' updates '" << state.getSymName()
               << "'; compile entry points for inference only, for example --entries predict";
    state.setTypeAttr(TypeAttr::get(withElement(state.getType(), narrow)));
    if (std::optional<Type> physical = state.getPhysical())
      state.setPhysicalAttr(TypeAttr::get(withElement(*physical, narrow)));
    for (GetOp get : gets[state.getSymName()])
      widen(get);
    for (SetOp set : sets[state.getSymName()])
      round(set);
    return success();
  }

  void widen(GetOp get) {
    Value value = get.getValue();
    Type wide = cast<RankedTensorType>(value.getType()).getElementType();
    builder.setInsertionPointAfter(get);
    value.setType(withElement(value.getType(), narrow));
    Value cast = castIn(value, wide);
    value.replaceAllUsesExcept(cast, cast.getDefiningOp());
  }

  void round(SetOp set) {
    builder.setInsertionPoint(set);
    set.getValueMutable().assign(castIn(set.getValue(), narrow));
  }

  Value castIn(Value value, Type element) {
    InheritDevice devices(builder, getDevice(value.getType()), pinOf(value));
    return castTo(Node(builder, value.getLoc(), value), element);
  }

  ModuleOp module;
  OpBuilder builder;
  FloatType narrow;
  llvm::StringMap<SmallVector<GetOp>> gets; // by the name of the state
  llvm::StringMap<SmallVector<SetOp>> sets;
  llvm::StringSet<> copies; // states that begin as a copy, and their sources
};

} // namespace

LogicalResult narrowWeights(ModuleOp module, Precision stored) {
  return WeightNarrowing(module, typeOf(module.getContext(), stored)).run();
}

} // namespace sluice::passes
