// Grouped convolutions and their gradients, as one convolution per group.
//
//   conv2d %x, %w {groups = 2}   ==>   concat(conv2d %x[:, 0:C/2], %w[0:O/2], conv2d %x[:, C/2:C], %w[O/2:O])
//
// Every sum has the same products, so the reference functions give the same bits either way.
#include "ir/Dialect.h"
#include "ir/ops/Inference.h"

using namespace mlir;

namespace sluice::ir {

namespace {

/// One group of a convolution under construction.
struct Group {
  OpBuilder &builder;
  Location loc;
  int64_t number, count;

  /// The group's share of `x` along `dim`. Call it in separate statements: compilers differ in the evaluation order of
  /// arguments.
  Value of(Value x, unsigned dim) const {
    SmallVector<int64_t> starts(shapeOf(x).size(), 0), ends(shapeOf(x)), steps(shapeOf(x).size(), 1);
    int64_t size = ends[dim] / count;
    starts[dim] = number * size;
    ends[dim] = starts[dim] + size;
    return builder.create<SliceOp>(loc, x, starts, ends, steps);
  }
};

} // namespace

/// Concatenates the result of `build` for each group along `axis`; nothing if there is one group.
static SmallVector<Value> joinGroups(OpBuilder &builder, Location loc, int64_t groups, int64_t axis,
                                     llvm::function_ref<Value(const Group &)> build) {
  if (groups == 1)
    return {};
  SmallVector<Value> parts;
  for (int64_t number = 0; number < groups; ++number)
    parts.push_back(build({builder, loc, number, groups}));
  return {builder.create<ConcatOp>(loc, parts, axis)};
}

SmallVector<Value> Conv2dOp::expand(OpBuilder &builder) {
  return joinGroups(builder, getLoc(), getGroups(), /*axis=*/1, [&](const Group &group) -> Value {
    Value x = group.of(getX(), 1), weight = group.of(getWeight(), 0);
    return builder.create<Conv2dOp>(getLoc(), x, weight, getStride(), getPadding(), getDilation(), /*groups=*/1);
  });
}

SmallVector<Value> Conv2dInputGradOp::expand(OpBuilder &builder) {
  return joinGroups(builder, getLoc(), getGroups(), /*axis=*/1, [&](const Group &group) -> Value {
    Value dy = group.of(getDy(), 1), weight = group.of(getWeight(), 0);
    return builder.create<Conv2dInputGradOp>(getLoc(), dy, weight, getSize(), getStride(), getPadding(), getDilation(),
                                             /*groups=*/1);
  });
}

SmallVector<Value> Conv2dWeightGradOp::expand(OpBuilder &builder) {
  return joinGroups(builder, getLoc(), getGroups(), /*axis=*/0, [&](const Group &group) -> Value {
    Value x = group.of(getX(), 1), dy = group.of(getDy(), 1);
    return builder.create<Conv2dWeightGradOp>(getLoc(), x, dy, getSize(), getStride(), getPadding(), getDilation(),
                                              /*groups=*/1);
  });
}

} // namespace sluice::ir
