#include "backends/cpu/compiler/ContractionKernel.h"

#include "backends/cpu/compiler/Halves.h"
#include "backends/cpu/compiler/Layouts.h"
#include "backends/cpu/compiler/VectorAccess.h"
#include "backends/cpu/compiler/WidenOperands.h"
#include "backends/cpu/compiler/contraction/Contraction.h"
#include "backends/cpu/compiler/loops/LaneEmitter.h"
#include "backends/loops/Elements.h"
#include "ir/Layout.h"
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
  FailureOr<Contraction> emitProduct(ir::MatmulOp matmul);
  template <typename Op> FailureOr<Contraction> emitWindows(Op op, Value x, Value weight, Value y);

  Epilogue epilogue(bool transposed);
  void storeAll(StageFunction &stage, OpBuilder &b, Location loc, ArrayRef<Value> index, Value sums);
  void fillPadding(LaneEmitter &emitter, Elements &elements, const Memory &memory, ArrayRef<AffineExpr> index,
                   int64_t lanes, Value first);
  unsigned lanesDim();

  Place placeOf(Value value);
  Place workspace();
  Type elementOfSums() { return ir::getAccumulator(typeOf(root->getResult(0)).getElementType()); }
  FailureOr<Matmul::Matrix> matrixOf(Value value, bool transposed, StringRef role);
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
  bool swapped = false; // the generator makes the transposed product
};

} // namespace

FailureOr<LoweredKernel> ContractionKernel::lower() {
  if (failed(check()) || failed(widened.widen(root)))
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
  for (auto [number, operand] : llvm::enumerate(root->getOperands()))
    if (!isa<BlockArgument>(operand))
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
  if (auto matmul = dyn_cast<ir::MatmulOp>(root))
    return emitProduct(matmul);
  if (auto conv = dyn_cast<ir::Conv2dOp>(root))
    return emitWindows(conv, conv.getX(), conv.getWeight(), conv.getY());
  if (auto conv = dyn_cast<ir::Conv2dInputGradOp>(root))
    return emitWindows(conv, conv.getDx(), conv.getWeight(), conv.getDy());
  if (auto conv = dyn_cast<ir::Conv2dWeightGradOp>(root))
    return emitWindows(conv, conv.getX(), conv.getDweight(), conv.getDy());
  refuse("is a product that the CPU cannot make");
  return failure();
}

// The buffer of a block argument, or where it was widened to; that of the first result for the contraction's own value.
Place ContractionKernel::placeOf(Value value) {
  if (std::optional<int64_t> offset = widened.offsetOf(value))
    return {int64_t(kernel.getNumOperands() + kernel.getNumResults()), *offset};
  if (auto argument = dyn_cast<BlockArgument>(value))
    return {int64_t(argument.getArgNumber()), 0};
  return {int64_t(kernel.getNumOperands()), 0};
}

/// What the generator may use: behind the operands that were widened.
Place ContractionKernel::workspace() {
  return {int64_t(kernel.getNumOperands() + kernel.getNumResults()), widened.workspaceBytes() / int64_t(sizeof(float))};
}

// Products.

FailureOr<Matmul::Matrix> ContractionKernel::matrixOf(Value value, bool transposed, StringRef role) {
  RankedTensorType type = typeOf(value);
  if (ir::liesAs(type, AffineMap())) // dimensions of size 1 may stand anywhere
    type = ir::withLayout(type, AffineMap());
  int64_t rank = type.getRank();
  Matmul::Matrix matrix;
  matrix.place = placeOf(value);
  if (int64_t panel = panelOfFirstDim(type);
      panel && rank == 2 && ir::liesAs(type, getMatrixPanels(type.getContext(), panel))) {
    matrix.layout = transposed ? Matmul::Layout::Panels : Matmul::Layout::PanelsT;
    matrix.panel = panel;
    return matrix;
  }
  SmallVector<int64_t> strides(rank, 0), sizes = ir::getPhysicalShape(type, capacity);
  int64_t stride = 1;
  SmallVector<ir::PhysicalDim> dims = *ir::getPhysicalDims(type);
  for (int64_t i = rank - 1; i >= 0 && int64_t(dims.size()) == rank; --i) {
    strides[dims[i].logical] = stride;
    stride *= sizes[i];
  }
  if (llvm::any_of(dims, [](const ir::PhysicalDim &dim) { return dim.kind != ir::PhysicalDim::Whole; })) {
    refuse(role + " has a layout that products cannot use: ") << type;
    return failure();
  }
  matrix.strideI = strides[rank - (transposed ? 1 : 2)];
  matrix.strideJ = strides[rank - (transposed ? 2 : 1)];
  matrix.batchStrides.assign(strides.begin(), strides.end() - 2);
  return matrix;
}

