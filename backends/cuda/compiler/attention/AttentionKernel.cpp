#include "backends/cuda/compiler/attention/AttentionKernel.h"

#include "backends/cuda/compiler/attention/AttentionText.h"
#include "backends/cuda/compiler/emit/Prelude.h"
#include "backends/cuda/compiler/emit/ThreadEmitter.h"
#include "backends/loops/Elements.h"
#include "backends/loops/ReadThrough.h"
#include "ir/Layout.h"
#include "ir/Types.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <fmt/format.h>

namespace sluice::cuda {

using namespace mlir;

// Shared memory of a block's tiles, available without opting in.
static constexpr int64_t kSharedBytes = 48 << 10;
// Bytes that a thread loads of a block at once, in registers; and bytes of shared memory for the values of each query.
static constexpr int64_t kIncomingBytesOfThread = 160, kBytesOfQuery = 8;
// Limits of the elements of an item, which determine the registers for sums.
static constexpr int64_t kMostElements = 128, kFewElements = 64;

namespace {

/// The common parameters of the three ops.
struct AttentionShape {
  explicit AttentionShape(Operation *op);

  Operation *op;
  Value q, k, v, mask;
  bool causal = false;
  double scale = 1;

  RankedTensorType typeOf(Value value) const { return cast<RankedTensorType>(value.getType()); }
  Type element() const { return typeOf(q).getElementType(); }
  int64_t heads() const { return typeOf(q).getDimSize(1); }
  int64_t headsOfKeys() const { return typeOf(k).getDimSize(1); }
  int64_t queries() const { return typeOf(q).getDimSize(2); }
  int64_t keys() const { return typeOf(k).getDimSize(2); }
  int64_t depth() const { return typeOf(q).getDimSize(3); }
  int64_t valueDepth() const { return typeOf(v).getDimSize(3); }
  bool isForward() const { return isa<ir::ScaledDotProductAttentionOp>(op); }
  bool isOfKeys() const { return isa<ir::AttentionKeyValueGradOp>(op); }

private:
  template <typename Op> void take(Op its);
};

/// The split of the work. A warp has 16 rows. `block` items of the other side are loaded at once, and a warp holds the
/// scores of `step` of them.
struct AttentionTiles {
  int64_t warps = 4, block = 64, step = 32;
  int64_t blocks = 1; ///< per multiprocessor, see GridFunction

