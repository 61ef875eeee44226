#include "backends/cpu/compiler/product/ContractionKernel.h"

#include "backends/cpu/compiler/Layouts.h"
#include "backends/cpu/compiler/loops/LaneEmitter.h"
#include "backends/cpu/compiler/loops/WidenOperands.h"
#include "backends/cpu/compiler/machine/Halves.h"
#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/Contraction.h"
#include "backends/cpu/compiler/product/ImageFormula.h"
#include "backends/cpu/compiler/product/MergedProduct.h"
#include "backends/cpu/compiler/product/WindowProduct.h"
#include "backends/loops/Elements.h"
#include "ir/Layout.h"
#include "ir/Work.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace sluice::cpu {

using namespace mlir;
using namespace loops;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {

class ContractionKernel {
public:
  ContractionKernel(ir::KernelOp kernel, const StageModule &into, StringRef name, const Target &target,
                    int64_t capacity)
      : kernel(kernel), yield(cast<ir::YieldOp>(kernel.getBody().front().getTerminator())), into(into), name(name),
        target(target), capacity(capacity), widened(kernel, into, name, target, capacity) {}

  FailureOr<LoweredKernel> lower();

private:
  LogicalResult check();
  FailureOr<Contraction> emit();
  FailureOr<Contraction> emitMatrices(const MatrixProduct &tensors);
  FailureOr<Contraction> emitWindows(const WindowProduct &windows);

  Epilogue epilogue(bool storesAll);
  SmallVector<Memory> accessed();
  Memory resultMemory(unsigned number);
  SmallVector<Value> logicalPlace(OpBuilder &b, Location loc, ArrayRef<Value> place);
  SmallVector<AffineExpr> indexOfFirst(LaneEmitter &emitter, Scopes &scopes, ArrayRef<Value> logical);
  void prefetchAll(StageFunction &stage, OpBuilder &b, Location loc, ArrayRef<Value> place);
  void storeAll(StageFunction &stage, OpBuilder &b, Location loc, ArrayRef<Value> index, Value sums);
  void fillPadding(LaneEmitter &emitter, Elements &elements, const Memory &memory, ArrayRef<AffineExpr> index,
                   int64_t lanes, unsigned along, Value first);

  Value applyFormula(StageFunction &stage, OpBuilder &b, Location loc, Value channel, Value x, int64_t count);
  void bindOperands(Elements &elements);
  Place placeOf(Value value);
  Place workspace();
  Type elementOfSums() { return ir::getAccumulator(typeOf(root->getResult(0)).getElementType()); }
  InFlightDiagnostic refuse(const Twine &why) { return root->emitOpError(why); }

  ir::KernelOp kernel;
  ir::YieldOp yield;
  StageModule into;
  StringRef name;
  const Target &target;
  int64_t capacity;
  Operation *root = nullptr;
  bool failedInEpilogue = false;
  Formulas formulas;
  WidenOperands widened;
  std::optional<ImageFormula> imageFormula; // of a weight gradient that computes its image
  std::optional<MergedProduct> matrices;    // unless the product is of windows
  std::optional<unsigned> lanesDim;         // the logical dimension of the result along the lanes; none: one element
};

} // namespace

FailureOr<LoweredKernel> ContractionKernel::lower() {
  if (failed(check()) || failed(widened.widen(root, widenedWeightOf(root, target, capacity))))
    return failure();
  FailureOr<Contraction> made = emit();
  if (failed(made) || failedInEpilogue)
    return failure();
  LoweredKernel lowered;
  llvm::append_range(lowered.stages, widened.stages());
  llvm::append_range(lowered.stages, made->stages);
  lowered.workspaceBytes = widened.workspaceBytes() + made->workspaceBytes;
  lowered.lanes = made->lanes;
  lowered.hasBodies = into.hasBodies;
  return lowered;
}

