// Replaces f32 by f64 in every type and attribute: the same program in double precision.
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "passes/Passes.h"

using namespace mlir;

namespace sluice::passes {

static Attribute widenElements(DenseFPElementsAttr elements) {
  if (!elements.getElementType().isF32())
    return elements;
  return elements.mapValues(Float64Type::get(elements.getContext()), [](const APFloat &value) {
    return APFloat(double(value.convertToFloat())).bitcastToAPInt();
  });
}

void promoteToF64(ModuleOp module) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](Float32Type type) -> Type { return Float64Type::get(type.getContext()); });
  replacer.addReplacement(widenElements);
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
}

} // namespace sluice::passes
