#include "backends/cuda/compiler/product/TileText.h"

#include "backends/cuda/compiler/emit/Prelude.h"
#include "backends/cuda/compiler/emit/ThreadEmitter.h"
#include "backends/cuda/compiler/product/Fragments.h"
#include "backends/cuda/compiler/product/PlaceText.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <fmt/format.h>
#include <numeric>

namespace sluice::cuda {

using namespace mlir;
using namespace loops;

// Padding of a tile's row in shared memory: avoids bank conflicts between rows that threads write, or load as matrices,
// at once, and keeps packs aligned.
static constexpr int64_t kPaddingBytes = 16;
// With asynchronous copies, the tiles of several steps are in shared memory at once, enough to cover the latency of
// memory. sm_80 has this many bytes for each of two blocks, without the one KB that it reserves per block.
static constexpr int64_t kMostStages = 4, kBytesOfStages = 81 << 10;
// Threads of a warp load single elements of four rows, eight of each.
static constexpr int64_t kPaddingOfTf32 = 32;

namespace {

class TileText {
public:
  explicit TileText(const TiledProduct &product) : p(product), place(product) {}

  std::string places() const;
  int64_t bytesOfStages() const { return p.isCopiedAhead() ? stages() * bytesOfStage() : 0; }
  std::string sharedMemory() const;
  std::string threadPlace() const;
  std::string prepare(const TileOperand &operand) const;
  std::string matrices() const;
  std::string sums() const;
  std::string steps() const { return p.isCopiedAhead() ? stepsCopiedAhead() : stepsLoadedAhead(); }

private:
  int64_t loadsOf(const TileOperand &operand) const {
    return p.sideOf(operand).tile * p.depth / kThreads / operand.packed;
  }
  std::string packOf(const TileOperand &operand) const { return fmt::format("Pack<{}, {}>", p.term, operand.packed); }
  Type elementOf(const TileOperand &operand) const { return tensorTypeOf(operand.memory).getElementType(); }
  int64_t rowsOf(const TileOperand &operand) const { return p.liesBySide(operand) ? p.sideOf(operand).tile : p.depth; }
  int64_t rowLengthOf(const TileOperand &operand) const;
  int64_t termsOf(const TileOperand &operand) const { return rowsOf(operand) * rowLengthOf(operand); }
  int64_t termsOfStage() const { return termsOf(p.operands[0]) + termsOf(p.operands[1]); }
  int64_t bytesOfStage() const { return termsOfStage() * p.termBytes; }
  int64_t stages() const { return std::min(kMostStages, kBytesOfStages / bytesOfStage()); }
  Matrices matricesOf(const TileOperand &operand) const;
  std::string tiles() const;
  std::string tilesOfStages() const;
  int64_t threadsOfRow(const TileOperand &operand) const;
  int64_t rowsBetweenLoads(const TileOperand &operand) const { return kThreads / threadsOfRow(operand); }
  std::pair<std::string, std::string> firstPlace(const TileOperand &operand) const;
  std::string elementPlace(const TileOperand &operand) const;
  std::string fillTable() const;
  std::string existsAt(const TileOperand &operand, const std::string &asked) const;
  std::string addressOf(const TileOperand &operand, const std::string &inSum) const;
  std::string placeIn(const TileOperand &operand) const;
  std::string beginCopies(const TileOperand &operand) const;
  std::string load(const TileOperand &operand) const;
  std::string keep(const TileOperand &operand) const;
  std::string multiply() const;
  std::string multiplyFragments() const;
  std::string addChain() const;
  std::string forEachStep(int64_t before) const;
  std::string stepsCopiedAhead() const;
  std::string stepsLoadedAhead() const;

