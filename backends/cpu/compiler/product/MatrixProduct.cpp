#include "backends/cpu/compiler/product/MatrixProduct.h"

#include "backends/cpu/compiler/product/Contraction.h"
#include "backends/cpu/compiler/product/WindowProduct.h"
#include "ir/Layout.h"
#include "ir/Work.h"

namespace sluice::cpu {

using namespace mlir;
using loops::Product;

std::optional<unsigned> panelDim(RankedTensorType type) {
  for (unsigned dim = 0; dim < 2 && type.getRank() == 2; ++dim)
    if (int64_t panel = panelAlong(type, dim))
      if (ir::liesAs(type, getMatrixPanels(type.getContext(), panel, dim)))
        return dim;
  return std::nullopt;
}

/// Whether whole vectors of this type's elements fill its panels along `dim`.
static bool vectorsFillPanels(RankedTensorType type, unsigned dim, const Target &target) {
  return panelAlong(type, dim) % target.lanes(bitsOfSums(type)) == 0;
}

/// Without the layout if dimensions of size 1 are all that it moves.
static RankedTensorType withPlainLayout(RankedTensorType type) {
  return ir::liesAs(type, AffineMap()) ? ir::withLayout(type, AffineMap()) : type;
}

Dims MatrixProduct::Tensor::inMemory() const {
  Dims order;
  RankedTensorType plain = withPlainLayout(type());
  SmallVector<ir::PhysicalDim> physical = *ir::getPhysicalDims(plain);
  for (const ir::PhysicalDim &dim : physical)
    if (dim.kind == ir::PhysicalDim::Whole && plain.getDimSize(dim.logical) != 1)
      order.push_back(dims[dim.logical]);
  return order;
}

static bool isFreeDim(const Product::Dim &dim) { return dim.role == Product::M || dim.role == Product::N; }

bool MatrixProduct::isFree(unsigned dim) const { return isFreeDim(dims[dim]); }

Dims MatrixProduct::freeIn(ArrayRef<unsigned> some) const {
  return llvm::to_vector<4>(llvm::make_filter_range(some, [&](unsigned dim) { return isFree(dim); }));
}

Dims MatrixProduct::withoutUnits(ArrayRef<unsigned> some) const {
  return llvm::to_vector<4>(llvm::make_filter_range(some, [&](unsigned dim) { return !isUnit(dim); }));
}

Dims MatrixProduct::summed() const {
  Dims found;
  for (auto [number, dim] : llvm::enumerate(dims))
    if (dim.role == Product::K)
      found.push_back(unsigned(number));
  return found;
}

static Dims dimsOf(ArrayRef<AffineExpr> index) {
  return llvm::map_to_vector<4>(index, [](AffineExpr expr) { return cast<AffineDimExpr>(expr).getPosition(); });
}

static std::optional<Product> findMatrices(Operation *op, int64_t capacity) {
  loops::Formulas formulas;
  std::optional<Product> found = loops::findProduct(formulas, op, capacity);
  return found && llvm::any_of(found->dims, isFreeDim) ? found : std::nullopt;
}

bool isProductOfMatrices(Operation *op, int64_t capacity) { return findMatrices(op, capacity).has_value(); }

/// The innermost free dimension of the result in memory, followed only by dimensions of size 1.
static std::optional<unsigned> innermostFree(const MatrixProduct &product, RankedTensorType y) {
  y = withPlainLayout(y);
  SmallVector<ir::PhysicalDim> physical = *ir::getPhysicalDims(y);
  for (const ir::PhysicalDim &dim : llvm::reverse(physical)) {
    if (unsigned number = product.y.dims[dim.logical]; product.isFree(number))
      return number;
    if (y.getDimSize(dim.logical) != 1)
      break;
  }
  return std::nullopt;
}

std::optional<MatrixProduct> MatrixProduct::of(Operation *op, int64_t capacity) {
  std::optional<Product> found = findMatrices(op, capacity);
  if (!found || found->a.memory != op->getOperand(0) || found->b.memory != op->getOperand(1))
    return std::nullopt;
  MatrixProduct product;
  product.dims = found->dims;
  product.a = {found->a.memory, dimsOf(found->a.index)};
  product.b = {found->b.memory, dimsOf(found->b.index)};
  product.y = {op->getResult(0), dimsOf(found->result)};
  // Tiles end with the matrix; the epilogue fills padding.
  for (auto [dim, size] : llvm::zip(product.dims, product.y.type().getShape()))
    dim.size = ShapedType::isDynamic(size) ? capacity : size;
  if (product.freeIn(product.b.dims).empty())
    return product;
  product.lanes = innermostFree(product, product.y.type());
  product.swapped = product.lanes && product.dims[*product.lanes].role == Product::M;
  if (!product.swapped)
    return product;
  std::swap(product.a, product.b);
  for (Product::Dim &dim : product.dims)
    dim.role = dim.role == Product::M ? Product::N : dim.role == Product::N ? Product::M : dim.role;
  return product;
}

bool MatrixProduct::isMatrix(const Tensor &operand) const {
  return operand.dims.size() == 2 && summed().size() == 1 && freeIn(operand.dims).size() == 1;
}

bool MatrixProduct::canStore(const Target &target) const {
  RankedTensorType type = y.type();
  if (std::optional<unsigned> along = panelDim(type))
    return lanes == y.dims[*along] && freeIn(y.dims).size() == 2 && vectorsFillPanels(type, *along, target);
  return ir::isUncut(type) && (lanes || withoutUnits(freeIn(b.dims)).empty());
}

/// Whether the summed dimensions are adjacent in this order, and k merges them.
static bool isChained(const MatrixProduct &product, ArrayRef<unsigned> inMemory) {
  Dims chain = product.withoutUnits(product.summed());
  return chain.empty() || std::search(inMemory.begin(), inMemory.end(), chain.begin(), chain.end()) != inMemory.end();
}

bool MatrixProduct::canReadA() const { return ir::isUncut(a.type()) && isChained(*this, a.inMemory()); }

bool MatrixProduct::canReadB(const Target &target) const {
  RankedTensorType type = b.type();
  if (std::optional<unsigned> along = panelDim(type))
    return isMatrix(b) && (!isFree(b.dims[*along]) || vectorsFillPanels(type, *along, target));
  return ir::isUncut(type) && isChained(*this, b.inMemory());
}

static bool isWidened(Value value) {
  Operation *maker = value.getDefiningOp();
  return maker && ir::isWidening(maker);
}

/// Whether the blocks of a weight with panels along `dim` are along the other dimension, and its stored values are in
/// the same panels.
static bool canReadBlocks(ir::DequantizeBlocksOp blocks, unsigned dim) {
  Attribute layout = cast<RankedTensorType>(blocks.getY().getType()).getEncoding();
  return blocks.getAxis() != dim && llvm::all_of(blocks->getOperandTypes(), [&](Type stored) {
           return cast<RankedTensorType>(stored).getEncoding() == layout;
         });
}

Value widenedWeightOf(Operation *op, const Target &target, int64_t capacity) {
  if (llvm::none_of(op->getOperands(), isWidened) || WindowProduct::of(op))
    return {};
  std::optional<MatrixProduct> product = MatrixProduct::of(op, capacity);
  if (!product || !isWidened(product->b.memory))
    return {};
  std::optional<unsigned> along = panelDim(product->b.type());
  if (!along || !product->canReadB(target) || !product->isFree(product->b.dims[*along]))
    return {};
  auto blocks = product->b.memory.getDefiningOp<ir::DequantizeBlocksOp>();
  return !blocks || canReadBlocks(blocks, *along) ? product->b.memory : Value();
}

//===- layouts that products ask for ------------------------------------------------------------------------------===//

static AffineMap layoutOf(ArrayRef<unsigned> inMemory, const MatrixProduct::Tensor &tensor) {
  SmallVector<unsigned> order;
  for (unsigned dim : inMemory)
    order.push_back(unsigned(llvm::find(tensor.dims, dim) - tensor.dims.begin()));
  return AffineMap::getPermutationMap(order, tensor.memory.getContext());
}

/// Row-major, but for the summed dimensions, which follow the first of them.
static LayoutPreference chained(const MatrixProduct &product, const MatrixProduct::Tensor &operand) {
  if (isChained(product, product.withoutUnits(operand.dims)))
    return {layoutOf(operand.dims, operand), true};
  Dims order, summed = product.summed();
  for (unsigned dim : operand.dims) {
    if (!llvm::is_contained(summed, dim))
      order.push_back(dim);
    else if (!llvm::is_contained(order, dim))
      llvm::append_range(order, summed);
  }
  return {layoutOf(order, operand), true};
}

/// Row-major, but with a free dimension innermost.
static LayoutPreference storable(const MatrixProduct &product) {
  Dims order = product.y.dims, free = product.withoutUnits(product.freeIn(order));
  bool needsLanes = !product.withoutUnits(product.freeIn(product.b.dims)).empty();
  if (needsLanes && !innermostFree(product, ir::withLayout(product.y.type(), AffineMap()))) {
    llvm::erase(order, free.back());
    order.push_back(free.back());
  }
  return {layoutOf(order, product.y), true};
}

/// Panels along the free dimension of a weight. A second dimension that fills no vector gets no panels: most of each
/// panel would be padding.
static LayoutPreference ofWeight(const MatrixProduct &product, const Target &target) {
  RankedTensorType type = product.b.type();
  unsigned along = product.isFree(product.b.dims[0]) ? 0 : 1;
  int64_t columns = type.getDimSize(along), bits = bitsOfSums(type), panel = panelWidth(columns, bits, target);
  if (along == 1 && columns < target.lanes(bits))
    return {};
  if (along == 1 && columns == panel) // one panel is the row-major matrix, which all ops read
    return {layoutOf(product.b.dims, product.b), false};
  return {getMatrixPanels(type.getContext(), panel, along), false};
}

LayoutPreference preferredLayoutOfMatrices(const MatrixProduct &product, bool isResult, unsigned number,
                                           const Target &target) {
  if (isResult)
    return product.y.dims.size() > 2 || !product.canStore(target) ? storable(product) : LayoutPreference();
  bool isB = (number == 1) != product.swapped;
  const MatrixProduct::Tensor &operand = isB ? product.b : product.a;
  bool canRead = isB ? product.canReadB(target) : product.canReadA();
  if (isB && canRead && product.isMatrix(operand) && operand.type().hasStaticShape())
    if (LayoutPreference preference = ofWeight(product, target); preference.layout)
      return preference;
  return number == 0 || !canRead ? chained(product, operand) : LayoutPreference();
}

} // namespace sluice::cpu
