#include "backends/cuda/compiler/product/TiledProduct.h"

#include "backends/cuda/compiler/emit/ThreadEmitter.h"
#include "backends/cuda/compiler/product/Fragments.h"
#include "backends/loops/Elements.h"
#include "ir/Layout.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <fmt/format.h>

namespace sluice::cuda {

using namespace mlir;
using namespace loops;

// A block's threads form a square of 16 x 16 over its tile.
static constexpr int64_t kSide = 16;
// Blocks that fill a device, to count chunks: two per multiprocessor of the largest device.
static constexpr int64_t kBlocksAtOnce = 256;
// Minimum terms of a chunk, so that adding its sum costs little in comparison.
static constexpr int64_t kTermsOfChunk = 256;
// Rows and columns of the tiles that are assumed when chunks are counted. The tiles chosen later affect no sum.
static constexpr int64_t kTileOfChunks = 128;
static constexpr int64_t kBytesOfPack = 16;
// Terms per step. Halves are half as large, and tensor cores multiply them faster.
static constexpr int64_t kDepth = 16, kDepthOfHalves = 32;
// For small tiles, whose steps would be shorter than the latency of loads: as many as fit in shared memory.
static constexpr int64_t kMostDepth = 64, kSmallTile = 64 * 64, kBytesOfTiles = 32 << 10;
// Registers of a thread for sums.
static constexpr int64_t kRegistersOfSums = 128;

std::string Flat::count() const { return hasRows ? fmt::format("(rows * {}ll)", inner) : fmt::format("{}ll", inner); }

void Flat::take(AffineExpr place, MutableArrayRef<AffineExpr> replacements) const {
  int64_t stride = 1;
  for (const Product::Dim &dim : llvm::reverse(dims)) {
    AffineExpr index = place.floorDiv(stride);
    bool isOutermost = &dim == &dims.front();
    replacements[cast<AffineDimExpr>(dim.variable).getPosition()] = isOutermost ? index : index % dim.size;
    stride *= dim.size;
  }
}

TiledProduct::TiledProduct(const loops::Product &product, Operation *op, int64_t capacity, Cores cores)
    : product(product), op(op), capacity(capacity), type(tensorTypeOf(op->getResult(0))), cores(cores) {
  bool keepsHalves = cores == Cores::Halves;
  Type termType = keepsHalves ? type.getElementType() : sum();
  scalar = memoryTypeName(sum()), scalarBytes = ir::getElementBytes(sum());
  term = memoryTypeName(termType), termBytes = ir::getElementBytes(termType);
  depth = keepsHalves ? kDepthOfHalves : kDepth;
}

int64_t TiledProduct::elements() const {
  return ir::getBufferBytes(type, capacity) / ir::getElementBytes(type.getElementType());
}

double TiledProduct::filledTiles() const {
  auto filled = [](const TileSide &side) { return double(side.flat.atCapacity()) / double(side.tiles() * side.tile); };
  return filled(m) * filled(n);
}

bool TiledProduct::hasChains() const {
  return !onTensorCores() && (termsOfChunk ? termsOfChunk : k.atCapacity()) > kChain;
}

int64_t TiledProduct::blocksOfMultiprocessor() const {
  constexpr int64_t kFewSums = 32, kFewOnTensorCores = 64;
  return m.perThread * n.perThread <= (onTensorCores() ? kFewOnTensorCores : kFewSums) ? 2 : 1;
}

bool TiledProduct::hasShortNumbers() const {
  int64_t blocks = m.tiles() * n.tiles() * batch.atCapacity() * maxChunks;
  return std::max({m.flat.atCapacity(), n.flat.atCapacity(), k.atCapacity(), blocks}) < INT32_MAX / 2;
}

static Cores coresFor(Operation *op, const GridOptions &options) {
  Type element = tensorTypeOf(op->getResult(0)).getElementType();
  auto isOfElement = [&](Value operand) { return tensorTypeOf(operand).getElementType() == element; };
  if (!llvm::all_of(op->getOperands(), isOfElement))
    return Cores::Scalar;
  return usesTf32(op, options) ? Cores::Tf32 : options.halfCores && ir::isHalf(element) ? Cores::Halves : Cores::Scalar;
}

namespace {

/// Analyzes a product, then chooses its tiles and chunks.
class Tiling {
public:
  Tiling(const Product &product, Operation *op, int64_t capacity, const GridOptions &options)
      : options(options), made(product, op, capacity, coresFor(op, options)) {}

