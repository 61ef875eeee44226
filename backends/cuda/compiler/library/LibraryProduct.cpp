#include "backends/cuda/compiler/library/LibraryProduct.h"

#include "backends/cuda/compiler/library/GeluGradient.h"
#include "backends/loops/Elements.h"
#include "backends/loops/Padding.h"
#include <limits>
#include <map>

namespace sluice::cuda {

using namespace mlir;
using loops::Product;

namespace {

/// The stride along each variable, in elements.
using Strides = std::map<unsigned, int64_t>;

/// The merged dimensions of one role: extent, and stride in each operand that has them.
struct Merged {
  LibraryProduct::Extent extent;
  SmallVector<int64_t, 3> strides;
};

/// The ops after a product that the library computes as its epilogue.
struct Behind {
  Value result;
  ir::ExpandOp bias; // null: none
  std::string activation = "none";
  Value input; // of the GELU whose gradient it is, or null
};

class Finder {
public:
  Finder(const Product &product, Operation *op, int64_t capacity) : product(product), op(op), capacity(capacity) {}

  std::optional<LibraryProduct> find(Behind behind);
  /// Whether the library can also compute the sum; if so, records it in the result.
  bool addSums(LibraryProduct &found, ir::SumOp sum, ArrayRef<Operation *> moves) const;

private:
  std::optional<Strides> stridesOf(Value value, ArrayRef<AffineExpr> index) const;
  std::optional<Merged> merge(Product::Role role, ArrayRef<const Strides *> operands) const;
  std::optional<LibraryProduct::Matrix> matrixOf(int64_t buffer, const Merged &side, int64_t sideStride,
                                                 const Merged &other, int64_t otherStride, int64_t batchStride) const;

  int64_t bufferOf(Value value) const;
  bool canCount(const LibraryProduct::Extent &batch) const;
  bool isAlong(ir::ExpandOp bias, Product::Role role, const Strides &result) const;
  bool liesAs(const LibraryProduct::Matrix &matrix, const Strides &its, Value input) const;

