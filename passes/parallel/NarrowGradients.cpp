// train -> parallel, after nameCollectives. Reduces gradients over replicas in the module's wire type if it is narrower
// than theirs. This halves the bytes; the sums have fewer digits.
//
//   %r = sluice.all_reduce sum %d of <gradient, "w">   ==>   %n = sluice.cast %d : (tensor<2xf32>) -> tensor<2xbf16>
//                                                            %s = sluice.all_reduce sum %n of <gradient, "w">
//                                                            %r = sluice.cast %s : (tensor<2xbf16>) -> tensor<2xf32>
//
// A replica's part of a mean is divided before the reduction, and may already be multiplied by the learning rate.
// Statistics, metrics and counts are reduced in their own type.
#include "ir/Module.h"
#include "ir/build/Node.h"
#include "passes/Passes.h"
#include "passes/place/InheritDevice.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static bool isWiderGradient(CollectiveOp op, FloatType wire) {
  bool isSum = op.getKind() == CollectiveKind::AllReduce || op.getKind() == CollectiveKind::ReduceScatter;
  auto type = dyn_cast<FloatType>(cast<RankedTensorType>(op->getOperand(0).getType()).getElementType());
  SubjectAttr subject = getSubject(op);
  return isSum && op.getReduction() != CollectiveReduction::Max && type && type.getWidth() > wire.getWidth() &&
         subject && subject.getKind() == SubjectKind::Gradient;
}

static void narrow(CollectiveOp op, FloatType wire) {
  OpBuilder builder(op);
  Node wide(builder, op.getLoc(), op->getOperand(0));
  InheritDevice devices(builder, getDevice(wide.type()), pinOf(wide));
  op->setOperand(0, castTo(wide, wire));
  Value sum = op->getResult(0);
  sum.setType(withElement(cast<RankedTensorType>(sum.getType()), wire));
  builder.setInsertionPointAfter(op);
  Value result = castTo(Node(builder, op.getLoc(), sum), wide.type().getElementType());
  sum.replaceAllUsesExcept(result, result.getDefiningOp());
}

void narrowGradients(ModuleOp module) {
  ModelOp model = findModel(module);
  if (!model || !model.getWire())
    return;
  FloatType wire = typeOf(module.getContext(), *model.getWire());
  for (auto entry : module.getOps<EntryOp>())
    for (auto op : llvm::to_vector(entry.getActions().getOps<CollectiveOp>()))
      if (isWiderGradient(op, wire))
        narrow(op, wire);
}

} // namespace sluice::passes