  int64_t rows() const { return 16 * warps; }
  int64_t threads() const { return kWarp * warps; }
};

} // namespace

template <typename Op> void AttentionShape::take(Op its) {
  q = its.getQ(), k = its.getK(), v = its.getV(), mask = its.getMask();
  causal = its.getCausal();
  scale = its.getScale().convertToDouble();
}

AttentionShape::AttentionShape(Operation *op) : op(op) {
  if (auto forward = dyn_cast<ir::ScaledDotProductAttentionOp>(op))
    take(forward);
  else if (auto ofQueries = dyn_cast<ir::AttentionQueryGradOp>(op))
    take(ofQueries);
  else
    take(cast<ir::AttentionKeyValueGradOp>(op));
}

//===- supported ops ----------------------------------------------------------------------------------------------===//

std::string reasonAgainstAttention(Operation *op, const GridOptions &options) {
  AttentionShape shape(op);
  Type element = shape.element();
  if (!element.isF32() && !(ir::isHalf(element) && options.halfCores))
    return "kernels of attention are for f32, and for f16 and bf16 on tensor cores";
  if (std::max(shape.depth(), shape.valueDepth()) > kMostElements)
    return fmt::format("kernels of attention are for heads of at most {} elements", kMostElements);
  auto isOfSums = [&](Value value) { return shape.typeOf(value).getElementType().isF32(); };
  bool givesSums =
      shape.isForward() ? isOfSums(op->getResult(1)) : isOfSums(op->getOperand(4)) && isOfSums(op->getOperand(5));
  return givesSums ? "" : "kernels of attention need the logsumexp and the delta of each query in f32";
}

bool isLaidOutForAttention(RankedTensorType type, bool vectors) {
  return ir::isUncut(type) && (!vectors || ir::getPhysicalDims(type)->back().logical + 1 == type.getRank());
}

//===- operands ---------------------------------------------------------------------------------------------------===//

namespace {

/// The location of an operand's elements in a buffer.
struct OperandInMemory {
  Value memory;
  int64_t first;
  SmallVector<int64_t> strides; ///< from one to the next along each dimension
};

} // namespace

/// Elements of an item per load, see `Incoming` in AttentionText.cuh.
static int64_t packOf(int64_t elements, int64_t elementBytes) {
  int64_t most = 16 / elementBytes;
  return elements % most == 0 ? most : elements % 4 == 0 ? 4 : elements % 2 == 0 ? 2 : 1;
}

/// The location of an operand, possibly moved; none if its strides are not constant.
static std::optional<OperandInMemory> operandInMemory(Value operand, int64_t capacity,
                                                      ArrayRef<Operation *> moves = {}) {
  auto type = cast<RankedTensorType>(operand.getType());
  loops::IndexSpace space(type.getContext());
  SmallVector<AffineExpr> index;
  for (int64_t size : type.getShape())
    index.push_back(space.addVariable({}, {0, (ShapedType::isDynamic(size) ? capacity : size) - 1}, /*keep=*/true));
  loops::Formulas formulas;
  loops::PlaceInMemory place = loops::placeInMemory(formulas, operand, index, moves);
  auto memoryType = cast<RankedTensorType>(place.memory.getType());
  loops::LinearIndex linear = space.analyze(loops::offsetIn(memoryType, place.index, capacity));
  if (!llvm::all_of(linear.terms, [](const auto &term) { return isa<AffineDimExpr>(term.atom); }))
    return std::nullopt;
  auto strides = llvm::map_to_vector(index, [&](AffineExpr variable) { return linear.coefficientOf(variable); });
  return OperandInMemory{place.memory, linear.constant, strides};
}

/// Whether the elements of each item are contiguous, and packs of them aligned.
static bool areItems(const OperandInMemory &operand, RankedTensorType type) {
  int64_t pack = packOf(type.getShape().back(), ir::getElementBytes(type.getElementType()));
  auto isAligned = [&](int64_t elements) { return elements % pack == 0; };
  return operand.strides.back() == 1 && isAligned(operand.first) &&
         llvm::all_of(ArrayRef(operand.strides).drop_back(), isAligned);
}

bool findsOperands(Operation *op, int64_t capacity, ArrayRef<Operation *> moves) {
  loops::Formulas formulas;
  auto isFound = [&](OpOperand &operand) {
    std::optional<OperandInMemory> its = operandInMemory(operand.get(), capacity, moves);
    bool isOfVectors = cast<ir::BlockwiseOp>(op).holdsVectors(/*isResult=*/false, operand.getOperandNumber());
    return its && (!isOfVectors || areItems(*its, cast<RankedTensorType>(operand.get().getType())));
  };
  return loops::readsMemory(formulas, op, moves) && llvm::all_of(op->getOpOperands(), isFound);
}

//===- tiles ------------------------------------------------------------------------------------------------------===//

/// Bytes of a row in shared memory, see `TileRows` in AttentionText.cuh.
static int64_t rowBytes(int64_t elements, int64_t elementBytes) {
  constexpr int64_t kFragment = 16, kPadding = 16;
  return llvm::divideCeilSigned(elements, kFragment) * kFragment * elementBytes + kPadding;
}

/// The maximum useful sizes. `blocks` leaves each thread enough registers to avoid spilling; masks need more registers.
static AttentionTiles wantedTiles(const AttentionShape &shape) {
  bool isNarrow = std::max(shape.depth(), shape.valueDepth()) <= kFewElements, isOfHalves = ir::isHalf(shape.element());
  if (!isNarrow)
    return {.block = 64, .step = 16, .blocks = 1};
  int64_t blocks = (shape.isOfKeys() ? 2 : 3) + (isOfHalves && !shape.mask ? 1 : 0);
  return {.block = 32, .step = isOfHalves || shape.isForward() ? 32 : 16, .blocks = blocks};
}

/// Prefers the most warps, then the largest blocks, that fit in shared memory and in the registers for loads.
static AttentionTiles tilesOf(const AttentionShape &shape) {
  int64_t bytes = ir::getElementBytes(shape.element()), smallest = bytes == 2 ? 16 : 8;
  int64_t ofKeys = rowBytes(shape.depth(), bytes), ofValues = rowBytes(shape.valueDepth(), bytes);
  auto fits = [&](const AttentionTiles &tiles) {
    int64_t own = tiles.rows() * (shape.isForward() ? ofKeys : ofKeys + ofValues);
    int64_t incoming = tiles.block * (ofKeys + ofValues),
            ofColumns = shape.isOfKeys() ? tiles.block * kBytesOfQuery : 0;
    return own + incoming + ofColumns <= kSharedBytes && incoming <= kIncomingBytesOfThread * tiles.threads();
  };
  AttentionTiles wanted = wantedTiles(shape), tiles = wanted;
  for (int64_t warps : {4, 2}) {
    tiles.warps = warps;
    for (tiles.block = wanted.block; tiles.block >= smallest; tiles.block /= 2)
      if (fits(tiles)) {
        tiles.step = std::min(tiles.step, tiles.block);
        return tiles;
      }
  }
  llvm_unreachable("items of kMostElements fit");
}

//===- text -------------------------------------------------------------------------------------------------------===//

namespace {

class AttentionWriter {
public:
  AttentionWriter(ir::KernelOp kernel, Operation *op, StringRef name, int64_t capacity, const GridOptions &options)
      : results(kernel.getBody().front().getTerminator()->getOperands()), firstResult(kernel.getNumOperands()),
        buffers(firstResult + kernel.getNumResults() + 1), shape(op), tiles(tilesOf(shape)), name(name.str()),
        capacity(capacity), tf32(usesTf32(op, options)) {}

