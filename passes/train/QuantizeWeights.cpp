// Stores the weight matrices that products read in blocks of bytes with f16 scales (sluice/backend/blocks.h). A weight
// is quantized when it is set or loaded. Products and sums stay in f32:
//
//   %w = sluice.get @w : tensor<3x64xf32>
//   %y = sluice.einsum "ab,cb->ac" %x, %w
//     ==>
//   sluice.state parameter @w : tensor<3x64xui8>
//   sluice.state scales @w.scales : tensor<3x2xf16> of @w
//   %q = sluice.get @w : tensor<3x64xui8>
//   %s = sluice.get @w.scales : tensor<3x2xf16>
//   %w = sluice.dequantize_blocks %q, %s {axis = 1}
//
// Blocks are along the dimension that products sum over. A weight stays in f32, with a warning, if products sum over
// different dimensions, if the dimension is no multiple of a block, or if the weight begins with data of a file.
#include "ir/build/BlockFormula.h"
#include "passes/Passes.h"
#include "passes/place/InheritDevice.h"
#include "passes/train/StoredWeights.h"
#include "sluice/backend/blocks.h"
#include <set>

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

class WeightQuantization {
public:
  explicit WeightQuantization(ModuleOp module) : weights(module), symbols(module), builder(module.getContext()) {}

  LogicalResult run() {
    for (StateOp state : weights.find()) {
      if (failed(weights.checkUnchanged(state, "q8_0")))
        return failure();
      if (std::optional<int64_t> axis = findAxis(state))
        quantizeState(state, *axis);
    }
    return success();
  }

private:
  std::optional<int64_t> findAxis(StateOp state);
  void quantizeState(StateOp state, int64_t axis);
  StateOp createScales(StateOp state, int64_t axis);
  void dequantize(GetOp get, StateOp scales, int64_t axis);
  void quantize(SetOp set, StateOp scales, int64_t axis);

  StoredWeights weights;
  SymbolTable symbols;
  OpBuilder builder;
};

} // namespace

/// The dimensions of a weight that products sum over.
static std::set<unsigned> summedDims(ArrayRef<GetOp> reads) {
  std::set<unsigned> summed;
  for (GetOp get : reads)
    for (OpOperand &use : get->getUses())
      if (auto product = dyn_cast<ContractionOp>(use.getOwner()))
        for (unsigned dim : product.getSummedDims(use.getOperandNumber()))
          summed.insert(dim);
  return summed;
}

/// The dimension of the blocks; none, with a warning, if the weight stays in f32.
std::optional<int64_t> WeightQuantization::findAxis(StateOp state) {
  auto stays = [&](const Twine &why) {
    state.emitWarning("'") << state.getSymName() << "' stays in f32: " << why;
    return std::nullopt;
  };
  if (state.getInit().isData())
    return stays("it begins with data of a file");
  std::set<unsigned> summed = summedDims(weights.readsOf(state));
  if (summed.size() != 1)
    return stays(summed.empty() ? "no product sums over a dimension of it"
                                : "products sum over both of its dimensions");
  int64_t size = state.getTensorType().getDimSize(*summed.begin());
  if (size % SLUICE_BLOCK_ELEMENTS != 0)
    return stays("products sum over " + Twine(size) + " elements, which is no multiple of " +
                 Twine(int64_t(SLUICE_BLOCK_ELEMENTS)));
  return *summed.begin();
}

static InitAttr zeros(Builder &builder) {
  return InitAttr::get(builder.getContext(), "constant", builder.getF64FloatAttr(0), FloatAttr());
}

/// The type of the scales, on the same device.
static RankedTensorType typeOfScales(Type elements, int64_t axis) {
  SmallVector<int64_t> shape(cast<RankedTensorType>(elements).getShape());
  shape[axis] /= SLUICE_BLOCK_ELEMENTS;
  return withShape(withElement(elements, Float16Type::get(elements.getContext())), shape);
}

StateOp WeightQuantization::createScales(StateOp state, int64_t axis) {
  std::string name = (state.getSymName() + ".scales").str();
  while (symbols.lookup(name))
    name += "_";
  builder.setInsertionPointAfter(state);
  std::optional<Type> physical = state.getPhysical();
  auto scales = builder.create<StateOp>(state.getLoc(), builder.getStringAttr(name), StateKind::Scales,
                                        typeOfScales(state.getTensorType(), axis), zeros(builder),
                                        FlatSymbolRefAttr::get(state.getSymNameAttr()),
                                        physical ? TypeAttr::get(typeOfScales(*physical, axis)) : TypeAttr());
  symbols.insert(scales);
  return scales;
}

void WeightQuantization::quantizeState(StateOp state, int64_t axis) {
  StateOp scales = createScales(state, axis);
  Type byte = builder.getIntegerType(8, /*isSigned=*/false);
  for (GetOp get : weights.readsOf(state)) {
    get.getValue().setType(withElement(get.getValue().getType(), byte));
    dequantize(get, scales, axis);
  }
  for (SetOp set : weights.writesOf(state))
    quantize(set, scales, axis);
  state.setTypeAttr(TypeAttr::get(withElement(state.getType(), byte)));
  if (std::optional<Type> physical = state.getPhysical())
    state.setPhysicalAttr(TypeAttr::get(withElement(*physical, byte)));
  state.setInitAttr(zeros(builder)); // entry point `init` sets the blocks
}

void WeightQuantization::dequantize(GetOp get, StateOp scales, int64_t axis) {
  Value elements = get.getValue();
  builder.setInsertionPointAfter(get);
  InheritDevice devices(builder, getDevice(elements.getType()), pinOf(elements));
  Value read = builder.create<GetOp>(get.getLoc(), typeOfScales(elements.getType(), axis),
                                     FlatSymbolRefAttr::get(scales.getSymNameAttr()));
  Value wide = dequantized({Node(builder, get.getLoc(), elements), Node(builder, get.getLoc(), read)}, axis);
  elements.replaceAllUsesExcept(wide, wide.getDefiningOp());
}

void WeightQuantization::quantize(SetOp set, StateOp scales, int64_t axis) {
  builder.setInsertionPoint(set);
  Value value = set.getValue();
  InheritDevice devices(builder, getDevice(value.getType()), pinOf(value));
  Blocks blocks = quantized(Node(builder, set.getLoc(), value), axis);
  set.getValueMutable().assign(blocks.elements);
  builder.create<SetOp>(set.getLoc(), FlatSymbolRefAttr::get(scales.getSymNameAttr()), blocks.scales.value);
}

LogicalResult quantizeWeights(ModuleOp module) { return WeightQuantization(module).run(); }

} // namespace sluice::passes
