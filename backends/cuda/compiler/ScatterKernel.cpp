#include "backends/cuda/compiler/ScatterKernel.h"

#include "backends/cuda/compiler/Prelude.h"
#include "backends/cuda/compiler/ThreadEmitter.h"
#include "backends/loops/ScatterNest.h"
#include "ir/Layout.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <fmt/format.h>

namespace sluice::cuda {

using namespace mlir;

// Terms of a chunk, whose numbers a byte holds beside whether there are several; chunks whose bytes are read at once.
static constexpr int64_t kChunkOfTerms = 64, kChunksOfWord = 8;
// Of fewer terms, or of rows that are shorter, there is little to gain.
static constexpr int64_t kFewTerms = 256, kShortRow = 32;
// The bytes of all places and chunks are zeroed and read once a call.
static constexpr int64_t kMostBytes = 1 << 28;
static constexpr int64_t kLeastThreads = 64, kMostThreads = 256;

// `Its` says of one op: how many places, chunks and columns there are, and which of these are loaded at once.
static const char *const kScatterText = R"(#ifndef SLUICE_SCATTER
#define SLUICE_SCATTER
typedef unsigned long long Word;

template <class Id> static __device__ int placeOf(Id id, int places) {
  return id < 0 ? 0 : id >= places ? places - 1 : (int)id;
}

// What there is of a place: a byte for each chunk.
template <class Its> static __device__ Byte *bytesOf(Byte *firsts, Index place) {
  return firsts + place * (Its::words * (Index)sizeof(Word));
}

template <class Its> static __device__ void clearChunks(Byte *firsts) {
  const Index word = (Index)blockIdx.x * Its::threads + threadIdx.x;
  if (word < (Index)Its::places * Its::words) packAt<1>((Word *)firsts + word).at[0] = 0;
}

template <class Its, class Id>
static __device__ void sumChunks(float *x, Id *ids, Byte *firsts, float *sums, Index terms) {
  __shared__ int placesOfChunk[Its::chunk];
  const Index chunk = blockIdx.x / Its::chunk;
  const int its = (int)(blockIdx.x % Its::chunk);
  const int count = terms - chunk * Its::chunk < Its::chunk ? (int)(terms - chunk * Its::chunk) : Its::chunk;
  for (int term = (int)threadIdx.x; term < count; term += Its::threads)
    placesOfChunk[term] = placeOf(ids[chunk * Its::chunk + term], Its::places);
  __syncthreads();
  const int place = placesOfChunk[its];
  for (int term = 0; term < its; ++term)
    if (placesOfChunk[term] == place) return;
  bool hasMore = false;
  for (int term = its + 1; term < count; ++term)
    hasMore |= placesOfChunk[term] == place;
  if (threadIdx.x == 0) bytesOf<Its>(firsts, place)[chunk] = (Byte)(its + 1 + (hasMore ? 128 : 0));
  if (!hasMore) return;
  for (int column = (int)threadIdx.x * Its::pack; column < Its::columns; column += Its::threads * Its::pack) {
    float *from = x + chunk * Its::chunk * Its::columns + column;
    Pack<float, Its::pack> sum = packAt<Its::pack>(from + its * Its::columns);
    for (int term = its + 1; term < count; ++term)
      if (placesOfChunk[term] == place) {
        const Pack<float, Its::pack> one = packAt<Its::pack>(from + term * Its::columns);
        EACH(Its::pack) sum.at[l] += one.at[l];
      }
    packAt<Its::pack>(sums + (chunk * Its::chunk + its) * Its::columns + column) = sum;
  }
}

template <class Its> static __device__ void sumPlaces(float *x, Byte *firsts, float *sums, float *y) {
  Word *words = (Word *)bytesOf<Its>(firsts, blockIdx.x);
  for (int column = (int)threadIdx.x * Its::pack; column < Its::columns; column += Its::threads * Its::pack) {
    Pack<float, Its::pack> sum;
    EACH(Its::pack) sum.at[l] = 0;
    for (int word = 0; word < Its::words; ++word) {
      const Word held = words[word];
      if (held == 0) continue;
      for (int i = 0; i < (int)sizeof(Word); ++i) {
        const int first = (int)(held >> 8 * i & 255);
        if (first == 0) continue;
        const Index chunk = word * (int)sizeof(Word) + i, term = chunk * Its::chunk + (first & 127) - 1;
        const Pack<float, Its::pack> one = packAt<Its::pack>((first & 128 ? sums : x) + term * Its::columns + column);
        EACH(Its::pack) sum.at[l] += one.at[l];
      }
    }
    packAt<Its::pack>(y + (Index)blockIdx.x * Its::columns + column) = sum;
  }
}
#endif
)";

/// The op, if a kernel of this text is to be written for it.
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
