#include "backends/cuda/compiler/kernels/ScatterKernel.h"

#include "backends/cuda/compiler/emit/Prelude.h"
#include "backends/cuda/compiler/emit/ThreadEmitter.h"
#include "backends/loops/ScatterNest.h"
#include "ir/Layout.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <fmt/format.h>

namespace sluice::cuda {

using namespace mlir;

// Terms per chunk, whose numbers fit in a byte together with a flag (ScatterKernel.h); and chunks whose bytes are read
// at once.
static constexpr int64_t kChunkOfTerms = 64, kChunksOfWord = 8;
// With fewer terms, or shorter rows, there is little to gain.
static constexpr int64_t kFewTerms = 256, kShortRow = 32;
// The bytes of all rows and chunks are zeroed and read once per call.
static constexpr int64_t kMostBytes = 1 << 28;
static constexpr int64_t kLeastThreads = 64, kMostThreads = 256;

/// The op, if this kernel supports it.
static ir::ScatterAddOp scatterOf(ir::KernelOp kernel) {
  auto yield = cast<ir::YieldOp>(kernel.getBody().front().getTerminator());
  auto op = dyn_cast_or_null<ir::ScatterAddOp>(loops::findScatter(yield));
  auto isRowMajor = [](Value value) { return ir::liesAs(cast<RankedTensorType>(value.getType()), AffineMap()); };
  auto isPlain = [&](Value value) { return isa<BlockArgument>(value) && isRowMajor(value); };
  bool isOfRows = op && op.getAxis() == 0 && op.getY().getType().hasStaticShape() &&
                  op.getY().getType().getElementType().isF32() && isRowMajor(op.getY());
  return isOfRows && isPlain(op.getX()) && isPlain(op.getIndex()) ? op : ir::ScatterAddOp();
}

bool writeScatterKernel(ir::KernelOp kernel, StringRef name, int64_t capacity, GridKernel &into) {
  ir::ScatterAddOp op = scatterOf(kernel);
  if (!op)
    return false;
  RankedTensorType indexType = op.getIndex().getType();
  int64_t terms = ir::getBufferBytes(indexType, capacity) / ir::getElementBytes(indexType.getElementType());
  int64_t places = int64_t(op.getSize());
  int64_t columns = op.getY().getType().getNumElements() / places, pack = columns % 4 == 0 ? 4 : 1;
  int64_t words = llvm::divideCeil(terms, kChunkOfTerms * kChunksOfWord);
  int64_t bytes = places * words * kChunksOfWord;
  if (terms < kFewTerms || columns < kShortRow || places > INT32_MAX || bytes > kMostBytes)
    return false;
  int64_t threads = std::clamp<int64_t>(llvm::alignTo(columns / pack, kWarp), kLeastThreads, kMostThreads);
  int64_t sums = int64_t(llvm::alignTo(bytes, 64)), buffers = kernel.getNumOperands() + kernel.getNumResults() + 1;
  auto bufferOf = [](Value operand) { return "b" + std::to_string(cast<BlockArgument>(operand).getArgNumber()); };
  std::string x = "(float *)" + bufferOf(op.getX()), workspace = "b" + std::to_string(buffers - 1);
  std::string y = "(float *)b" + std::to_string(buffers - 2);
  std::string ids = fmt::format("({} *){}", memoryTypeName(indexType.getElementType()), bufferOf(op.getIndex()));
  std::string partial = fmt::format("(float *)({} + {}ll)", workspace, sums);
  into.text += kScatterText;
  into.text +=
      fmt::format("struct {}_case {{\n"
                  "  static constexpr int chunk = {}, places = {}, words = {}, columns = {}, pack = {}, threads = {};\n"
                  "}};\n",
                  name.str(), kChunkOfTerms, places, words, columns, pack, threads);
  std::string bounds = fmt::format("__launch_bounds__({}) ", threads);
  auto add = [&](const char *suffix, const std::string &call, int64_t tasks, int64_t rowsPerTask) {
    std::string function = name.str() + suffix;
    into.text += kernelHead(function, buffers, bounds) + "  if (blockIdx.x >= tasks) return;\n  " + call + ";\n}\n";
    into.functions.push_back({function, tasks, rowsPerTask, threads});
  };
  add("_clear", fmt::format("clearChunks<{}_case>({})", name.str(), workspace),
      llvm::divideCeil(places * words, threads), 0);
  add("_chunks", fmt::format("sumChunks<{}_case>({}, {}, {}, {}, tasks)", name.str(), x, ids, workspace, partial),
      indexType.hasStaticShape() ? terms : terms / capacity, indexType.hasStaticShape() ? 0 : 1);
  add("_places", fmt::format("sumPlaces<{}_case>({}, {}, {}, {})", name.str(), x, workspace, partial, y), places, 0);
  into.workspaceBytes = sums + terms * columns * int64_t(sizeof(float));
  return true;
}

} // namespace sluice::cuda
