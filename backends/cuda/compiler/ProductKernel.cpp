#include "backends/cuda/compiler/ProductKernel.h"

#include "backends/cuda/compiler/product/Epilogue.h"
#include "backends/cuda/compiler/product/TileText.h"
#include "ir/Layout.h"

namespace sluice::cuda {

using namespace mlir;

/// The product of a kernel that has one, and whose results are all of its shape.
static Operation *productOf(ir::KernelOp kernel) {
  Block &body = kernel.getBody().front();
  auto products = body.getOps<ir::ContractionOp>();
  if (!llvm::hasSingleElement(products))
    return nullptr;
  Operation *product = *products.begin();
  auto shapeOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getShape(); };
  auto hasItsShape = [&](Value value) { return shapeOf(value) == shapeOf(product->getResult(0)); };
  return llvm::all_of(body.getTerminator()->getOperands(), hasItsShape) ? product : nullptr;
}

std::optional<LogicalResult> writeProductKernel(ir::KernelOp kernel, StringRef name, int64_t capacity,
                                                const GridOptions &options, loops::NestWriter &nests,
                                                GridKernel &into) {
  Operation *op = productOf(kernel);
  std::optional<TiledProduct> product = op ? TiledProduct::of(op, capacity, options) : std::nullopt;
  if (!product)
    return std::nullopt;
  FailureOr<std::string> epilogue = epilogueText(*product, kernel);
  if (failed(epilogue))
    return failure();
  GridFunction tiles = tileTasks(*product, name);
  into.text += tileFunction(*product, tiles, kernel.getNumOperands() + kernel.getNumResults() + 1, *epilogue);
  into.functions.push_back(tiles);
  if (!product->termsOfChunk)
    return success();
  into.workspaceBytes = product->maxChunks * ir::getBufferBytes(product->type, capacity);
  return writeSumOfChunks(*product, kernel, name, nests);
}

} // namespace sluice::cuda
