#include "backends/cpu/compiler/loops/NestCost.h"

#include "backends/cpu/compiler/loops/LaneEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace sluice::cpu {

using namespace mlir;

static double cyclesOf(Operation &op) {
  if (auto call = dyn_cast<func::CallOp>(op))
    return costOf(SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr()));
  if (isa<LLVM::masked_gather, LLVM::masked_scatter>(op))
    return 24;
  if (isa<LLVM::LoadOp, LLVM::MaskedLoadOp, LLVM::StoreOp, LLVM::MaskedStoreOp>(op))
    return 1;
  if (op.getDialect() && op.getDialect()->getNamespace() == math::MathDialect::getDialectNamespace())
    return 14;
  if (op.hasTrait<OpTrait::ConstantLike>() || op.getNumResults() == 0)
    return 0;
  bool vector = isa<VectorType>(op.getResult(0).getType());
  if (isa<arith::DivUIOp, arith::FloorDivSIOp, arith::RemUIOp>(op))
    return vector ? 12 : 2;
  return vector ? 0.5 : 0.2;
}

static double costOfBlock(Block &block, double times) {
  double cost = 0;
  for (Operation &op : block) {
    if (isOpTriviallyDead(&op))
      continue;
    double inside = times;
    if (auto trips = op.getAttrOfType<IntegerAttr>(kTripsAttr))
      inside *= trips.getInt();
    for (Region &region : op.getRegions())
      for (Block &nested : region)
        cost += costOfBlock(nested, inside) + inside;
    cost += times * cyclesOf(op);
  }
  return cost;
}

double costOf(func::FuncOp stage) { return costOfBlock(stage.getBody().front(), 1); }

} // namespace sluice::cpu
