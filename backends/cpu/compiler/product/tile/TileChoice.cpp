// The model: a step adds one rank-1 product to a tile of R rows and V vectors. It costs the largest of
//   R * V / ports           starting the multiply-adds,
//   (R + V + lines of B) / 2  loads and prefetches, of which two start in a cycle,
//   all of these / width    issuing the instructions, and those of the loop,
//   V / 0.75                reading B from the second-level cache, if it does not fit into the first,
//   latency                 of a multiply-add, since the next step needs the same sums,
// and a tile costs its steps plus its beginning and end. Measured tiles follow it within a few per cent.
#include "backends/cpu/compiler/product/tile/TileChoice.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>

namespace sluice::cpu {

static constexpr double loadsPerCycle = 2, vectorsPerCycleOfL2 = 0.75;
static constexpr int64_t maxRows = 14; // each row occupies an address register

int64_t maxTileRows(int64_t vectors, const Target &target) {
  // The sums, a vector of B for each column, and one broadcast of A.
  int64_t rows = (target.numVectorRegisters - vectors - (target.numVectorRegisters > 16 ? 3 : 1)) / vectors;
  return std::clamp<int64_t>(rows, 1, maxRows);
}

static double stepCycles(const TileProblem &problem, double rows, double vectors, const Target &target) {
  constexpr double lineBits = 512, instructionsOfLoop = 2;
  double products = rows * vectors, loads = rows + vectors + std::ceil(vectors * double(target.vectorBits) / lineBits);
  double bytesOfB = double(problem.depth) * vectors * double(target.vectorBits) / 8;
  double reading = bytesOfB <= double(target.l1) / 2 ? 0 : vectors / vectorsPerCycleOfL2;
  return std::max({reading, products / double(target.fmaPorts), loads / loadsPerCycle,
                   (products + loads + instructionsOfLoop) / double(target.issueWidth), double(target.fmaLatency)});
}

static double tileCycles(const TileProblem &problem, int64_t rows, int64_t vectors, const Target &target) {
  if (rows == 0)
    return 0;
  double step = stepCycles(problem, rows, vectors, target);
  // Eight ways of a first-level cache set hold the rows that differ by multiples of 4 KB.
  if (rows > 8 && problem.rowBytes % 4096 == 0 && problem.rowBytes != 0)
    step *= 1.35;
  return step * problem.depth + 12 + 1.5 * rows * vectors;
}

static double columnCycles(const TileProblem &problem, int64_t rows, int64_t vectors, const Target &target) {
  if (problem.wholeRows)
    return double(llvm::divideCeil(problem.rows, rows)) * tileCycles(problem, rows, vectors, target);
  if (problem.evenRows) {
    int64_t tiles = llvm::divideCeil(problem.rows, rows), large = problem.rows % tiles;
    int64_t size = problem.rows / tiles;
    return (tiles - large) * tileCycles(problem, size, vectors, target) +
           large * tileCycles(problem, size + 1, vectors, target);
  }
  return problem.rows / rows * tileCycles(problem, rows, vectors, target) +
         tileCycles(problem, problem.rows % rows, vectors, target);
}

static int64_t bestRows(const TileProblem &problem, int64_t vectors, const Target &target, double &cycles) {
  int64_t best = 1;
  int64_t most =
      std::min({problem.rows, maxTileRows(vectors, target), std::max<int64_t>(1, problem.mostSums / vectors)});
  for (int64_t rows = 1; rows <= most; ++rows) {
    double cost = columnCycles(problem, rows, vectors, target);
    if (rows == 1 || cost <= cycles) {
      best = rows;
      cycles = cost;
    }
  }
  return best;
}

ColumnGroups chooseTiles(const TileProblem &problem, const Target &target) {
  int64_t lanes = target.lanes(problem.elementBits);
  ColumnGroups best;
  double bestCycles = 0;
  int64_t widest = std::min<int64_t>(llvm::divideCeil(problem.columns, lanes), problem.mostVectors);
  for (int64_t vectors = widest; vectors >= 1; --vectors) {
    ColumnGroups groups;
    groups.width = vectors * lanes;
    bool isOneGroup = problem.columns <= groups.width;
    if (problem.panel && !isOneGroup && problem.panel % groups.width != 0 && groups.width % problem.panel != 0)
      continue;
    groups.full = problem.columns / groups.width;
    groups.tail = problem.columns % groups.width;
    double fullCycles = 0, tailCycles = 0;
    if (groups.full)
      groups.rows = bestRows(problem, vectors, target, fullCycles);
    if (groups.tail)
      groups.tailRows = bestRows(problem, llvm::divideCeil(groups.tail, lanes), target, tailCycles);
    double cycles = groups.full * fullCycles + tailCycles;
    if (bestCycles == 0 || cycles < bestCycles * 0.999) {
      best = groups;
      bestCycles = cycles;
    }
  }
  return best;
}

std::string ColumnGroups::text() const {
  auto tile = [](int64_t height, int64_t across) { return std::to_string(height) + " x " + std::to_string(across); };
  std::string ofTail = tail ? tile(tailRows, tail) : "";
  return full ? tile(rows, width) + (tail ? ", then " : "") + ofTail : ofTail;
}

double filledLanes(int64_t columns, int64_t lanes) {
  return static_cast<double>(columns) / static_cast<double>(llvm::alignTo(columns, lanes));
}

} // namespace sluice::cpu
