#include "backends/cpu/compiler/product/matmul/MatmulPlan.h"

#include "backends/cpu/compiler/product/tile/Tile.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

namespace sluice::cpu {

// Limits of a task that sums over parts of k: columns, and terms of a part if rows of A are copied.
static constexpr int64_t mostColumns = 256, termsPerCopy = 256;

// Rows of A: above this, all of B is packed once instead of parts of it for each block.
static constexpr int64_t fewRows = 192;

int64_t panelWidth(int64_t columns, int64_t bits, const Target &target) {
  int64_t lanes = target.lanes(bits), widest = target.numVectorRegisters > 16 ? 64 : 2 * lanes;
  return std::min<int64_t>(widest, llvm::alignTo(columns, lanes));
}

static int64_t elementBytes(const Matmul &op) { return op.element.getIntOrFloatBitWidth() / 8; }

static int64_t batchCount(const Matmul &op) {
  return std::accumulate(op.batch.begin(), op.batch.end(), int64_t(1), std::multiplies<>());
}

int64_t fewTasks(int64_t flops) {
  constexpr int64_t flopsOfTask = 1 << 18, enough = 16;
  return std::clamp<int64_t>(flops / flopsOfTask, 1, enough);
}

static int64_t flopsOf(const Matmul &op) { return 2 * batchCount(op) * op.m * op.n * op.k; }

MatmulPlan::MatmulPlan(const Matmul &op, const Target &target)
    : op(op), target(target), lanes(target.lanes(op.element.getIntOrFloatBitWidth())) {
  chunks = chunksOfK();
  splitK = chunks > 1;
  copiesA = termsOfAAreRows();
  int64_t bytesOfC = batchCount(op) * op.m * op.n * elementBytes(op);
  prefetchesC = !splitK && (op.epilogue ? bool(op.epilogue.prefetch) : target.isFar(bytesOfC));
  planPacking();
  inParts = copiesA || readsBAgain();
  terms = copiesA ? termsPerCopy : termsOfPart(op.k);
  TileProblem problem;
  problem.elementBits = op.element.getIntOrFloatBitWidth();
  problem.rows = op.m;
  problem.columns = op.n;
  problem.panel = inParts && !panelOfB ? panelWidth(op.n, problem.elementBits, target) : panelOfB;
  problem.depth = op.k;
  problem.rowBytes = op.a.strideI * elementBytes(op);
  groups = chooseTiles(problem, target);
  planTasks();
}

void MatmulPlan::planPacking() {
  panelOfB = op.b.layout == Matmul::Layout::Panels ? op.b.panel : 0;
  bool transposed =
      op.b.layout == Matmul::Layout::PanelsT || (op.b.layout == Matmul::Layout::Strided && op.b.strideJ != 1);
  // With many rows of A, sums over parts read columns of B again and again.
  packsParts = transposed && canSumInParts() && op.n >= lanes && op.m < fewRows;
  packed = (transposed && !packsParts) || (rowsOfBEvictEachOther() && op.m >= fewRows && !copiesA);
  if (!packed)
    return;
  panelOfB = panelWidth(op.n, op.element.getIntOrFloatBitWidth(), target);
  workspaceBytes = packStage().elements() * elementBytes(op);
}

PackPanels MatmulPlan::packStage() const {
  PackPanels pack;
  pack.element = op.element;
  for (auto [size, stride] : llvm::zip(op.batch, op.b.batchStrides))
    if (stride != 0) { // one matrix serves all along a broadcast dimension
      pack.counts.push_back(size);
      pack.stridesT.push_back(stride);
    }
  pack.k = op.k;
  pack.n = op.n;
  pack.from = op.b.place;
  pack.to = op.workspace;
  pack.panel = panelOfB;
  pack.strideK = op.b.strideI;
  pack.strideN = op.b.strideJ;
  if (op.b.layout == Matmul::Layout::PanelsT) {
    pack.panelK = op.b.panel;
    pack.stridePanelK = op.n * op.b.panel;
    pack.strideK = 1;
    pack.strideN = op.b.panel;
  }
  return pack;
}

// Whether rows of B evict each other from the cache while tiles of A pass over a group of B's columns.
bool MatmulPlan::rowsOfBEvictEachOther() const {
  return op.b.layout == Matmul::Layout::Strided && op.rows != Matmul::Rows::K &&
         op.b.strideI * elementBytes(op) >= 1024 && op.k * op.n * elementBytes(op) > target.l1;
}

// Enough tasks for 16 threads, of a million multiply-adds or more.
int64_t MatmulPlan::wantedTasks() const {
  int64_t wanted = std::clamp<int64_t>(flopsOf(op) / (2 << 20), 1, 128);
  return flopsOf(op) > (1 << 18) ? std::max<int64_t>(wanted, 16) : wanted;
}

// Whether several tiles of A would each read a group of B's columns from outside of the second-level cache, or from
// blocks of bytes.
bool MatmulPlan::readsBAgain() const {
  if (!canSumInParts())
    return false;
  if (op.b.scales)
    return true;
  return packsParts || (panelOfB ? op.k * panelOfB * elementBytes(op) >= target.l2 / 4 : rowsOfBEvictEachOther());
}

// Whether A's rows can be read a part of k at a time, and there are several tiles of them.
bool MatmulPlan::canSumInParts() const {
  return op.rows != Matmul::Rows::K && op.m >= 16 && op.a.layout == Matmul::Layout::Strided && op.a.strideJ == 1;
}

// Whether terms of A are rows in memory and k is long, so that tiles would miss the cache.
bool MatmulPlan::termsOfAAreRows() const {
  return op.rows != Matmul::Rows::M && !splitK && op.k > termsPerSum && op.a.layout == Matmul::Layout::Strided &&
         op.a.strideI == 1 && op.a.strideJ != 1 && op.m >= 2 * lanes;
}

int64_t MatmulPlan::tileRows() const { return groups.full ? groups.rows : groups.tailRows; }

int64_t MatmulPlan::rowsAtOnce() const {
  return inParts ? std::min(rowsOfBlock, std::max(fittingRows(), tileRows())) : rowsOfBlock;
}

// The rows after which blocks end at the latest, if that is known: of C, or of one row of the call.
std::optional<int64_t> MatmulPlan::knownRows() const {
  if (op.rows != Matmul::Rows::M)
    return op.m;
  return rowsPerTask == 1 ? std::optional(op.rowsFactor) : std::nullopt;
}

std::optional<int64_t> MatmulPlan::rest(int64_t rows) const {
  std::optional<int64_t> known = knownRows();
  bool isOneBlock = known && *known <= rowsOfBlock;
  if (!isOneBlock && rowsOfBlock % rows != 0)
    return std::nullopt; // blocks before the last one may end with a smaller tile
  int64_t result = known.value_or(op.rowsFactor) % rows;
  return known || result == 0 ? std::optional(result) : std::nullopt;
}

bool MatmulPlan::hasShortTiles(int64_t rows, int64_t vectors) const {
  int64_t remaining = rest(rows).value_or(0), busy = target.fmaPorts * target.fmaLatency; // sums that do not wait
  if (remaining == 0 || copiesA)
    return false;
  int64_t last = (*knownRows() - 1) % rowsOfBlock % rowsAtOnce() + 1;
  return remaining * vectors < busy && (rows - 1) * vectors >= busy &&
         rows - remaining <= int64_t(llvm::divideCeil(last, rows));
}

// The rows of a block, as many as leave `wanted` tasks and fit in the cache.
int64_t MatmulPlan::rowsFor(int64_t wanted) const {
  int64_t tile = tileRows(), columnTasks = llvm::divideCeil(groups.count(), groupsOfTask) * batchCount(op);
  int64_t blocks = std::clamp<int64_t>(llvm::divideCeil(wanted, columnTasks), 1, llvm::divideCeil(op.m, tile));
  return std::max(tile, std::min<int64_t>(llvm::alignTo(llvm::divideCeil(op.m, blocks), tile), fittingRows()));
}

int64_t MatmulPlan::fittingRows() const {
  int64_t fitting = target.l2 / 4 / std::max<int64_t>((inParts ? terms : op.k) * elementBytes(op), 1);
  return inParts ? llvm::alignTo(fitting, tileRows()) : fitting / tileRows() * tileRows();
}

// Of the blocks that give enough tasks, those with the fewest copies: an element of A once per task's columns, an
// element of B once per task's rows.
void MatmulPlan::planBlocks() {
  double least = 0;
  int64_t most = std::clamp<int64_t>(mostColumns / groups.width, 1, groups.count()), best = 1;
  for (groupsOfTask = 1; groupsOfTask <= most; ++groupsOfTask) {
    int64_t columns = std::min(groupsOfTask * groups.width, op.n);
    int64_t rows = std::min(rowsFor(std::min<int64_t>(wantedTasks(), 16)), op.m);
    double copied = 1.0 / double(rows) + 1.0 / double(columns);
    if (groupsOfTask == 1 || copied < least) {
      least = copied;
      best = groupsOfTask;
    }
  }
  groupsOfTask = best;
  rowsOfBlock = rowsFor(std::min<int64_t>(wantedTasks(), 16));
}

// Minimum rows of a task, to amortize B's panel.
void MatmulPlan::planTasks() {
  int64_t wanted = wantedTasks();
  int64_t tile = tileRows();
  if (inParts)
    planBlocks();
  else
    rowsOfBlock = rowsFor(wanted);
  int64_t columnTasks = llvm::divideCeil(groups.count(), groupsOfTask) * batchCount(op);
  int64_t staticBlocks = llvm::divideCeil(op.m, rowsOfBlock);
  tasks = columnTasks;
  switch (op.rows) {
  case Matmul::Rows::None:
    tasks *= staticBlocks;
    break;
  case Matmul::Rows::M: {
    int64_t whole = std::lcm(tile, op.rowsFactor) / op.rowsFactor; // rows that are whole tiles
    rowsPerTask = std::max<int64_t>(1, rowsOfBlock / op.rowsFactor);
    if (rowsPerTask > whole)
      rowsPerTask = rowsPerTask / whole * whole;
    rowsOfBlock = rowsPerTask * op.rowsFactor;
    break;
  }
  case Matmul::Rows::Batch:
    tasks = columnTasks / op.batch.front() * staticBlocks;
    rowsPerTask = std::clamp<int64_t>(op.batch.front() / op.rowsFactor * tasks / wanted, 1,
                                      std::max<int64_t>(1, op.batch.front() / op.rowsFactor / 32));
    break;
  case Matmul::Rows::K:
    tasks *= staticBlocks;
    if (splitK)
      planSplit();
    break;
  }
  staticBlocksOfM = staticBlocks;
  if (op.rows == Matmul::Rows::M)
    cutRows(columnTasks);
  rowsInner = hasRowsInner();
  planPrefetches();
}

// A large B comes from memory. While all tiles of A pass over a group of its columns, each prefetches some rows of the
// next group, so that they arrive in time, and as many as there are.
void MatmulPlan::planPrefetches() {
  constexpr int64_t fewest = 4, most = 64; // tiles; more of them hide the time that their first one waits
  int64_t tiles = llvm::divideCeil(inParts ? rowsOfBlock : op.m, tileRows());
  bool isReadInPlace = panelOfB && !packed && !packsParts && !op.b.scales;
  bool areColumnsNext = inParts ? op.k % terms == 0 : rowsInner || tasks == groups.count();
  if (!isReadInPlace || !areColumnsNext || op.rows == Matmul::Rows::K || batchCount(op) != 1 ||
      !target.isFar(op.k * op.n * elementBytes(op)) || tiles < fewest || tiles > most)
    return;
  int64_t count = inParts || op.k > termsPerSum ? termsOfPart(op.k) : op.k;
  stepsPerPrefetch = tiles;
  for (int64_t steps = tiles; 2 * steps > tiles; --steps) // without a rest, if possible
    if (count % steps == 0) {
      stepsPerPrefetch = steps;
      break;
    }
}

bool MatmulPlan::hasRowsInner() const {
  if (batchCount(op) != 1 || (op.rows != Matmul::Rows::M && op.rows != Matmul::Rows::None))
    return false;
  int64_t a = op.m * op.k * elementBytes(op), b = op.k * op.n * elementBytes(op);
  int64_t columnTasks = llvm::divideCeil(groups.count(), groupsOfTask), rowTasks = llvm::divideCeil(op.m, rowsOfBlock);
  return target.prefersRowsInner(a, rowTasks, b, columnTasks);
}

// If rows of a call, such as images, give too few tasks, each row is cut into blocks of tiles. A few blocks are made even
// if there are enough groups of columns: threads that share the columns of an image would each read results of the other
// threads from the previous stage. But each block reads B again if B exceeds the second-level cache. An image is also cut
// if it would not stay in that cache until all columns have been computed.
void MatmulPlan::cutRows(int64_t columnTasks) {
  staticBlocksOfM = 1;
  int64_t tiles = llvm::divideCeil(op.rowsFactor, tileRows());
  constexpr int64_t blocksForLocality = 8;
  int64_t bytesOfA = op.m * op.k * elementBytes(op), bytesOfB = op.k * op.n * elementBytes(op);
  bool isLocalityCheap = bytesOfB <= target.l2 / 2 || bytesOfB * (blocksForLocality - 1) <= bytesOfA;
  int64_t few = fewTasks(flopsOf(op)), images = std::max<int64_t>(1, op.m / op.rowsFactor);
  int64_t missing = few / (columnTasks * images);
  if (isLocalityCheap)
    missing = std::max(missing, std::min(few, blocksForLocality) / images);
  int64_t bytesOfImage = op.rowsFactor * op.k * elementBytes(op);
  if (groups.count() > 1 && bytesOfB <= target.l2 / 2)
    missing = std::max(missing, int64_t(llvm::divideCeil(bytesOfImage, target.l2 / 4)));
  if (rowsPerTask != 1 || std::min(missing, tiles) < 2)
    return;
  rowsOfBlock = llvm::divideCeil(tiles, std::min(missing, tiles)) * tileRows();
  staticBlocksOfM = llvm::divideCeil(op.rowsFactor, rowsOfBlock);
  tasks *= staticBlocksOfM;
}

// Chunks of k determine an order of sums, so only the shape may decide: the tiles counted here are not those chosen.
int64_t MatmulPlan::chunksOfK() const {
  int64_t tiles = llvm::divideCeil(op.m, 8) * llvm::divideCeil(op.n, 4 * lanes);
  int64_t missing = std::min<int64_t>(llvm::divideCeil(wantedTasks(), tiles), 16);
  bool isCut = op.rows == Matmul::Rows::K && tiles < 16 && op.k >= 64 * missing && batchCount(op) == 1;
  return isCut ? missing : 1;
}

void MatmulPlan::planSplit() {
  int64_t rowsOfCall = op.k / op.rowsFactor;
  rowsPerTask = llvm::divideCeil(rowsOfCall, chunks);
  partials.element = op.element;
  partials.rows = op.m;
  partials.columns = op.n;
  partials.width = llvm::alignTo(op.n, lanes);
  partials.rowsPerChunk = rowsPerTask;
  partials.place = {op.workspace.buffer,
                    op.workspace.offset + static_cast<int64_t>(llvm::alignTo(workspaceBytes, 64)) / elementBytes(op)};
  int64_t filled = llvm::divideCeil(rowsOfCall, rowsPerTask);
  workspaceBytes = llvm::alignTo(workspaceBytes, 64) + filled * partials.elementsPerChunk() * elementBytes(op);
}

void MatmulPlan::describe(Contraction &result) const {
  int64_t outer = op.rows == Matmul::Rows::None ? 1
                  : op.rows == Matmul::Rows::M  ? op.m
                  : op.rows == Matmul::Rows::K  ? op.k
                                                : op.batch.front();
  int64_t rowsOfCall = std::max<int64_t>(1, outer / op.rowsFactor);
  int64_t a = batchCount(op) * op.m * op.k, b = batchCount(op) * op.k * op.n, c = batchCount(op) * op.m * op.n;
  int64_t perRow = 0;
  switch (op.rows) {
  case Matmul::Rows::None:
    break;
  case Matmul::Rows::M:
    perRow = a + c;
    break;
  case Matmul::Rows::K:
    perRow = a + b;
    break;
  case Matmul::Rows::Batch:
    perRow = a + b + c;
    break;
  }
  result.bytes = (a + b + c - perRow) * elementBytes(op);
  result.bytesPerRow = perRow * elementBytes(op) / rowsOfCall;
  (op.rows == Matmul::Rows::None ? result.flops : result.flopsPerRow) = flopsOf(op) / rowsOfCall;
  result.lanes = filledLanes(op.n, lanes);
}

} // namespace sluice::cpu