LogicalResult ContractionKernel::check() {
  for (auto op : kernel.getBody().front().getOps<ir::ContractionOp>()) {
    if (root)
      return op.emitOpError("is the second product of the kernel ")
             << kernel.getNameAttr() << "; the CPU makes kernels of one";
    root = op;
  }
  imageFormula = ImageFormula::of(root, [&](Operation *op) { return op->getParentOp() == kernel; }, target, capacity);
  for (auto [number, operand] : llvm::enumerate(root->getOperands()))
    if (!(imageFormula && operand == imageFormula->image) && !isa<BlockArgument>(WidenOperands::sourceOf(operand)))
      return refuse("operand ")
             << number << " is computed in the same kernel; the CPU reads the operands of products from memory";
  Type element = typeOf(root->getResult(0)).getElementType();
  if (ir::getAccumulator(element) != element && !ir::isHalf(element))
    return refuse("the CPU has no products of ") << element << ", whose sums are " << ir::getAccumulator(element);
  for (Value value : yield.getOperands())
    if (typeOf(value).getShape() != typeOf(root->getResult(0)).getShape())
      return refuse("kernel ") << kernel.getNameAttr() << " yields a value of shape "
                               << ir::printShape(typeOf(value).getShape()) << ", its product has "
                               << ir::printShape(typeOf(root->getResult(0)).getShape());
  return success();
}

FailureOr<Contraction> ContractionKernel::emit() {
  if (std::optional<WindowProduct> windows = WindowProduct::of(root))
    return emitWindows(*windows);
  if (std::optional<MatrixProduct> tensors = MatrixProduct::of(root, capacity))
    return emitMatrices(*tensors);
  refuse("is a product that the CPU cannot make");
  return failure();
}

// The buffer of a block argument, or of its widened copy; that of the first result for the contraction's value.
Place ContractionKernel::placeOf(Value value) {
  if (std::optional<int64_t> offset = widened.offsetOf(value))
    return {int64_t(kernel.getNumOperands() + kernel.getNumResults()), *offset};
  if (auto argument = dyn_cast<BlockArgument>(WidenOperands::sourceOf(value)))
    return {int64_t(argument.getArgNumber()), 0};
  return {int64_t(kernel.getNumOperands()), 0};
}

/// The workspace of the generator, after the widened operands.
Place ContractionKernel::workspace() {
  return {int64_t(kernel.getNumOperands() + kernel.getNumResults()), widened.workspaceBytes() / int64_t(sizeof(float))};
}

// Products of matrices.

FailureOr<Contraction> ContractionKernel::emitMatrices(const MatrixProduct &tensors) {
  auto refuseLayout = [&](StringRef what, const MatrixProduct::Tensor &tensor) -> FailureOr<Contraction> {
    refuse(what + " has a layout that products cannot use: ") << tensor.memory.getType();
    return failure();
  };
  if (!tensors.canStore(target))
    return refuseLayout("the result", tensors.y);
  if (!tensors.canReadA())
    return refuseLayout(tensors.swapped ? "b" : "a", tensors.a);
  if (!tensors.canReadB(target))
    return refuseLayout(tensors.swapped ? "a" : "b", tensors.b);
  matrices = MergedProduct::of(tensors, target);
  lanesDim = tensors.lanes;
  Matmul product = matrices->matmul;
  product.a.place = placeOf(tensors.a.memory);
  product.b.place = placeOf(tensors.b.memory);
  if (Value weight = widenedWeightOf(root, target, capacity)) {
    if (auto blocks = weight.getDefiningOp<ir::DequantizeBlocksOp>())
      product.b.scales = placeOf(blocks.getScales());
    else
      product.b.half = typeOf(WidenOperands::sourceOf(weight)).getElementType();
  }
  product.c.place = placeOf(tensors.y.memory);
  product.workspace = workspace();
  product.epilogue = epilogue(!matrices->storesAlone);
  return emitMatmul(into, name, root->getLoc(), product, target);
}

// Convolutions and their gradients.

// The generator uses a call's rows for the images; if the batch is not `?`, their number is constant instead.
static void fixImages(Contraction &contraction, ModuleOp into, int64_t images) {
  for (Stage &stage : contraction.stages) {
    auto function = into.lookupSymbol<func::FuncOp>(stage.function);
    OpBuilder b = OpBuilder::atBlockBegin(&function.getBody().front());
    function.getArgument(1).replaceAllUsesWith(b.create<arith::ConstantIntOp>(function.getLoc(), images, 64));
    if (stage.rowsPerTask != 0)
      stage.tasks *= (images + stage.rowsPerTask - 1) / stage.rowsPerTask;
    stage.rowsPerTask = 0;
  }
  contraction.flops += std::exchange(contraction.flopsPerRow, 0) * images;
  contraction.bytes += std::exchange(contraction.bytesPerRow, 0) * images;
}

/// Whether weights are in panels along the output channels, or, if there are groups, `[kh][kw][1][O]`.
static bool isFilter(RankedTensorType type, int64_t groups, int64_t panel) {
  if (groups > 1)
    return ir::liesAs(type, getGroupedFilter(type.getContext()));
  return panel != 0 && ir::liesAs(type, getFilterPanels(type.getContext(), panel));
}

