#include "ir/build/Fold.h"
#include "ir/Types.h"

using namespace mlir;

namespace sluice::ir {

Value fold(ElementBuilder &builder, ArrayRef<int64_t> extents, Type element, double identity, Combine combine,
           llvm::function_ref<Value(ArrayRef<AffineExpr>)> term) {
  Type sum = getAccumulator(element);
  auto convert = [&](Value value, Type from, Type to) -> Value {
    return castTo(Lane(builder.builder(), builder.loc(), value), to, from.isUnsignedInteger(), to.isUnsignedInteger());
  };
  auto combineValues = [&](Value a, Value b) -> Value {
    return combine(Lane(builder.builder(), builder.loc(), a), Lane(builder.builder(), builder.loc(), b));
  };
  auto step = [&](ArrayRef<AffineExpr> index, ValueRange sofar) {
    return SmallVector<Value>{combineValues(sofar[0], convert(term(index), element, sum))};
  };
  auto merge = [&](ValueRange a, ValueRange b) { return SmallVector<Value>{combineValues(a[0], b[0])}; };
  Value folded = builder.reduce(extents, builder.constant(identity, getLaneElement(sum)), step, merge)[0];
  return convert(folded, sum, element);
}

} // namespace sluice::ir
