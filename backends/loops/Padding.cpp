#include "backends/loops/Padding.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"

namespace sluice::loops {

using namespace mlir;

SmallVector<ir::PhysicalDim> paddedDims(RankedTensorType type, PaddingOf which) {
  SmallVector<ir::PhysicalDim> padded, dims = *ir::getPhysicalDims(type);
  for (size_t i = 0; i < dims.size(); ++i) {
    bool isJoined = i > 0 && ir::areJoinedTiles(dims[i - 1], dims[i]);
    bool isPadded = dims[i].kind == ir::PhysicalDim::Mod && type.getDimSize(dims[i].logical) % dims[i].tile != 0;
    bool isAsked = which == PaddingOf::AllTiles || isJoined == (which == PaddingOf::JoinedTiles);
    if (isPadded && isAsked)
      padded.push_back(dims[i]);
  }
  return padded;
}

LogicalResult writePadding(ir::KernelOp kernel, StringRef name, PaddingOf which, NestWriter &writer) {
  Formulas formulas;
  for (auto [number, value] : llvm::enumerate(kernel.getResults())) {
    auto type = cast<RankedTensorType>(value.getType());
    Memory y{int64_t(kernel.getNumOperands() + number), 0, type};
    SmallVector<int64_t> shape(type.getShape()); // including the padding of dimensions that are done
    for (const ir::PhysicalDim &padded : paddedDims(type, which)) {
      unsigned dim = padded.logical;
      int64_t size = shape[dim], whole = int64_t(llvm::alignTo(uint64_t(size), uint64_t(padded.tile)));
      shape[dim] = whole - size;
      LoopNest nest{(name + "_padding_" + Twine(number) + "_" + Twine(dim)).str(),
                    kernel.getLoc(),
                    formulas,
                    RankedTensorType::get(shape, type.getElementType()),
                    std::nullopt,
                    {},
                    double(ir::getElementBytes(type.getElementType())),
                    /*folds=*/false,
                    /*prepare=*/[](Elements &) {},
                    {},
                    {}};
      nest.body = [=](Emitter &, Elements &elements, AffineExpr, ArrayRef<AffineExpr> at) {
        SmallVector<AffineExpr> in(at);
        in[dim] = at[dim] + size;
        elements.store(y, elements.offsetOf(type, in), elements.zero(type.getElementType()));
      };
      if (failed(writer.write(nest)))
        return failure();
      shape[dim] = whole;
    }
  }
  return success();
}

} // namespace sluice::loops