FailureOr<Contraction> ContractionKernel::emitWindows(const WindowProduct &product) {
  RankedTensorType xType = typeOf(product.image), weightType = typeOf(product.weights), yType = typeOf(product.output);
  for (RankedTensorType type : {xType, yType})
    if (!ir::liesAs(type, ir::getNhwc(root->getContext()))) {
      refuse("has an activation that is not NHWC: ") << type;
      return failure();
    }
  Convolution convolution = product.geometry(capacity);
  convolution.panel = panelAlong(weightType, 0);
  if (!isFilter(weightType, product.groups, convolution.panel)) {
    refuse("has weights in a layout that convolutions cannot use: ") << weightType;
    return failure();
  }
  convolution.input = placeOf(imageFormula ? imageFormula->source : product.image);
  if (imageFormula)
    convolution.inputFormula = [this](StageFunction &stage, OpBuilder &b, Location loc, Value channel, Value x,
                                      int64_t count) { return applyFormula(stage, b, loc, channel, x, count); };
  convolution.weights = placeOf(product.weights);
  convolution.output = placeOf(product.output);
  convolution.workspace = workspace();
  bool isWeights = product.result == WindowProduct::Weights;
  lanesDim = isWeights ? 0 : 1;
  bool padded = isWeights && convolution.outputChannels % convolution.panel != 0;
  convolution.epilogue = epilogue(padded);
  if (std::string why = unsupported(convolution); !why.empty()) {
    refuse(why);
    return failure();
  }
  auto *emit = isWeights                                 ? emitConvolutionWeightGradient
               : product.result == WindowProduct::Output ? emitConvolution
                                                         : emitConvolutionInputGradient;
  Contraction contraction = emit(into, name, root->getLoc(), convolution, target);
  if (!xType.isDynamicDim(0))
    fixImages(contraction, into.module, convolution.rows);
  return contraction;
}

// The epilogue.

// None if only the sums are stored, which the generator does, unless `storesAll`. The epilogue fills padding and rounds
// halves.
Epilogue ContractionKernel::epilogue(bool storesAll) {
  bool rounds = ir::isHalf(typeOf(root->getResult(0)).getElementType());
  if (yield.getNumOperands() == 1 && yield.getOperand(0) == root->getResult(0) && !storesAll && !rounds)
    return {};
  Epilogue epilogue;
  constexpr int64_t kOpsOfShort = 4; // such as a product, the expansion of a bias, an addition and a ReLU
  epilogue.isLong = llvm::range_size(kernel.getBody().front().without_terminator()) > kOpsOfShort;
  epilogue.store = [this](StageFunction &stage, OpBuilder &b, Location loc, ArrayRef<Value> index, Value sums) {
    storeAll(stage, b, loc, index, sums);
  };
  int64_t bytes = 0;
  for (const Memory &memory : accessed())
    bytes += ir::getBufferBytes(memory.type, capacity);
  if (lanesDim && target.isFar(bytes))
    epilogue.prefetch = [this](StageFunction &stage, OpBuilder &b, Location loc, ArrayRef<Value> index) {
      prefetchAll(stage, b, loc, index);
    };
  return epilogue;
}

Memory ContractionKernel::resultMemory(unsigned number) {
  return {int64_t(kernel.getNumOperands() + number), 0, typeOf(yield.getOperand(number))};
}

// The operands and results that the epilogue accesses element by element.
SmallVector<Memory> ContractionKernel::accessed() {
  SmallVector<Memory> all;
  auto isFactor = [&](Value argument) {
    return llvm::any_of(root->getOperands(), [&](Value its) {
      Operation *op = its.getDefiningOp();
      return its == argument || (op && ir::isWidening(op) && llvm::is_contained(op->getOperands(), argument));
    });
  };
  for (BlockArgument argument : kernel.getBody().front().getArguments())
    if (typeOf(argument).getShape() == typeOf(root->getResult(0)).getShape() && !isFactor(argument))
      all.push_back({int64_t(argument.getArgNumber()), 0, typeOf(argument)});
  for (unsigned number = 0; number < yield.getNumOperands(); ++number)
    all.push_back(resultMemory(number));
  return all;
}

