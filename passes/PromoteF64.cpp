// Replaces f32 by f64 in every type and attribute: the same program in double precision.
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinTypes.h"
#include "passes/Passes.h"

using namespace mlir;

namespace sluice::passes {

void promoteToF64(ModuleOp module) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](Float32Type type) -> Type { return Float64Type::get(type.getContext()); });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
}

} // namespace sluice::passes