  std::string text() const;
  std::string tile() const;
  GridFunction function() const;
  double filled() const { return double(items()) / double(tilesOfHead() * tiles.rows()); }

private:
  int64_t items() const { return shape.isOfKeys() ? shape.keys() : shape.queries(); }
  int64_t tilesOfHead() const { return llvm::divideCeilSigned(items(), tiles.rows()); }
  std::string cores() const;
  std::string caseText() const;
  std::string operandText(unsigned number) const;
  std::string resultText(unsigned number) const;
  std::string maskText() const;
  std::string callText() const;

  SmallVector<Value> results; // of the kernel
  int64_t firstResult, buffers;
  AttentionShape shape;
  AttentionTiles tiles;
  std::string name;
  int64_t capacity;
  bool tf32;
};

} // namespace

std::string AttentionWriter::cores() const {
  if (ir::isHalf(shape.element()))
    return "HalfCores<" + memoryTypeName(shape.element()) + ">";
  return tf32 ? "Tf32Cores" : "ScalarCores";
}

std::string AttentionWriter::caseText() const {
  return fmt::format("struct {}_case {{\n"
                     "  typedef {} Cores;\n"
                     "  static constexpr int depth = {}, valueDepth = {}, queries = {}, keys = {};\n"
                     "  static constexpr int heads = {}, headsOfKey = {};\n"
                     "  static constexpr bool causal = {};\n"
                     "  static constexpr int threads = {}, block = {}, step = {};\n"
                     "}};\n",
                     name, cores(), shape.depth(), shape.valueDepth(), shape.queries(), shape.keys(), shape.heads(),
                     shape.heads() / shape.headsOfKeys(), shape.causal, tiles.threads(), tiles.block, tiles.step);
}

/// The tensor that begins at `first` in a buffer. Its second to last dimension is items, its last one elements.
static std::string itemsText(Type element, int64_t buffer, int64_t first, ArrayRef<int64_t> strides) {
  return fmt::format("Items<{0}>{{({0} *)b{1} + {2}, {3}, {4}, {5}}}", memoryTypeName(element), buffer, first,
                     strides[0], strides[1], strides[2]);
}

std::string AttentionWriter::operandText(unsigned number) const {
  Value operand = shape.op->getOperand(number);
  OperandInMemory its = *operandInMemory(operand, capacity);
  return itemsText(shape.typeOf(operand).getElementType(), cast<BlockArgument>(its.memory).getArgNumber(), its.first,
                   its.strides);
}

/// A null tensor if the kernel does not return the result.
std::string AttentionWriter::resultText(unsigned number) const {
  Value result = shape.op->getResult(number);
  auto found = llvm::find(results, result);
  if (found == results.end())
    return fmt::format("Items<{}>{{}}", memoryTypeName(shape.typeOf(result).getElementType()));
  return itemsText(shape.typeOf(result).getElementType(), firstResult + (found - results.begin()), /*first=*/0,
                   ir::getStrides(shape.typeOf(result), capacity));
}

/// The stride of a broadcast dimension is 0.
std::string AttentionWriter::maskText() const {
  if (!shape.mask)
    return "NoMask{}";
  RankedTensorType type = shape.typeOf(shape.mask);
  OperandInMemory its = *operandInMemory(shape.mask, capacity);
  std::string strides;
  for (auto [size, stride] : llvm::zip_equal(type.getShape(), its.strides))
    strides += ", " + std::to_string(size == 1 ? 0 : stride);
  return fmt::format("Mask<{0}>{{({0} *)b{1} + {2}{3}}}", memoryTypeName(type.getElementType()),
                     cast<BlockArgument>(its.memory).getArgNumber(), its.first, strides);
}

std::string AttentionWriter::callText() const {
  std::string scale = fmt::format("{:a}f", shape.scale), vectors;
  for (unsigned i = 0; i < 3; ++i)
    vectors += operandText(i) + ", ";
  if (shape.isForward())
    return fmt::format("attend<{}_case>({}{}, {}, {}, {}, tasks)", name, vectors, maskText(), resultText(0),
                       resultText(1), scale);
  for (unsigned i = 3; i < 6; ++i)
    vectors += operandText(i) + ", ";
  Type element = shape.element();
  std::string second = shape.isOfKeys() ? resultText(1) : fmt::format("Items<{}>{{}}", memoryTypeName(element));
  return fmt::format("attentionGradients<{}_case, {}>({}{}, {}, {}, {}, tasks)", name, shape.isOfKeys(), vectors,
                     maskText(), resultText(0), second, scale);
}

std::string AttentionWriter::text() const {
  std::string bounds = fmt::format("__launch_bounds__({}, {}) ", tiles.threads(), tiles.blocks);
  return kAttentionText + caseText() + kernelHead(name, buffers, bounds) + "  if (blockIdx.x >= tasks) return;\n  " +
         callText() + ";\n}\n";
}

std::string AttentionWriter::tile() const {
  return fmt::format("{} x {} scores of a block, {} at once in a warp", tiles.rows(), tiles.block, tiles.step);
}

GridFunction AttentionWriter::function() const {
  GridFunction function{name};
  function.threads = tiles.threads();
  function.blocks = tiles.blocks;
  function.tasks = tilesOfHead() * (shape.isOfKeys() ? shape.headsOfKeys() : shape.heads());
  RankedTensorType type = shape.typeOf(shape.q);
  if (type.isDynamicDim(0))
    function.rowsPerTask = 1;
  else
    function.tasks *= type.getDimSize(0);
  return function;
}

std::optional<LogicalResult> writeAttentionKernel(ir::KernelOp kernel, StringRef name, int64_t capacity,
                                                  const GridOptions &options, GridKernel &into) {
  auto ops = kernel.getBody().front().getOps<ir::BlockwiseOp>();
  if (ops.empty())
    return std::nullopt;
  Operation *op = *ops.begin();
  if (!findsOperands(op, capacity))
    return op->emitOpError(
        "reads what is computed in the same kernel, or lies apart; kernels of attention read memory");
  if (std::string reason = reasonAgainstAttention(op, options); !reason.empty())
    return op->emitOpError(reason);
  AttentionWriter writer(kernel, op, name, capacity, options);
  into.text += writer.text();
  into.functions.push_back(writer.function());
  into.tile = writer.tile();
  into.lanes = writer.filled();
  return success();
}

} // namespace sluice::cuda
