#include "ir/build/Fold.h"

using namespace mlir;

namespace sluice::ir {

Value fold(ElementBuilder &builder, ArrayRef<int64_t> extents, Type element, double identity, Combine combine,
           llvm::function_ref<Value(ArrayRef<AffineExpr>)> term) {
  auto combineValues = [&](Value a, Value b) -> Value {
    return combine(Lane(builder.builder(), builder.loc(), a), Lane(builder.builder(), builder.loc(), b));
  };
  auto step = [&](ArrayRef<AffineExpr> index, ValueRange sofar) {
    return SmallVector<Value>{combineValues(sofar[0], term(index))};
  };
  auto merge = [&](ValueRange a, ValueRange b) { return SmallVector<Value>{combineValues(a[0], b[0])}; };
  return builder.reduce(extents, builder.constant(identity, getLaneElement(element)), step, merge)[0];
}

} // namespace sluice::ir
