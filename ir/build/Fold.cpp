#include "ir/build/Fold.h"
#include "ir/Types.h"

using namespace mlir;

namespace sluice::ir {

static Value convert(ElementBuilder &builder, Value value, Type from, Type to) {
  return castTo(Lane(builder.builder(), builder.loc(), value), to, from.isUnsignedInteger(), to.isUnsignedInteger());
}

static Value combined(ElementBuilder &builder, Combine combine, Value a, Value b) {
  return combine(Lane(builder.builder(), builder.loc(), a), Lane(builder.builder(), builder.loc(), b));
}

Value accumulate(ElementBuilder &builder, ArrayRef<int64_t> extents, Type element, double identity, Combine combine,
                 llvm::function_ref<Value(ArrayRef<AffineExpr>, Value)> step) {
  Type sum = getAccumulator(element);
  auto next = [&](ArrayRef<AffineExpr> index, ValueRange before) { return SmallVector<Value>{step(index, before[0])}; };
  auto merge = [&](ValueRange a, ValueRange b) { return SmallVector<Value>{combined(builder, combine, a[0], b[0])}; };
  Value folded = builder.reduce(extents, builder.constant(identity, getLaneElement(sum)), next, merge)[0];
  return convert(builder, folded, sum, element);
}

Value fold(ElementBuilder &builder, ArrayRef<int64_t> extents, Type element, double identity, Combine combine,
           llvm::function_ref<Value(ArrayRef<AffineExpr>)> term) {
  return accumulate(builder, extents, element, identity, combine, [&](ArrayRef<AffineExpr> index, Value before) {
    return combined(builder, combine, before, convert(builder, term(index), element, getAccumulator(element)));
  });
}

} // namespace sluice::ir