namespace {

// The coordinates of a place as affine expressions. Where generators split coordinates from a merged one, such as the
// image, row, and column of a pixel, these are expressions of the merged one: offsets that merge them again then need
// no division.
class Coordinates {
public:
  Coordinates(LaneEmitter &emitter, Scopes &scopes) : emitter(emitter), scopes(scopes) {}

  // `value` is in 0 .. size - 1.
  void bound(Value value, int64_t size) {
    sizes.try_emplace(value, size);
    if (std::optional<int64_t> divisor = divisorOf<arith::DivUIOp>(value))
      bound(value.getDefiningOp()->getOperand(0), size * *divisor);
  }

  // Of a bounded value.
  AffineExpr exprOf(Value value) {
    APInt known;
    if (matchPattern(value, m_ConstantInt(&known)))
      return getAffineConstantExpr(known.getSExtValue(), value.getContext());
    if (std::optional<int64_t> divisor = divisorOf<arith::DivUIOp>(value))
      return exprOf(value.getDefiningOp()->getOperand(0)).floorDiv(*divisor);
    if (std::optional<int64_t> divisor = divisorOf<arith::RemUIOp>(value))
      if (Value merged = value.getDefiningOp()->getOperand(0); sizes.contains(merged))
        return exprOf(merged) % *divisor;
    AffineExpr &variable = variables[value];
    if (!variable)
      variable = scopes.variable(LaneEmitter::handleOf<Count>(value), {0, sizes.lookup(value) - 1});
    return variable;
  }

  // Of a value that is a multiple of this.
  AffineExpr exprOf(Value value, int64_t multiple) {
    APInt known;
    if (multiple == 1 || matchPattern(value, m_ConstantInt(&known)))
      return exprOf(value);
    auto count = emitter.arithmetic(CountOp::Div, LaneEmitter::handleOf<Count>(value), emitter.constant(multiple));
    return scopes.variable(count, {0, (sizes.lookup(value) - 1) / multiple}) * multiple;
  }

private:
  template <typename Op> static std::optional<int64_t> divisorOf(Value value) {
    auto op = value.getDefiningOp<Op>();
    APInt divisor;
    if (!op || !matchPattern(op.getRhs(), m_ConstantInt(&divisor)))
      return {};
    return divisor.getSExtValue();
  }

  LaneEmitter &emitter;
  Scopes &scopes;
  llvm::DenseMap<Value, int64_t> sizes;
  llvm::DenseMap<Value, AffineExpr> variables;
};

} // namespace

SmallVector<Value> ContractionKernel::logicalPlace(OpBuilder &b, Location loc, ArrayRef<Value> place) {
  return matrices ? matrices->indexOf(b, loc, place) : SmallVector<Value>(place);
}

/// The logical index of lane 0.
SmallVector<AffineExpr> ContractionKernel::indexOfFirst(LaneEmitter &emitter, Scopes &scopes, ArrayRef<Value> logical) {
  // Vectors of sums begin at multiples of the target's lanes, so each is inside of one tile of a layout.
  int64_t whole = target.lanes(elementOfSums().getIntOrFloatBitWidth());
  Coordinates coordinates(emitter, scopes);
  for (auto [dim, value] : llvm::enumerate(logical)) {
    int64_t size = typeOf(root->getResult(0)).getDimSize(dim);
    coordinates.bound(value, ShapedType::isDynamic(size) ? capacity : size);
  }
  SmallVector<AffineExpr> index;
  for (auto [dim, value] : llvm::enumerate(logical))
    index.push_back(coordinates.exprOf(value, dim == lanesDim ? whole : 1));
  return index;
}

void ContractionKernel::bindOperands(Elements &elements) {
  for (BlockArgument argument : kernel.getBody().front().getArguments())
    elements.bind(argument, {int64_t(argument.getArgNumber()), 0, typeOf(argument)});
}

void ContractionKernel::prefetchAll(StageFunction &stage, OpBuilder &b, Location loc, ArrayRef<Value> place) {
  OpBuilder body(b);
  SmallVector<Value> logical = logicalPlace(body, loc, place);
  LaneEmitter emitter(body, loc, stage, 1, 1, LaneEmitter::Surroundings::Ignored);
  Elements elements(emitter, formulas, capacity);
  SmallVector<AffineExpr> index = indexOfFirst(emitter, elements.scopes(), logical);
  for (const Memory &memory : accessed())
    emitter.prefetch(memory, elements.offsetOf(memory.type, index),
                     /*forWrite=*/memory.buffer >= int64_t(kernel.getNumOperands()));
}