  bool findParts();
  TiledProduct cut();

private:
  AffineExpr offsetOf(const PlaceInMemory &its) const;
  int64_t strideAlong(const Product::Dim &dim, AffineExpr offset) const;
  AffineExpr orderOfTerms() const;
  Flat flatten(Product::Role role, AffineExpr order) const;
  bool isAlong(const Flat &side, AffineExpr offset) const;
  TileOperand operandFor(const char *name, const PlaceInMemory &its, const Flat &side);
  std::optional<Parts> partsOf(AffineExpr index) const;
  void addBound(TileOperand &operand, const Parts &nonNegative) const;
  int64_t partsOfRow(int64_t chunks) const;
  void cutIntoChunks();
  int64_t largestTile(const TileOperand &operand) const;
  void chooseTiles();
  bool arePacked() const;
  bool hasManySingles() const;
  void chooseDepth();
  int64_t blocks() const { return made.m.tiles() * made.n.tiles() * made.batch.atCapacity() * made.maxChunks; }
  bool holdsSums() const;
  void placeThreads();
  int64_t packedAt(const TileOperand &operand) const;
  bool isPacked(const TileOperand &operand, int64_t by) const;

  const GridOptions &options;
  TiledProduct made;
  bool isTileable = true;
};

} // namespace

bool Tiling::findParts() {
  TiledProduct &p = made;
  Product &product = p.product;
  bool rowsInN =
      llvm::any_of(product.dims, [](const Product::Dim &dim) { return dim.role == Product::N && dim.hasRows; });
  if (rowsInN) { // rows of the call are rows of the tile
    std::swap(product.a, product.b);
    for (Product::Dim &dim : product.dims)
      dim.role = dim.role == Product::M ? Product::N : dim.role == Product::N ? Product::M : dim.role;
  }
  p.resultOffset = product.space.normalize(offsetIn(p.type, product.result, p.capacity));
  p.m.flat = flatten(Product::M, p.resultOffset), p.n.flat = flatten(Product::N, p.resultOffset);
  p.batch = flatten(Product::Batch, p.resultOffset), p.k = flatten(Product::K, orderOfTerms());
  p.operands[0] = operandFor("a", product.a, p.m.flat);
  p.operands[1] = operandFor("b", product.b, p.n.flat);
  for (AffineExpr condition : product.nonNegative) {
    bool byM = product.uses(condition, Product::M), byN = product.uses(condition, Product::N);
    std::optional<Parts> parts = partsOf(condition);
    if ((byM && byN) || !parts)
      return false;
    if (byM || byN)
      addBound(p.operands[byM ? 0 : 1], *parts);
    else
      p.always.push_back(condition);
  }
  p.acrossM = isAlong(p.m.flat, p.resultOffset) && !p.n.flat.dims.empty();
  return isTileable;
}

AffineExpr Tiling::offsetOf(const PlaceInMemory &its) const {
  return made.product.space.normalize(offsetIn(tensorTypeOf(its.memory), its.index, made.capacity));
}

/// The stride along the dimension: 0 if the operand does not depend on it, and large if the stride is not constant.
int64_t Tiling::strideAlong(const Product::Dim &dim, AffineExpr offset) const {
  int64_t stride = dim.size == 1 && !dim.hasRows ? INT64_MAX : 0;
  for (const LinearIndex::Term &term : made.product.space.analyze(offset).terms)
    if (term.atom.isFunctionOfDim(cast<AffineDimExpr>(dim.variable).getPosition()))
      stride = std::max(stride, std::abs(term.coefficient));
  return stride;
}

/// The operand that determines the order of terms: the one that is contiguous along the sum.
AffineExpr Tiling::orderOfTerms() const {
  const Product &product = made.product;
  AffineExpr ofA = offsetOf(product.a), ofB = offsetOf(product.b);
  auto hasNeighbours = [&](AffineExpr offset) {
    return llvm::any_of(product.dims, [&](const Product::Dim &dim) {
      return dim.role == Product::K && dim.size > 1 && strideAlong(dim, offset) == 1;
    });
  };
  return hasNeighbours(ofA) || !hasNeighbours(ofB) ? ofA : ofB;
}

/// The dimensions of a role in memory order, with the rows of the call outermost.
Flat Tiling::flatten(Product::Role role, AffineExpr order) const {
  Flat flat;
  for (const Product::Dim &dim : made.product.dims) {
    if (dim.role != role)
      continue;
    flat.dims.push_back(dim);
    flat.hasRows |= dim.hasRows;
    flat.inner *= dim.hasRows ? 1 : dim.size;
  }
  auto place = [&](const Product::Dim &dim) {
    unsigned number = cast<AffineDimExpr>(dim.variable).getPosition();
    return std::tuple(!dim.hasRows, -strideAlong(dim, order), number);
  };
  llvm::sort(flat.dims, [&](const Product::Dim &one, const Product::Dim &other) { return place(one) < place(other); });
  return flat;
}

TileOperand Tiling::operandFor(const char *name, const PlaceInMemory &its, const Flat &side) {
  AffineExpr offset = offsetOf(its);
  std::optional<Parts> parts = partsOf(offset);
  isTileable &= parts.has_value();
  return {name, its.memory, parts.value_or(Parts()), {}, isAlong(side, offset)};
}

/// Whether the innermost of these dimensions is the innermost in memory.
bool Tiling::isAlong(const Flat &side, AffineExpr offset) const {
  return !side.dims.empty() && made.product.space.analyze(offset).coefficientOf(side.dims.back().variable) == 1;
}

/// None if one term of the index depends on both.
std::optional<Parts> Tiling::partsOf(AffineExpr index) const {
  const Product &product = made.product;
  LinearIndex linear = product.space.analyze(index), side, depth;
  side.constant = linear.constant;
  for (const LinearIndex::Term &term : linear.terms) {
    bool bySide = product.uses(term.atom, Product::M) || product.uses(term.atom, Product::N);
    bool byDepth = product.uses(term.atom, Product::K);
    if (bySide && byDepth)
      return std::nullopt;
    (byDepth ? depth : side).terms.push_back(term);
  }
  return Parts{product.space.toExpr(side), product.space.toExpr(depth)};
}

/// Two conditions that bound one index from both sides become one.
void Tiling::addBound(TileOperand &operand, const Parts &nonNegative) const {
  for (Bounded &other : operand.bounded) {
    AffineExpr sum = other.index.side + other.index.depth + nonNegative.side + nonNegative.depth;
    LinearIndex linear = made.product.space.analyze(sum);
    if (!other.most && linear.terms.empty() && linear.constant >= 0) {
      other.most = linear.constant;
      return;
    }
  }
  operand.bounded.push_back({nonNegative, std::nullopt});
}

//===- cuts -------------------------------------------------------------------------------------------------------===//

TiledProduct Tiling::cut() {
  cutIntoChunks();
  chooseTiles();
  chooseDepth();
  placeThreads();
  for (TileOperand &operand : made.operands)
    operand.packed = packedAt(operand);
  return made;
}

/// The number of equal parts of each row of the call, each with enough terms, to reach this many chunks.
int64_t Tiling::partsOfRow(int64_t chunks) const {
  int64_t rows = made.k.atCapacity() / made.k.inner, parts = llvm::divideCeilSigned(chunks, rows);
  auto isCut = [&] { return made.k.inner % (parts * made.depth) == 0; };
  while (parts > 1 && (made.k.inner / parts < kTermsOfChunk || !isCut()))
    --parts;
  return parts;
}

/// Long sums with few results are split until there are enough blocks: into whole chains, or whole rows of the call, or
/// parts of them.
void Tiling::cutIntoChunks() {
  auto tiles = [](const Flat &flat) -> int64_t { return llvm::divideCeilSigned(flat.atCapacity(), kTileOfChunks); };
  int64_t terms = made.k.atCapacity();
  int64_t results = tiles(made.m.flat) * tiles(made.n.flat) * made.batch.atCapacity();
  int64_t chunks = std::min(kBlocksAtOnce / std::max<int64_t>(1, results), terms / kTermsOfChunk);
  if (chunks < 2)
    return;
  made.partsOfRow = made.k.hasRows ? partsOfRow(chunks) : 1;
  int64_t unit = made.k.hasRows ? made.k.inner / made.partsOfRow : kChain;
  int64_t units = made.partsOfRow > 1 ? 1 : std::max<int64_t>(1, llvm::divideCeilSigned(terms, chunks) / unit);
  made.termsOfChunk = units * unit;
  made.maxChunks = llvm::divideCeilSigned(terms, made.termsOfChunk);
  if (made.maxChunks < 2)
    made.termsOfChunk = 0;
}

bool Tiling::holdsSums() const {
  int64_t registers = made.scalarBytes / 4 * (made.hasChains() ? 2 : 1);
  return made.m.tile * made.n.tile / kThreads * registers <= kRegistersOfSums;
}

/// The maximum tile size of a side: elements loaded one by one need a register for each address.
int64_t Tiling::largestTile(const TileOperand &operand) const {
  constexpr int64_t kSingles = 64, kLargestOfDoubles = 64; // larger tiles exceed shared memory
  bool isWide = isPacked(operand, (made.cores == Cores::Halves ? kBytesOfPack / 2 : kBytesOfPack) / made.termBytes);
  int64_t largest = made.scalarBytes > 4 ? kLargestOfDoubles : isWide ? options.largestTile : kSingles;
  return std::min(options.largestTile, largest);
}

/// The largest tiles that the result fills, that fill the device, and whose sums fit in registers.
void Tiling::chooseTiles() {
  constexpr int64_t kSmallest = 32;
  auto choose = [&](TileSide &side, int64_t largest) {
    side.tile = made.onTensorCores() ? kSmallest : kSide; // all warps have some of those of tensor cores
    while (side.tile < largest && side.tile < side.flat.atCapacity())
      side.tile *= 2;
  };
  choose(made.m, largestTile(made.operands[0]));
  choose(made.n, largestTile(made.operands[1]));
  auto larger = [&]() -> TileSide & { return made.n.tile > made.m.tile ? made.n : made.m; };
  while (!holdsSums() || (blocks() < options.wantedBlocks && larger().tile > kSmallest))
    larger().tile /= 2;
}

/// Whether each load has the maximum width.
bool Tiling::arePacked() const {
  return llvm::all_of(made.operands,
                      [&](const TileOperand &operand) { return isPacked(operand, kBytesOfPack / made.termBytes); });
}

/// Halves loaded one by one have steps as short as floats, because a thread keeps the address of each in registers. If
/// warps have only one fragment of columns, they multiply twice as many terms at once.
bool Tiling::hasManySingles() const {
  constexpr int64_t kMost = 4;
  return made.cores == Cores::Halves && made.n.tile > kFragment.warpsOfN * kFragment.columns &&
         llvm::any_of(made.operands, [&](const TileOperand &operand) {
           return made.sideOf(operand).tile * made.depth / kThreads > kMost && !isPacked(operand, 2);
         });
}

void Tiling::chooseDepth() {
  if (hasManySingles())
    made.depth = kDepth;
  if (made.m.tile * made.n.tile > kSmallTile || !arePacked())
    return;
  auto bytesAt = [&](int64_t depth) { return 2 * (made.m.tile + made.n.tile) * depth * made.termBytes; };
  while (made.depth < kMostDepth && made.depth < made.k.atCapacity() && bytesAt(2 * made.depth) <= kBytesOfTiles)
    made.depth *= 2;
}

/// Chooses the elements of a thread: groups that are adjacent in the tile. For tensor cores, their fragments determine
/// them.
void Tiling::placeThreads() {
  for (TileSide *side : {&made.m, &made.n}) {
    side->perThread = side->tile / kSide;
    side->width = std::min(kBytesOfPack / made.scalarBytes, side->perThread);
    if (made.onTensorCores())
      side->width = side == &made.m ? kFragment.widthOfM : kFragment.widthOfN;
    side->stride = made.onTensorCores() ? kFragment.stride : kSide * side->width;
  }
}

/// Elements per load: a power of two, such that every thread has some.
int64_t Tiling::packedAt(const TileOperand &operand) const {
  int64_t most = std::min(kBytesOfPack / made.termBytes, made.sideOf(operand).tile * made.depth / kThreads), by = most;
  while (by > 1 && !isPacked(operand, by))
    by /= 2;
  return by;
}

/// Whether aligned groups of this many adjacent rows, columns or terms are contiguous and aligned in memory, and each
/// condition (of a term, or of the result's element) holds for all of a group or for none.
bool Tiling::isPacked(const TileOperand &operand, int64_t by) const {
  const Flat &along = operand.alongSide ? made.sideOf(operand).flat : made.k;
  if (along.inner % by != 0 || (&along == &made.k && made.termsOfChunk % by != 0))
    return false;
  IndexSpace space(made.type.getContext());
  const Product &product = made.product;
  SmallVector<AffineExpr> replacements(product.dims.size(), getAffineConstantExpr(0, made.type.getContext()));
  AffineExpr lane = space.addVariable({}, {0, by - 1}, /*keep=*/true);
  Count same(this); // true in all lanes: no condition is emitted
  for (const Flat *flat : {&made.m.flat, &made.n.flat, &made.batch, &made.k}) {
    int64_t size = flat == &along ? llvm::divideCeilSigned(flat->atCapacity(), by) : flat->atCapacity();
    AffineExpr place = space.addVariable(same, {0, size - 1});
    flat->take(flat == &along ? place * by + lane : place, replacements);
  }
  auto differs = [&](AffineExpr index) { return space.usesLane(space.normalize(index.replaceDims(replacements))); };
  if (llvm::any_of(product.nonNegative, differs) || llvm::any_of(product.inResult, differs))
    return false;
  const PlaceInMemory &its = &operand == &made.operands[0] ? product.a : product.b;
  AffineExpr offset = space.normalize(offsetOf(its).replaceDims(replacements));
  auto isMultiple = [&](const LinearIndex::Term &term) { return term.atom == lane || term.coefficient % by == 0; };
  LinearIndex linear = space.analyze(offset);
  return space.isContiguous(offset, lane) && linear.constant % by == 0 && llvm::all_of(linear.terms, isMultiple);
}

std::optional<TiledProduct> TiledProduct::of(Operation *op, int64_t capacity, const GridOptions &options,
                                             ArrayRef<Operation *> moves) {
  Formulas formulas;
  std::optional<Product> product = findProduct(formulas, op, capacity, moves);
  if (!product)
    return std::nullopt;
  product->gatherUnits();
  Tiling tiling(*product, op, capacity, options);
  return tiling.findParts() ? std::optional(tiling.cut()) : std::nullopt;
}

} // namespace sluice::cuda