  const Product &product;
  Operation *op;
  int64_t capacity;
  Value first, second; // memory of the found operands
};

} // namespace

static unsigned numberOf(const Product::Dim &dim) { return cast<AffineDimExpr>(dim.variable).getPosition(); }

/// None if the offset is not a linear function of the variables.
std::optional<Strides> Finder::stridesOf(Value value, ArrayRef<AffineExpr> index) const {
  AffineExpr offset = loops::offsetIn(cast<RankedTensorType>(value.getType()), index, capacity);
  loops::LinearIndex linear = product.space.analyze(offset);
  if (linear.constant != 0)
    return std::nullopt;
  Strides strides;
  for (const loops::LinearIndex::Term &term : linear.terms) {
    auto variable = dyn_cast<AffineDimExpr>(term.atom);
    if (!variable || term.coefficient < 0)
      return std::nullopt;
    strides[variable.getPosition()] = term.coefficient;
  }
  return strides;
}

/// Dimensions merge if, in every operand, the stride of each is the total extent of the next inner one.
std::optional<Merged> Finder::merge(Product::Role role, ArrayRef<const Strides *> operands) const {
  SmallVector<const Product::Dim *> dims;
  for (const Product::Dim &dim : product.dims)
    if (dim.role == role && (dim.hasRows || dim.size > 1))
      dims.push_back(&dim);
  auto strideIn = [](const Strides &strides, const Product::Dim &dim) {
    auto found = strides.find(numberOf(dim));
    return found == strides.end() ? 0 : found->second;
  };
  llvm::sort(dims, [&](const Product::Dim *a, const Product::Dim *b) {
    return strideIn(*operands.front(), *a) > strideIn(*operands.front(), *b);
  });
  Merged merged;
  for (const Strides *strides : operands)
    merged.strides.push_back(dims.empty() ? 0 : strideIn(*strides, *dims.back()));
  for (size_t i = dims.size(); i-- > 0;) {
    for (auto [strides, inner] : llvm::zip_equal(operands, merged.strides))
      if (strideIn(*strides, *dims[i]) != inner * merged.extent.size)
        return std::nullopt;
    if (dims[i]->hasRows && i > 0)
      return std::nullopt;
    merged.extent.perRow |= dims[i]->hasRows;
    merged.extent.size *= dims[i]->hasRows ? 1 : dims[i]->size;
  }
  return merged;
}

/// A matrix with these strides along two dimensions: `side` is contiguous unless transposed. None if both strides
/// differ from 1, if one is 0, or if columns overlap, as the windows of a convolution do.
std::optional<LibraryProduct::Matrix> Finder::matrixOf(int64_t buffer, const Merged &side, int64_t sideStride,
                                                       const Merged &other, int64_t otherStride,
                                                       int64_t batchStride) const {
  auto isOne = [](const Merged &dims) { return dims.extent.size == 1 && !dims.extent.perRow; };
  bool bySide = sideStride == 1 || isOne(side), byOther = otherStride == 1 || isOne(other);
  bool isRepeated = (sideStride == 0 && !isOne(side)) || (otherStride == 0 && !isOne(other));
  if ((!bySide && !byOther) || isRepeated)
    return std::nullopt;
  const Merged &inner = bySide ? side : other, &outer = bySide ? other : side;
  int64_t length = inner.extent.size * (inner.extent.perRow ? capacity : 1), apart = bySide ? otherStride : sideStride;
  if (apart < length && !isOne(outer))
    return std::nullopt;
  // The leading dimension of a single column is arbitrary.
  return LibraryProduct::Matrix{buffer, std::max(apart, length), batchStride, !bySide};
}

/// The buffer of an operand or a result of the kernel; 0 if there is no kernel yet.
int64_t Finder::bufferOf(Value value) const {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getArgNumber();
  auto kernel = op->getParentOfType<ir::KernelOp>();
  if (!kernel)
    return 0;
  OperandRange results = kernel.getBody().front().getTerminator()->getOperands();
  return kernel.getNumOperands() + std::distance(results.begin(), llvm::find(results, value));
}

/// Libraries count the matrices of a batch in 32 bits.
bool Finder::canCount(const LibraryProduct::Extent &batch) const {
  return batch.size <= std::numeric_limits<int32_t>::max() / (batch.perRow ? std::max<int64_t>(capacity, 1) : 1);
}

/// Whether the value is a bias: one contiguous number per element of this role.
bool Finder::isAlong(ir::ExpandOp bias, Product::Role role, const Strides &result) const {
  auto index = llvm::map_to_vector(bias.getDims(), [&](int64_t dim) { return product.result[size_t(dim)]; });
  std::optional<Strides> strides = stridesOf(bias.getOperand(), index);
  if (!strides)
    return false;
  for (const Product::Dim &dim : product.dims)
    if (dim.role != role && strides->count(numberOf(dim)) && (dim.hasRows || dim.size > 1))
      return false;
  std::optional<Merged> merged = merge(role, {&result, &*strides});
  return merged && !merged->extent.perRow && (merged->strides[1] == 1 || merged->extent.size == 1);
}

/// Whether the library accepts the value as a GELU input for a matrix with these strides.
bool Finder::liesAs(const LibraryProduct::Matrix &matrix, const Strides &its, Value input) const {
  return matrix.leading % LibraryProduct::kInputMultiple == 0 &&
         matrix.batchStride % LibraryProduct::kInputMultiple == 0 && stridesOf(input, product.result) == its;
}

/// The sum as a product of its operand with ones.
static Product productOf(ir::SumOp sum, int64_t capacity, ArrayRef<Operation *> moves) {
  auto type = cast<RankedTensorType>(sum.getX().getType());
  Product product{loops::IndexSpace(sum.getContext()), {}, {}, {}, {}, {}, {}, {}};
  SmallVector<AffineExpr> index;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    bool hasRows = ShapedType::isDynamic(size), isSummed = llvm::is_contained(sum.getAxes(), int64_t(dim));
    int64_t most = hasRows ? capacity : size;
    index.push_back(product.space.addVariable(loops::Count(), {0, most - 1}));
    product.dims.push_back({index.back(), most, hasRows, isSummed ? Product::K : Product::M});
    if (!isSummed)
      product.result.push_back(index.back());
  }
  loops::Formulas formulas;
  product.a = loops::placeInMemory(formulas, sum.getX(), index, moves);
  return product;
}