void ContractionKernel::storeAll(StageFunction &stage, OpBuilder &b, Location loc, ArrayRef<Value> place, Value sums) {
  int64_t lanes = cast<VectorType>(sums.getType()).getNumElements();
  Value result = root->getResult(0);
  Type stored = typeOf(result).getElementType();
  OpBuilder body(b);
  SmallVector<Value> logical = logicalPlace(body, loc, place);

  LaneEmitter emitter(body, loc, stage, lanes, lanes, LaneEmitter::Surroundings::Ignored);
  Elements elements(emitter, formulas, capacity);
  bindOperands(elements);
  SmallVector<AffineExpr> index = indexOfFirst(emitter, elements.scopes(), logical);
  if (lanesDim)
    index[*lanesDim] = index[*lanesDim] + elements.scopes().laneVariable();
  Value rounded = ir::isHalf(stored) ? roundToHalf(body, loc, sums, stored) : sums;
  elements.seed(result, index, LaneEmitter::handleOf<Element>(rounded));
  SmallVector<std::pair<Memory, Element>> stores;
  for (auto [number, value] : llvm::enumerate(yield.getOperands()))
    stores.push_back({resultMemory(number), elements.element(value, index)});
  for (auto &[memory, element] : stores) {
    AffineExpr offset = elements.offsetOf(memory.type, index);
    if (lanes > 1 && !emitter.space().isContiguous(offset, elements.scopes().lanes().variable)) {
      failedInEpilogue = true;
      refuse("kernel yields a value in a layout across the product's vectors: ") << memory.type;
      return;
    }
    elements.store(memory, offset, element);
    if (lanesDim)
      fillPadding(emitter, elements, memory, index, lanes, *lanesDim, logical[*lanesDim]);
  }
  failedInEpilogue |= elements.hasFailed();
}

// The image's elements in the `count` channels from `channel` on, from those of its source. Other lanes are undefined.
Value ContractionKernel::applyFormula(StageFunction &stage, OpBuilder &b, Location loc, Value channel, Value x,
                                      int64_t count) {
  int64_t lanes = cast<VectorType>(x.getType()).getNumElements();
  OpBuilder body(b);
  LaneEmitter emitter(body, loc, stage, lanes, lanes, LaneEmitter::Surroundings::Ignored);
  Elements elements(emitter, formulas, capacity);
  bindOperands(elements);
  SmallVector<AffineExpr> index(4, getAffineConstantExpr(0, b.getContext())); // the formula reads channels alone
  int64_t channels = typeOf(imageFormula->image).getDimSize(1);
  AffineExpr first = elements.scopes().variable(LaneEmitter::handleOf<Count>(channel), {0, channels - 1});
  index[1] = first + elements.scopes().laneVariable(count);
  elements.seed(imageFormula->source, index, LaneEmitter::handleOf<Element>(x));
  return LaneEmitter::valueOf(elements.element(imageFormula->image, index));
}

// After the last element along the lanes' dimension, where the vector from `first` on ends: zeros up to the end of its
// tile.
void ContractionKernel::fillPadding(LaneEmitter &emitter, Elements &elements, const Memory &memory,
                                    ArrayRef<AffineExpr> index, int64_t lanes, unsigned along, Value first) {
  int64_t size = memory.type.getDimSize(along), tile = 0;
  SmallVector<ir::PhysicalDim> dims = *ir::getPhysicalDims(memory.type);
  for (const ir::PhysicalDim &dim : dims)
    if (dim.kind == ir::PhysicalDim::Mod && dim.logical == along)
      tile = dim.tile;
  if (tile == 0 || size % tile == 0)
    return;
  Condition isLast;
  if (lanes == target.lanes(elementOfSums().getIntOrFloatBitWidth())) {
    auto from = LaneEmitter::handleOf<Count>(first);
    isLast = emitter.isEqual(emitter.arithmetic(CountOp::Add, from, emitter.constant(lanes)), size);
  }
  SmallVector<AffineExpr> end(index);
  end[along] = getAffineConstantExpr(size, memory.type.getContext());
  elements.scopes().block(isLast, {}, [&] {
    emitter.storeZeros(memory, elements.offsetOf(memory.type, end), tile - size % tile);
    return Scopes::Carried();
  });
}

FailureOr<LoweredKernel> lowerContractionKernel(ir::KernelOp kernel, const StageModule &into, StringRef name,
                                                const Target &target, int64_t capacity) {
  return ContractionKernel(kernel, into, name, target, capacity).lower();
}

} // namespace sluice::cpu