FailureOr<Contraction> ContractionKernel::emitProduct(ir::MatmulOp op) {
  RankedTensorType a = typeOf(op.getA()), y = typeOf(op.getY());
  int64_t rank = y.getRank();
  auto sizeOf = [&](int64_t size) { return ShapedType::isDynamic(size) ? capacity : size; };
  int64_t sizeM = y.getDimSize(rank - 2), sizeN = y.getDimSize(rank - 1),
          sizeK = a.getDimSize(rank - (op.getTransposeA() ? 2 : 1));

  Matmul product;
  product.element = elementOfSums();
  for (int64_t size : y.getShape().drop_back(2))
    product.batch.push_back(sizeOf(size));
  if (rank > 2 && y.isDynamicDim(0))
    product.rows = Matmul::Rows::Batch;
  else if (ShapedType::isDynamic(sizeK))
    product.rows = Matmul::Rows::K;
  else if (ShapedType::isDynamic(sizeM))
    product.rows = Matmul::Rows::M;

  swapped = isMadeTransposed(op);
  FailureOr<Matmul::Matrix> left = matrixOf(swapped ? op.getB() : op.getA(),
                                            swapped ? !op.getTransposeB() : op.getTransposeA(), swapped ? "b" : "a");
  FailureOr<Matmul::Matrix> right = matrixOf(swapped ? op.getA() : op.getB(),
                                             swapped ? !op.getTransposeA() : op.getTransposeB(), swapped ? "a" : "b");
  FailureOr<Matmul::Matrix> result = matrixOf(op.getY(), swapped, "the result");
  if (failed(left) || failed(right) || failed(result))
    return failure();
  if (left->layout != Matmul::Layout::Strided) {
    refuse(swapped ? "b" : "a") << " is kept in panels, which only the other operand of a product may be";
    return failure();
  }
  product.m = sizeOf(swapped ? sizeN : sizeM);
  product.n = sizeOf(swapped ? sizeM : sizeN);
  product.k = sizeOf(sizeK);
  product.a = *left;
  product.b = *right;
  product.c = *result;
  product.workspace = workspace();
  bool stores =
      result->layout == Matmul::Layout::Panels || (result->layout == Matmul::Layout::Strided && result->strideJ == 1);
  if (!stores) {
    refuse("the result has a layout that products cannot write: ") << y;
    return failure();
  }
  product.epilogue = epilogue(result->layout == Matmul::Layout::Panels && product.n % result->panel != 0);
  return emitMatmul(into, name, op.getLoc(), product, target);
}

// Convolutions and their gradients.

// The generator takes a call's rows for its images; where the batch is no `?`, their number is fixed instead.
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

template <typename Op> FailureOr<Contraction> ContractionKernel::emitWindows(Op op, Value x, Value weight, Value y) {
  RankedTensorType xType = typeOf(x), weightType = typeOf(weight), yType = typeOf(y);
  for (RankedTensorType type : {xType, yType})
    if (!ir::liesAs(type, ir::getNhwc(op.getContext()))) {
      refuse("has an activation that is not NHWC: ") << type;
      return failure();
    }
  Convolution convolution;
  convolution.panel = panelOfFirstDim(weightType);
  if (!convolution.panel || !ir::liesAs(weightType, getFilterPanels(op.getContext(), convolution.panel))) {
    refuse("has weights that are not in panels along the output channels: ") << weightType;
    return failure();
  }
  convolution.element = elementOfSums();
  convolution.rows = xType.isDynamicDim(0) ? capacity : xType.getDimSize(0);
  convolution.inputChannels = xType.getDimSize(1);
  convolution.outputChannels = yType.getDimSize(1);
  convolution.groups = op.getGroups();
  auto axis = [&](unsigned dim) {
    Convolution::Axis axis;
    axis.input = xType.getDimSize(2 + dim);
    axis.kernel = weightType.getDimSize(2 + dim);
    axis.stride = op.getStride()[dim];
    axis.dilation = op.getDilation()[dim];
    axis.padBefore = op.getPadding()[dim];
    axis.padAfter = op.getPadding()[dim + 2];
    return axis;
  };
  convolution.height = axis(0);
  convolution.width = axis(1);
  convolution.input = placeOf(x);
  convolution.weights = placeOf(weight);
  convolution.output = placeOf(y);
  convolution.workspace = workspace();
  bool padded = isa<ir::Conv2dWeightGradOp>(op) && convolution.outputChannels % convolution.panel != 0;
  convolution.epilogue = epilogue(padded);
  if (std::string why = unsupported(convolution); !why.empty()) {
    refuse(why);
    return failure();
  }
  auto *emit = isa<ir::Conv2dOp>(op)            ? emitConvolution
               : isa<ir::Conv2dInputGradOp>(op) ? emitConvolutionInputGradient
                                                : emitConvolutionWeightGradient;
  Contraction contraction = emit(into, name, op.getLoc(), convolution, target);
  if (!xType.isDynamicDim(0))
    fixImages(contraction, into.module, convolution.rows);
  return contraction;
}