/// Whether the extent and stride are those of a matrix along one side. They are not if there is a batch: its matrices
/// add to the extent.
static bool liesIn(LibraryProduct::Extent extent, int64_t apart, LibraryProduct::Extent side, int64_t apartInMatrix) {
  bool isOne = extent.size == 1 && !extent.perRow;
  return extent.size == side.size && extent.perRow == side.perRow && (isOne || apart == apartInMatrix);
}

bool Finder::addSums(LibraryProduct &found, ir::SumOp sum, ArrayRef<Operation *> moves) const {
  auto type = cast<RankedTensorType>(sum.getType());
  Type element = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  if (type.getElementType() != element || element.isF64() || sum.getKeepdims() || !ir::isUncut(type))
    return false;
  const Product sums = productOf(sum, capacity, moves);
  const Finder its(sums, sum, capacity);
  std::optional<Strides> x = its.stridesOf(sums.a.memory, sums.a.index), y = its.stridesOf(sum.getY(), sums.result);
  std::optional<Merged> kept = x && y ? its.merge(Product::M, {&*y, &*x}) : std::nullopt,
                        summed = x ? its.merge(Product::K, {&*x}) : std::nullopt;
  if (!kept || !summed || kept->extent.perRow || (kept->strides[0] != 1 && kept->extent.size != 1))
    return false;
  auto isSumOf = [&](Value memory, const LibraryProduct::Matrix &matrix, LibraryProduct::Extent free, bool keepsRows) {
    bool areNeighbours = matrix.isTransposed != keepsRows; // elements along the kept dimension are contiguous
    return memory == sums.a.memory &&
           liesIn(kept->extent, kept->strides[1], free, areNeighbours ? 1 : matrix.leading) &&
           liesIn(summed->extent, summed->strides[0], found.k, areNeighbours ? matrix.leading : 1);
  };
  found.sumsSecond = !isSumOf(first, found.first, found.p, /*keepsRows=*/true);
  if (found.sumsSecond && !isSumOf(second, found.second, found.q, /*keepsRows=*/false))
    return false;
  found.sums = bufferOf(sum.getY());
  return true;
}

/// "none" if the library has no equivalent for elements of this type.
static std::string activationOf(Operation *op, Type element, bool roundsOnce) {
  if (isa<ir::ReluOp>(op) && !element.isF64())
    return "relu";
  auto gelu = dyn_cast<ir::GeluOp>(op);
  return gelu && gelu.getTanh() && roundsOnce ? "gelu" : "none";
}

/// The epilogue for the ops after the product; none if the library has no such epilogue. Unless products are timed,
/// excludes epilogues that round differently from the ops.
static std::optional<Behind> behindProduct(ArrayRef<Operation *> ops, bool isTimed) {
  Behind behind;
  Value last = ops.front()->getResult(0);
  Type element = cast<RankedTensorType>(last.getType()).getElementType();
  ops = ops.drop_front();
  if (element.isF32())
    if (Value input = inputOfGeluGradient(ops, last))
      return Behind{ops.back()->getResult(0), nullptr, "gelu_gradient", input};
  bool roundsOnce = element.isF32() || (isTimed && ir::isHalf(element));
  if (ops.size() >= 2 && roundsOnce) {
    auto bias = dyn_cast<ir::ExpandOp>(ops[0]);
    auto add = dyn_cast<ir::AddOp>(ops[1]);
    if (bias && add && llvm::is_contained(add->getOperands(), last) &&
        llvm::is_contained(add->getOperands(), bias.getResult()))
      behind.bias = bias, last = add.getResult(), ops = ops.drop_front(2);
  }
  if (std::string activation = ops.empty() ? "none" : activationOf(ops.front(), element, roundsOnce);
      activation != "none" && ops.front()->getOperand(0) == last)
    behind.activation = activation, last = ops.front()->getResult(0), ops = ops.drop_front();
  behind.result = last;
  return ops.empty() ? std::optional(behind) : std::nullopt;
}

