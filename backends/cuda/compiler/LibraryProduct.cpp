#include "backends/cuda/compiler/LibraryProduct.h"

#include "backends/cuda/compiler/GeluGradient.h"
#include "backends/loops/Elements.h"
#include "backends/loops/Padding.h"
#include <limits>
#include <map>

namespace sluice::cuda {

using namespace mlir;
using loops::Product;

namespace {

/// The distance of neighbours along each variable, in elements.
using Strides = std::map<unsigned, int64_t>;

/// The dimensions of one role as one: its extent, and the distance of neighbours in each operand that has them.
struct Merged {
  LibraryProduct::Extent extent;
  SmallVector<int64_t, 3> strides;
};

/// What is done to a product's elements.
struct Behind {
  ir::ExpandOp bias; // null: none
  std::string activation = "none";
  Value input; // of the GELU whose gradient it is, or null
};

class Finder {
public:
  Finder(const Product &product, Operation *op, int64_t capacity) : product(product), op(op), capacity(capacity) {}

  std::optional<LibraryProduct> find(Behind behind);

private:
  std::optional<Strides> stridesOf(Value value, ArrayRef<AffineExpr> index) const;
  std::optional<Merged> merge(Product::Role role, ArrayRef<const Strides *> operands) const;
  std::optional<LibraryProduct::Matrix> matrixOf(int64_t buffer, const Merged &side, int64_t sideStride,
                                                 const Merged &other, int64_t otherStride, int64_t batchStride) const;

  bool canCount(const LibraryProduct::Extent &batch) const;
  bool isAlong(ir::ExpandOp bias, Product::Role role, const Strides &result) const;
  bool liesAs(const LibraryProduct::Matrix &matrix, const Strides &its, Value input) const;

  const Product &product;
  Operation *op;
  int64_t capacity;
};

} // namespace

static unsigned numberOf(const Product::Dim &dim) { return cast<AffineDimExpr>(dim.variable).getPosition(); }

/// None if an element's place is no sum of multiples of the variables.
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

/// Dimensions merge where each one's neighbours are as far apart, in every operand, as all of the next one inwards are long.
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

/// A matrix whose neighbours are as far apart as that along two dimensions: `side` comes first unless it is transposed. None if
/// they lie apart along both, or are one and the same along one, or if its columns overlap, as a convolution's windows do.
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
  // One column alone may have any distance to the next.
  return LibraryProduct::Matrix{buffer, std::max(apart, length), batchStride, !bySide};
}

/// Libraries count the matrices of a batch in 32 bits.
bool Finder::canCount(const LibraryProduct::Extent &batch) const {
  return batch.size <= std::numeric_limits<int32_t>::max() / (batch.perRow ? std::max<int64_t>(capacity, 1) : 1);
}

/// Whether a number for each element of this role, side by side, is what is added to the others' results.
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

/// Whether the library takes it as the input of a GELU beside the matrix, which has these strides.
bool Finder::liesAs(const LibraryProduct::Matrix &matrix, const Strides &its, Value input) const {
  return matrix.leading % LibraryProduct::kInputMultiple == 0 &&
         matrix.batchStride % LibraryProduct::kInputMultiple == 0 && stridesOf(input, product.result) == its;
}

/// "none" if a library has none for elements of this type that gives what the op does.
static std::string activationOf(Operation *op, Type element, bool roundsOnce) {
  if (isa<ir::ReluOp>(op) && !element.isF64())
    return "relu";
  auto gelu = dyn_cast<ir::GeluOp>(op);
  return gelu && gelu.getTanh() && roundsOnce ? "gelu" : "none";
}

/// None if it has no such step. Unless products are timed, nothing that a library rounds in another place than the ops do.
static std::optional<Behind> behindProduct(ArrayRef<Operation *> ops, bool isTimed) {
  Behind behind;
  Value last = ops.front()->getResult(0);
  Type element = cast<RankedTensorType>(last.getType()).getElementType();
  ops = ops.drop_front();
  if (element.isF32())
    if (Value input = inputOfGeluGradient(ops, last))
      return Behind{nullptr, "gelu_gradient", input};
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
    behind.activation = activation, ops = ops.drop_front();
  return ops.empty() ? std::optional(behind) : std::nullopt;
}

std::optional<LibraryProduct> Finder::find(Behind behind) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Type element = type.getElementType();
  bool isKnown = element.isF32() || element.isF64() || ir::isHalf(element);
  // What pads tiles that lie apart our own tiles clear, or our own sums.
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
  auto kernel = op->getParentOfType<ir::KernelOp>(); // before there is one, buffers have no numbers
  int64_t result = kernel ? kernel.getNumOperands() : 0;
  auto bufferOf = [&](Value operand) {
    auto argument = dyn_cast<BlockArgument>(operand);
    return argument ? int64_t(argument.getArgNumber()) : 0;
  };
  bool alongN = n->strides[0] == 1; // neighbours in the result
  const Merged &p = alongN ? *n : *m, &q = alongN ? *m : *n;
  std::optional<LibraryProduct::Matrix> left = matrixOf(bufferOf(product.a.memory), *m, m->strides[1], *k,
                                                        k->strides[0], batch->strides[1]),
                                        right = matrixOf(bufferOf(product.b.memory), *n, n->strides[1], *k,
                                                         k->strides[1], batch->strides[2]),
                                        whole = matrixOf(result, p, p.strides[0], q, q.strides[0], batch->strides[0]);
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
  found.first = alongN ? *right : *left;
  found.second = alongN ? *left : *right;
  found.second.isTransposed = !found.second.isTransposed; // it lies as [k, q] where q comes second
  found.result = *whole;
  found.capacity = capacity;
  return found;
}

std::optional<LibraryProduct> findLibraryProduct(const Product &product, ArrayRef<Operation *> ops, int64_t capacity,
                                                 bool isTimed) {
  std::optional<Behind> behind = behindProduct(ops, isTimed);
  std::optional<LibraryProduct> found = behind ? Finder(product, ops.front(), capacity).find(*behind) : std::nullopt;
  if (found)
    found->isTimed = isTimed;
  return found;
}

} // namespace sluice::cuda