// The epilogue.

// The logical dimension of the result that lanes go along.
unsigned ContractionKernel::lanesDim() {
  if (isa<ir::MatmulOp>(root))
    return typeOf(root->getResult(0)).getRank() - (swapped ? 2 : 1);
  return isa<ir::Conv2dWeightGradOp>(root) ? 0 : 1;
}

// None where the sums are all that is stored, as the generator stores them; padding is filled here, and halves are rounded.
Epilogue ContractionKernel::epilogue(bool padded) {
  padded |= ir::isHalf(typeOf(root->getResult(0)).getElementType());
  if (yield.getNumOperands() == 1 && yield.getOperand(0) == root->getResult(0) && !padded)
    return nullptr;
  return [this](StageFunction &stage, OpBuilder &b, Location loc, ArrayRef<Value> index, Value sums) {
    storeAll(stage, b, loc, index, sums);
  };
}

static AffineExpr exprOf(Emitter &emitter, Scopes &scopes, Value value, Interval range, int64_t multiple) {
  APInt known;
  if (matchPattern(value, m_ConstantInt(&known)))
    return getAffineConstantExpr(known.getSExtValue(), value.getContext());
  auto count = LaneEmitter::handleOf<Count>(value);
  if (multiple == 1)
    return scopes.variable(count, range);
  count = emitter.arithmetic(CountOp::Div, count, emitter.constant(multiple));
  return scopes.variable(count, {range.low / multiple, range.high / multiple}) * multiple;
}

void ContractionKernel::storeAll(StageFunction &stage, OpBuilder &b, Location loc, ArrayRef<Value> place, Value sums) {
  int64_t lanes = cast<VectorType>(sums.getType()).getNumElements();
  Value result = root->getResult(0);
  Type stored = typeOf(result).getElementType();
  SmallVector<Value> logical(place);
  if (swapped)
    std::swap(logical[logical.size() - 1], logical[logical.size() - 2]);

  OpBuilder body(b);
  LaneEmitter emitter(body, loc, stage, lanes, lanes, LaneEmitter::Surroundings::Ignored);
  Elements elements(emitter, formulas, capacity);
  for (BlockArgument argument : kernel.getBody().front().getArguments())
    elements.bind(argument, {int64_t(argument.getArgNumber()), 0, typeOf(argument)});
  // Vectors of sums begin at multiples of the target's lanes, which keeps them inside one tile of a layout.
  int64_t whole = target.lanes(elementOfSums().getIntOrFloatBitWidth());
  SmallVector<AffineExpr> index;
  for (auto [dim, value] : llvm::enumerate(logical)) {
    int64_t size = typeOf(result).getDimSize(dim);
    Interval range{0, (ShapedType::isDynamic(size) ? capacity : size) - 1};
    bool isLane = dim == lanesDim();
    AffineExpr expr = exprOf(emitter, elements.scopes(), value, range, isLane ? whole : 1);
    index.push_back(isLane ? expr + elements.scopes().laneVariable() : expr);
  }
  Value rounded = ir::isHalf(stored) ? roundToHalf(body, loc, sums, stored) : sums;
  elements.seed(result, index, LaneEmitter::handleOf<Element>(rounded));
  SmallVector<std::pair<Memory, Element>> stores;
  for (auto [number, value] : llvm::enumerate(yield.getOperands()))
    stores.push_back({{int64_t(kernel.getNumOperands() + number), 0, typeOf(value)}, elements.element(value, index)});
  for (auto &[memory, element] : stores) {
    AffineExpr offset = elements.offsetOf(memory.type, index);
    if (lanes > 1 && !emitter.space().isContiguous(offset, elements.scopes().lanes().variable)) {
      failedInEpilogue = true;
      refuse("kernel yields a value in a layout across the product's vectors: ") << memory.type;
      return;
    }
    elements.store(memory, offset, element);
    fillPadding(emitter, elements, memory, index, lanes, logical[lanesDim()]);
  }
  failedInEpilogue |= elements.hasFailed();
}

// After the last element along the lanes' dimension, where the vector from `first` on ends: zeros up to the end of its
// tile.
void ContractionKernel::fillPadding(LaneEmitter &emitter, Elements &elements, const Memory &memory,
                                    ArrayRef<AffineExpr> index, int64_t lanes, Value first) {
  unsigned along = lanesDim();
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