std::optional<LibraryProduct> Finder::find(Behind behind) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Type element = type.getElementType();
  bool isKnown = element.isF32() || element.isF64() || ir::isHalf(element);
  // The library does not write the padding of separate tiles, which our kernels store as zeros.
  bool isPadded = !loops::paddedDims(type, loops::PaddingOf::ApartTiles).empty();
  if (!isKnown || isPadded || !product.nonNegative.empty() || !product.inResult.empty())
    return std::nullopt;
  std::optional<Strides> a = stridesOf(product.a.memory, product.a.index),
                         b = stridesOf(product.b.memory, product.b.index),
                         c = stridesOf(op->getResult(0), product.result);
  if (!a || !b || !c)
    return std::nullopt;
  std::optional<Merged> m = merge(Product::M, {&*c, &*a}), n = merge(Product::N, {&*c, &*b}),
                        k = merge(Product::K, {&*a, &*b}), batch = merge(Product::Batch, {&*c, &*a, &*b});
  if (!m || !n || !k || !batch || !canCount(batch->extent))
    return std::nullopt;
  bool alongN = n->strides[0] == 1; // adjacent elements of N are contiguous in the result
  const Merged &p = alongN ? *n : *m, &q = alongN ? *m : *n;
  std::optional<LibraryProduct::Matrix> left = matrixOf(bufferOf(product.a.memory), *m, m->strides[1], *k,
                                                        k->strides[0], batch->strides[1]),
                                        right = matrixOf(bufferOf(product.b.memory), *n, n->strides[1], *k,
                                                         k->strides[1], batch->strides[2]),
                                        whole = matrixOf(bufferOf(behind.result), p, p.strides[0], q, q.strides[0],
                                                         batch->strides[0]);
  if (!left || !right || !whole || whole->isTransposed)
    return std::nullopt;
  if (behind.bias && !isAlong(behind.bias, alongN ? Product::N : Product::M, *c))
    return std::nullopt;
  if (behind.input && !liesAs(*whole, *c, behind.input))
    return std::nullopt;
  LibraryProduct found;
  llvm::raw_string_ostream(found.type) << element;
  if (behind.bias)
    found.bias = bufferOf(behind.bias.getOperand());
  found.activation = behind.activation;
  if (behind.input)
    found.input = bufferOf(behind.input);
  found.p = p.extent, found.q = q.extent, found.k = k->extent, found.batch = batch->extent;
  first = alongN ? product.b.memory : product.a.memory, second = alongN ? product.a.memory : product.b.memory;
  found.first = alongN ? *right : *left;
  found.second = alongN ? *left : *right;
  found.second.isTransposed = !found.second.isTransposed; // the second operand is [k, q], the first [p, k]
  found.result = *whole;
  found.capacity = capacity;
  return found;
}

std::optional<LibraryProduct> findLibraryProduct(const Product &product, ArrayRef<Operation *> ops, int64_t capacity,
                                                 bool isTimed, ir::SumOp sum, ArrayRef<Operation *> moves) {
  std::optional<Behind> behind = behindProduct(ops, isTimed);
  if (!behind || (sum && ops.size() > 1))
    return std::nullopt;
  Finder finder(product, ops.front(), capacity);
  std::optional<LibraryProduct> found = finder.find(*behind);
  if (!found || (sum && !finder.addSums(*found, sum, moves)))
    return std::nullopt;
  found->isTimed = isTimed;
  return found;
}

} // namespace sluice::cuda
