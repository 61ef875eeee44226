// Stores the weight matrices that products read in f16 or bf16. A weight is rounded when it is set or loaded, and
// widened when it is read. So products and sums stay in f32:
//
//   %w = sluice.get @w : tensor<3x4xf32>   ==>   %n = sluice.get @w : tensor<3x4xbf16>
//                                                %w = sluice.cast %n {to = f32} : (tensor<3x4xbf16>) -> tensor<3x4xf32>
//
// Inference with few rows, such as text generation, spends most of its time on reading these matrices. Training would
// lose small updates of 16-bit weights, so an entry point that updates such a weight is an error.
#include "ir/build/Node.h"
#include "passes/Passes.h"
#include "passes/place/InheritDevice.h"
#include "passes/train/StoredWeights.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

class WeightNarrowing {
public:
  WeightNarrowing(ModuleOp module, FloatType narrow) : weights(module), builder(module.getContext()), narrow(narrow) {}

  LogicalResult run() {
    for (StateOp state : weights.find()) {
      if (failed(weights.checkUnchanged(state, narrow.isF16() ? "f16" : "bf16")))
        return failure();
      narrowState(state);
    }
    return success();
  }

private:
  void narrowState(StateOp state) {
    state.setTypeAttr(TypeAttr::get(withElement(state.getType(), narrow)));
    if (std::optional<Type> physical = state.getPhysical())
      state.setPhysicalAttr(TypeAttr::get(withElement(*physical, narrow)));
    for (GetOp get : weights.readsOf(state))
      widen(get);
    for (SetOp set : weights.writesOf(state))
      round(set);
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

  StoredWeights weights;
  OpBuilder builder;
  FloatType narrow;
};

} // namespace

LogicalResult narrowWeights(ModuleOp module, Precision stored) {
  return WeightNarrowing(module, typeOf(module.getContext(), stored)).run();
}

} // namespace sluice::passes