  const TiledProduct &p;
  PlaceText place;
};

} // namespace

//===- places -----------------------------------------------------------------------------------------------------===//

/// The tile, batch element and chunk of a block: the one that depends on the rows comes last.
std::string TileText::places() const {
  std::string text = fmt::format("  if (blockIdx.x >= tasks) return;\n  {} place = blockIdx.x;\n", p.numberType());
  auto take = [&](const char *name, int64_t count) {
    text += fmt::format(
        "  const {0} {1} = place - quotient(place, ({0}){2}) * {2};\n  place = quotient(place, ({0}){2});\n",
        p.numberType(), name, count);
  };
  take("tileOfN", p.n.tiles());
  if (!p.m.flat.hasRows)
    take("tileOfM", p.m.tiles());
  if (!p.batch.hasRows)
    take("element", p.batch.inner);
  bool hasRows = p.m.flat.hasRows || p.batch.hasRows;
  if (hasRows && p.termsOfChunk)
    take("chunk", p.maxChunks);
  const char *last = p.m.flat.hasRows ? "tileOfM" : p.batch.hasRows ? "element" : p.termsOfChunk ? "chunk" : nullptr;
  if (last)
    text += fmt::format("  const {} {} = place;\n", p.numberType(), last);
  for (auto [name, flat] : {std::pair("countOfM", &p.m.flat), {"countOfN", &p.n.flat}, {"terms", &p.k}})
    text += fmt::format("  const {0} {1} = ({0}){2};\n", p.numberType(), name, flat->count());
  if (p.termsOfChunk)
    text += fmt::format("  const {0} begin = chunk * {1}, end = begin + {1} < terms ? begin + {1} : terms;\n",
                        p.numberType(), p.termsOfChunk);
  else
    text += fmt::format("  const {} begin = 0, end = terms;\n", p.numberType());
  return text;
}

/// The first of a thread's rows and columns in the tile.
std::string TileText::threadPlace() const {
  if (p.onTensorCores())
    return fmt::format("  const int warp = thread / 32, lane = thread % 32;\n"
                       "  const int warpM = warp % {0} * {1}, warpN = warp / {0} * {2};\n"
                       "  const int ofM = warpM + lane / 4, ofN = warpN + lane % 4 * 2;\n",
                       kFragment.warpsOfM, p.m.tile / kFragment.warpsOfM, p.n.tile / kFragment.warpsOfN);
  // Adjacent threads store adjacent elements of the result.
  constexpr const char *kSlow = "thread / 16", *kFast = "thread % 16";
  return fmt::format("  const int ofM = {} * {}, ofN = {} * {};\n", p.acrossM ? kFast : kSlow, p.m.width,
                     p.acrossM ? kSlow : kFast, p.n.width);
}

//===- tiles of operands ------------------------------------------------------------------------------------------===//

/// Threads that load contiguous elements together.
int64_t TileText::threadsOfRow(const TileOperand &operand) const {
  return (operand.alongSide ? p.sideOf(operand).tile : p.depth) / operand.packed;
}

/// For the first element that a thread loads: its row, and its element in the row. Adjacent threads load adjacent
/// elements.
std::pair<std::string, std::string> TileText::firstPlace(const TileOperand &operand) const {
  int64_t threads = threadsOfRow(operand);
  return {fmt::format("thread / {}", threads), fmt::format("thread % {} * {}", threads, operand.packed)};
}

/// Declares `side` and `depth` of load `l`, one of which is the same for all loads of a thread.
std::string TileText::elementPlace(const TileOperand &operand) const {
  auto [row, element] = firstPlace(operand);
  std::string slow = fmt::format("{} + {} * l", row, rowsBetweenLoads(operand));
  return fmt::format("const int side = {}, depth = {};", operand.alongSide ? element : slow,
                     operand.alongSide ? slow : element);
}

/// Properties of the rows or columns that a thread loads.
std::string TileText::prepare(const TileOperand &operand) const {
  int64_t each = loadsOf(operand);
  const TileSide &side = p.sideOf(operand);
  const std::string name = operand.name, letter = &side == &p.m ? "M" : "N";
  SmallVector<Bounded> compared = place.compared(operand);
  std::string text =
      fmt::format("  {0} {1}Side[{2}];\n  unsigned {1}Absent[{2}];\n", place.typeFor(operand.offset), name, each);
  for (auto [i, bounded] : llvm::enumerate(compared))
    text += fmt::format("  {} {}If{}[{}];\n", place.typeFor(bounded.index), name, i, each);
  text += fmt::format("  EACH({}) {{\n    {}\n    const {} at = tileOf{} * {} + side;\n", each, elementPlace(operand),
                      p.numberType(), letter, side.tile);
  text += place.setAbsent(operand, name + "Absent[l]", "countOf" + letter, "    ");
  // Values common to all steps.
  std::string depth = p.isCopiedAhead() ? " + " + place.ofDepth(operand.offset.depth) : "";
  text += fmt::format("    {}Side[l] = {}{};\n", name, place.of(operand.offset.side), depth);
  for (auto [i, bounded] : llvm::enumerate(compared))
    text += fmt::format("    {}If{}[l] = {};\n", name, i, place.of(bounded.index.side));
  text += "    (void)depth;\n  }\n";
  if (p.isCopiedAhead())
    text += fmt::format("  {0} *const {1}To = held(&{1}[{2}][{3}]);\n", p.term, name, firstPlace(operand).first,
                        firstPlace(operand).second);
  else
    text += fmt::format("  {} {}Next[{}];\n", packOf(operand), name, each);
  return text;
}

int64_t TileText::rowLengthOf(const TileOperand &operand) const {
  int64_t padding = (p.cores == Cores::Tf32 ? kPaddingOfTf32 : kPaddingBytes) / p.termBytes;
  return (p.liesBySide(operand) ? p.depth : p.sideOf(operand).tile) + padding;
}

/// Tiles of one step and of the next.
std::string TileText::tiles() const {
  std::string text;
  for (const TileOperand &operand : p.operands)
    text += fmt::format("  alignas({}) __shared__ {} {}[2][{}][{}];\n", kPaddingBytes, p.term, operand.name,
                        rowsOf(operand), rowLengthOf(operand));
  return text;
}

/// Tiles of several steps, in dynamic shared memory: both tiles of a step are adjacent.
std::string TileText::tilesOfStages() const {
  std::string text = fmt::format("  SHARED_BYTES(stages, {});\n", bytesOfStages());
  int64_t offset = 0;
  for (const TileOperand &operand : p.operands) {
    text += fmt::format("  {0} (&{1})[{2}][{3}] = *({0} (*)[{2}][{3}])(stages + {4}); // of the first step\n", p.term,
                        operand.name, rowsOf(operand), rowLengthOf(operand), offset);
    offset += termsOf(operand) * p.termBytes;
  }
  return text;
}

/// Declares the tiles and, without asynchronous copies, the table of the summed indices of the next two steps.
std::string TileText::sharedMemory() const {
  if (p.isCopiedAhead())
    return tilesOfStages();
  std::string text = fmt::format("  __shared__ unsigned asked[2][{}];\n", p.depth) + tiles();
  for (const TileOperand &operand : p.operands) {
    text += fmt::format("  __shared__ {} {}Depth[2][{}];\n", place.typeFor(operand.offset), operand.name, p.depth);
    for (auto [i, bounded] : llvm::enumerate(place.compared(operand)))
      text +=
          fmt::format("  __shared__ {} {}DepthIf{}[2][{}];\n", place.typeFor(bounded.index), operand.name, i, p.depth);
  }
  return text;
}

Matrices TileText::matricesOf(const TileOperand &operand) const {
  return {rowLengthOf(operand), p.isCopiedAhead() ? termsOfStage() : termsOf(operand)};
}

/// Fills the table for the step after the next.
std::string TileText::fillTable() const {
  std::string text = fmt::format("    if (step + 2 < steps && thread < {}) {{\n"
                                 "      const int slot = step & 1, depth = thread;\n"
                                 "      const {} number = {};\n"
                                 "      asked[slot][depth] = {};\n",
                                 p.depth, p.numberType(), place.numberOf("step + 2"), place.asked());
  for (const TileOperand &operand : p.operands) {
    text += fmt::format("      {}Depth[slot][depth] = {};\n", operand.name, place.of(operand.offset.depth));
    for (auto [i, bounded] : llvm::enumerate(place.compared(operand)))
      text += fmt::format("      {}DepthIf{}[slot][depth] = {};\n", operand.name, i, place.of(bounded.index.depth));
  }
  return text + "    }\n";
}

/// Whether the elements that a thread loads exist.
std::string TileText::existsAt(const TileOperand &operand, const std::string &asked) const {
  const std::string name = operand.name;
  std::string text = fmt::format("!({}Absent[l] & {})", name, asked);
  for (auto [i, bounded] : llvm::enumerate(place.compared(operand))) {
    std::string ofPlace = p.isCopiedAhead() ? "(" + place.of(bounded.index.depth) + ")"
                                            : fmt::format("{}DepthIf{}[slot][depth]", name, i);
    text += " & (" + place.isWithin(bounded, fmt::format("{}If{}[l]", name, i), ofPlace) + ")";
  }
  return text;
}

/// The address of the elements of load `l`. `inSum` is the part of the offset that depends on the summed index.
std::string TileText::addressOf(const TileOperand &operand, const std::string &inSum) const {
  return fmt::format("({} *)b{} + ({}Side[l] + {})", memoryTypeName(elementOf(operand)),
                     cast<BlockArgument>(operand.memory).getArgNumber(), operand.name, inSum);
}

/// The offset in a tile with the memory layout.
std::string TileText::placeIn(const TileOperand &operand) const {
  return operand.alongSide ? "[depth][side]" : "[side][depth]";
}

/// Begins the copies of step `number`. Every thread computes the summed indices itself: a table filled by some threads
/// would need another barrier in each step.
std::string TileText::beginCopies(const TileOperand &operand) const {
  std::string from = addressOf(operand, fmt::format("({})", place.ofStep(operand.offset.depth)));
  return fmt::format(
      "      EACH({}) {{\n        {}\n        const unsigned asked = {};\n"
      "        beginCopy<{}>({}To + stage + l * {}, {}, {});\n        (void)side, (void)depth;\n      }}\n",
      loadsOf(operand), elementPlace(operand), place.asked(), operand.packed * p.termBytes, operand.name,
      rowsBetweenLoads(operand) * rowLengthOf(operand), from, existsAt(operand, "asked"));
}

/// Loads a tile of the next step into registers.
std::string TileText::load(const TileOperand &operand) const {
  const std::string name = operand.name, element = memoryTypeName(elementOf(operand));
  std::string from = fmt::format("packAt<{}>({})", operand.packed, addressOf(operand, name + "Depth[slot][depth]"));
  std::string take = fmt::format("{}Next[l] = {};", name, from);
  if (element != p.term)
    take = fmt::format("{{ const auto from = {0}; _Pragma(\"unroll\") for (int i = 0; i < {1}; ++i) {2}Next[l].at[i] = "
                       "({3})from.at[i]; }}",
                       from, operand.packed, name, p.term);
  return fmt::format("      EACH({0}) {{\n        {1}\n        {2}Next[l] = {3}{{}};\n        if ({4}) {5}\n"
                     "        (void)side;\n      }}\n",
                     loadsOf(operand), elementPlace(operand), name, packOf(operand),
                     existsAt(operand, "asked[slot][depth]"), take);
}

/// Stores the loaded tile from registers into shared memory.
std::string TileText::keep(const TileOperand &operand) const {
  const std::string name = operand.name;
  std::string text = fmt::format("      EACH({}) {{\n        {}\n", loadsOf(operand), elementPlace(operand));
  if (p.cores == Cores::Tf32)
    text += fmt::format("        _Pragma(\"unroll\") for (int i = 0; i < {0}; ++i) {1}Next[l].at[i] = "
                        "roundToTf32({1}Next[l].at[i]);\n",
                        operand.packed, name);
  if (operand.alongSide || p.liesBySide(operand))
    text += fmt::format("        packAt<{0}>(&{1}[slot]{2}) = {1}Next[l];\n", operand.packed, name, placeIn(operand));
  else
    text += fmt::format("        _Pragma(\"unroll\") for (int i = 0; i < {}; ++i) {}[slot][depth + i][side] = "
                        "{}Next[l].at[i];\n",
                        operand.packed, name, name);
  return text + "      }\n";
}

//===- sums -------------------------------------------------------------------------------------------------------===//

static std::string eachSum(const TiledProduct &p, const std::string &indent, const std::string &statement) {
  return fmt::format("{0}_Pragma(\"unroll\") for (int i = 0; i < {1}; ++i)\n"
                     "{0}  _Pragma(\"unroll\") for (int j = 0; j < {2}; ++j) {3}\n",
                     indent, p.m.perThread, p.n.perThread, statement);
}

std::string TileText::sums() const {
  std::string text;
  for (const char *name : {"sum", "chain"})
    if (name != std::string("chain") || p.hasChains())
      text += fmt::format("  {} {}[{}][{}] = {{}};\n", p.scalar, name, p.m.perThread, p.n.perThread);
  return text;
}

std::string TileText::multiply() const {
  auto part = [&](const TileOperand &operand, const char *letter) {
    const TileSide &side = p.sideOf(operand);
    return fmt::format("        Pack<{0}, {1}> {2}Part[{3}];\n"
                       "        EACH({3}) {2}Part[l] = packAt<{1}>(&{2}[slot][depth][of{4} + l * {5}]);\n",
                       p.scalar, side.width, operand.name, side.perThread / side.width, letter, side.stride);
  };
  std::string text = fmt::format("      _Pragma(\"unroll\") for (int depth = 0; depth < {}; ++depth) {{\n", p.depth);
  text += part(p.operands[0], "M") + part(p.operands[1], "N");
  const char *into = p.hasChains() ? "chain" : "sum";
  text += eachSum(p, "        ",
                  fmt::format("{0}[i][j] = fma(aPart[i / {1}].at[i % {1}], bPart[j / {2}].at[j % {2}], {0}[i][j]);",
                              into, p.m.width, p.n.width));
  return text + "      }\n";
}

/// The addresses of a warp's matrices.
std::string TileText::matrices() const {
  std::string text;
  if (p.cores == Cores::Halves)
    for (const TileOperand &operand : p.operands)
      text += fmt::format("  const {0} *const {1}Rows = held(&{1}{2}{3});\n", p.term, operand.name,
                          p.isCopiedAhead() ? "" : "[0]", firstRow(p, operand));
  return text;
}

std::string TileText::multiplyFragments() const {
  return cuda::multiplyFragments(p, matricesOf(p.operands[0]), matricesOf(p.operands[1]));
}

std::string TileText::addChain() const {
  return fmt::format("      if (step % {0} == {0} - 1 || step + 1 == steps) {{\n{1}      }}\n", kChain / p.depth,
                     eachSum(p, "        ", "sum[i][j] += chain[i][j], chain[i][j] = 0;"));
}

/// The loop over steps, this many of which precede the first multiplication.
std::string TileText::forEachStep(int64_t before) const {
  return fmt::format("  const int steps = (int)quotient(end - begin + {0} - 1, ({1}){0});\n"
                     "  _Pragma(\"unroll 1\") for (int step = -{2}; step < steps; ++step) {{\n",
                     p.depth, p.numberType(), before);
}

/// Each step begins to copy into the tile that the previous step has multiplied.
std::string TileText::stepsCopiedAhead() const {
  int64_t all = stages(), ahead = all - 1;
  std::string text = forEachStep(ahead);
  text +=
      fmt::format("    if (step > -{}) {{\n      awaitCopies<{}>();\n      __syncthreads();\n    }}\n", ahead, all - 2);
  text += fmt::format("    if (step + {0} < steps) {{\n      const int stage = (unsigned)(step + {0}) % {1} * {2};\n"
                      "      const {3} number = {4};\n",
                      ahead, all, termsOfStage(), p.numberType(), place.numberOf(fmt::format("step + {}", ahead)));
  text += beginCopies(p.operands[0]) + beginCopies(p.operands[1]) + "    }\n    endGroupOfCopies();\n";
  text += fmt::format("    if (step >= 0) {{\n      const int slot = step % {};\n", all);
  return text + multiplyFragments() + "    }\n  }\n";
}

/// Each step loads the operands of the next, at summed indices that the previous step has computed.
std::string TileText::stepsLoadedAhead() const {
  std::string text = forEachStep(2) + fillTable();
  text += "    if (step >= -1 && step + 1 < steps) {\n      const int slot = (step + 1) & 1;\n" + load(p.operands[0]) +
          load(p.operands[1]) + "    }\n";
  text += "    if (step >= 0) {\n      const int slot = step & 1;\n" +
          (p.onTensorCores() ? multiplyFragments() : multiply()) + (p.hasChains() ? addChain() : "") + "    }\n";
  text += "    if (step >= -1 && step + 1 < steps) {\n      const int slot = (step + 1) & 1;\n" + keep(p.operands[0]) +
          keep(p.operands[1]) + "    }\n";
  return text + "    __syncthreads();\n  }\n";
}

std::string tileFunction(const TiledProduct &product, const GridFunction &function, int64_t buffers,
                         const std::string &epilogue) {
  TileText text(product);
  std::string bounds = fmt::format("__launch_bounds__({}, {}) ", function.threads, function.blocks);
  return kernelHead(function.name, buffers, bounds) + text.sharedMemory() + "  const int thread = threadIdx.x;\n" +
         text.places() + text.threadPlace() + text.prepare(product.operands[0]) + text.prepare(product.operands[1]) +
         text.matrices() + text.sums() + text.steps() + epilogue + "}\n";
}

GridFunction tileTasks(const TiledProduct &p, StringRef name) {
  GridFunction function{name.str()};
  function.threads = kThreads;
  function.blocks = p.blocksOfMultiprocessor();
  function.sharedBytes = TileText(p).bytesOfStages();
  function.tasks = p.n.tiles() * p.batch.inner;
  bool chunksAreOfRows = p.termsOfChunk && p.k.hasRows;
  if (chunksAreOfRows)
    function.rowsPerTask = p.rowsOfChunk(), function.tasks *= p.partsOfRow;
  else
    function.tasks *= p.maxChunks;
  if (p.batch.hasRows)
    function.rowsPerTask = 1;
  if (p.m.flat.hasRows) // tiles of as many rows as fill whole ones
    function.rowsPerTask = p.m.tile / std::gcd(p.m.tile, p.m.flat.inner);
  function.tasks *= p.m.flat.hasRows ? function.rowsPerTask * p.m.flat.inner / p.m.tile : p.m.tiles();
  return function;
}

} // namespace sluice::cuda
