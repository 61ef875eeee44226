#include "backends/cuda/compiler/product/ProductKernel.h"

#include "backends/cuda/compiler/product/Epilogue.h"
#include "backends/cuda/compiler/product/TileText.h"
#include "backends/loops/LoopKernel.h"
#include "backends/loops/Padding.h"
#include "ir/Layout.h"
#include <fmt/format.h>

namespace sluice::cuda {

using namespace mlir;

/// The product of a kernel, if it has one. The product reads memory, and all results have its shape except reductions
/// of its operands.
static Operation *productOf(ir::KernelOp kernel) {
  Block &body = kernel.getBody().front();
  auto products = body.getOps<ir::ContractionOp>();
  if (!llvm::hasSingleElement(products))
    return nullptr;
  Operation *product = *products.begin();
  loops::Formulas formulas;
  if (!loops::readsMemory(formulas, product))
    return nullptr;
  auto shapeOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getShape(); };
  auto isKnown = [&](Value value) {
    return isBeside(product, value) || shapeOf(value) == shapeOf(product->getResult(0));
  };
  return llvm::all_of(body.getTerminator()->getOperands(), isKnown) ? product : nullptr;
}

/// Adds the functions of reductions of the product's operands.
static LogicalResult writeBeside(Operation *product, ir::KernelOp kernel, StringRef name, int64_t capacity,
                                 loops::NestWriter &nests, GridKernel &into) {
  SmallVector<unsigned> numbers;
  for (auto [number, value] : llvm::enumerate(kernel.getBody().front().getTerminator()->getOperands()))
    if (isBeside(product, value))
      numbers.push_back(unsigned(number));
  if (numbers.empty())
    return success();
  size_t before = into.functions.size();
  FailureOr<int64_t> bytes = loops::writeResults(kernel, numbers, (name + "_beside").str(), capacity, nests);
  if (failed(bytes))
    return failure();
  into.workspaceBytes = std::max(into.workspaceBytes, *bytes);
  for (GridFunction &function : llvm::drop_begin(into.functions, before))
    function.followsLibrary = FollowsLibrary::ForSum;
  return success();
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
  into.tile = fmt::format("{} x {} of a block, {} terms per step, {}", product->m.tile, product->n.tile, product->depth,
                          product->onTensorCores() ? "on tensor cores" : "without tensor cores");
  if (product->termsOfChunk) {
    into.workspaceBytes = product->maxChunks * product->elements() * ir::getElementBytes(product->sum());
    if (failed(writeSumOfChunks(*product, kernel, name, nests)))
      return failure();
  }
  // Tiles store elements only; the nest of a sum also covers padding.
  auto left = product->termsOfChunk ? loops::PaddingOf::JoinedTiles : loops::PaddingOf::AllTiles;
  size_t ofProduct = into.functions.size();
  if (failed(loops::writePadding(kernel, name, left, nests)))
    return failure();
  for (GridFunction &function : llvm::drop_begin(into.functions, ofProduct))
    function.followsLibrary = FollowsLibrary::Always;
  if (failed(writeBeside(op, kernel, name, capacity, nests, into)))
    return failure();
  into.lanes = product->filledTiles(); // the other functions do little work
  return success();
}

LogicalResult writeActivation(ir::KernelOp kernel, StringRef name, loops::NestWriter &nests) {
  assert(kernel.getNumResults() == 1 && "what lies there is the product");
  Operation *product = *kernel.getBody().front().getOps<ir::ContractionOp>().begin();
  return writeBehindProduct(product, kernel, (name + "_activation").str(), nests);
}

bool readsPacksThrough(Operation *product, ArrayRef<Operation *> moves, int64_t capacity, const GridOptions &options) {
  constexpr int64_t kBytesOfPack = 8;
  loops::Formulas formulas;
  if (!loops::readsMemory(formulas, product, moves))
    return false;
  std::optional<TiledProduct> tiled = TiledProduct::of(product, capacity, options, moves);
  return tiled && llvm::all_of(tiled->operands, [&](const TileOperand &operand) {
           return operand.packed * tiled->termBytes >= kBytesOfPack;
         });
}

std::optional<double> filledTiles(Operation *op, int64_t capacity, const GridOptions &options) {
  std::optional<TiledProduct> product = TiledProduct::of(op, capacity, options);
  return product ? std::optional(product->filledTiles()) : std::nullopt;
}

bool hasFewLongSums(Operation *op, int64_t capacity, const GridOptions &options) {
  constexpr int64_t kManyChunks = 16;
  std::optional<TiledProduct> product = TiledProduct::of(op, capacity, options);
  return product && product->maxChunks >= kManyChunks;
}

} // namespace sluice::cuda
