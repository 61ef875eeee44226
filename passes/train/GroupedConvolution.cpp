// Replaces a convolution in a few large groups by one convolution a group: a product each. Convolutions in many small
// groups, such as depthwise ones, stay one op, so that no kernel grows with the number of groups.
//
//   conv2d %x, %w {groups = 2}   ==>   concat(conv2d %x[:, 0:C/2], %w[0:O/2], conv2d %x[:, C/2:C], %w[O/2:O])
//
// Runs before differentiation, so that the gradients need no groups either.
#include "passes/Passes.h"
#include "passes/place/InheritPlace.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

// Channels on both sides from which on a group is worth a product of its own.
static constexpr int64_t kChannelsOfProduct = 32;

/// Elements [start, start + size) of `x` along `dim`.
static Value sliceOf(OpBuilder &builder, Location loc, Value x, unsigned dim, int64_t start, int64_t size) {
  auto shape = cast<RankedTensorType>(x.getType()).getShape();
  SmallVector<int64_t> starts(shape.size(), 0), ends(shape), steps(shape.size(), 1);
  starts[dim] = start;
  ends[dim] = start + size;
  return builder.create<SliceOp>(loc, x, starts, ends, steps);
}

static bool hasLargeGroups(Conv2dOp op) {
  ArrayRef<int64_t> weight = cast<RankedTensorType>(op.getWeight().getType()).getShape();
  int64_t groups = op.getGroups();
  return groups > 1 && std::min(weight[0] / groups, weight[1]) >= kChannelsOfProduct;
}

static void split(Conv2dOp op) {
  OpBuilder builder(op);
  InheritPlace place(builder, op);
  int64_t groups = op.getGroups();
  int64_t inputs = cast<RankedTensorType>(op.getX().getType()).getDimSize(1) / groups;
  int64_t outputs = cast<RankedTensorType>(op.getWeight().getType()).getDimSize(0) / groups;
  SmallVector<Value> parts;
  for (int64_t group = 0; group < groups; ++group) {
    Value x = sliceOf(builder, op.getLoc(), op.getX(), 1, group * inputs, inputs);
    Value weight = sliceOf(builder, op.getLoc(), op.getWeight(), 0, group * outputs, outputs);
    parts.push_back(builder.create<Conv2dOp>(op.getLoc(), x, weight, op.getStride(), op.getPadding(), op.getDilation(),
                                             /*groups=*/1));
  }
  op->replaceAllUsesWith(builder.create<ConcatOp>(op.getLoc(), parts, /*axis=*/1));
  op.erase();
}

void splitGroupedConvolutions(ModuleOp module) {
  module.walk([](Conv2dOp op) {
    if (hasLargeGroups(op))
      split(op);
  });
}

} // namespace sluice::passes
