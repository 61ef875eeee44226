#include "backends/cuda/compiler/LibraryProduct.h"

#include "backends/loops/Elements.h"
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

class Finder {
public:
  Finder(const Product &product, Operation *op, int64_t capacity) : product(product), op(op), capacity(capacity) {}

  std::optional<LibraryProduct> find();

private:
  std::optional<Strides> stridesOf(Value value, ArrayRef<AffineExpr> index) const;
  std::optional<Merged> merge(Product::Role role, ArrayRef<const Strides *> operands) const;
  std::optional<LibraryProduct::Matrix> matrixOf(int64_t buffer, const Merged &side, int64_t sideStride,
                                                 const Merged &other, int64_t otherStride, int64_t batchStride) const;

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

/// A matrix whose neighbours are as far apart as that along two dimensions: `side` comes first unless it is transposed.
std::optional<LibraryProduct::Matrix> Finder::matrixOf(int64_t buffer, const Merged &side, int64_t sideStride,
                                                       const Merged &other, int64_t otherStride,
                                                       int64_t batchStride) const {
  bool bySide = sideStride == 1 || (side.extent.size == 1 && !side.extent.perRow);
  bool byOther = otherStride == 1 || (other.extent.size == 1 && !other.extent.perRow);
  if (!bySide && !byOther)
    return std::nullopt;
  // One column alone may have any distance to the next.
  const Merged &inner = bySide ? side : other;
  int64_t length = inner.extent.size * (inner.extent.perRow ? capacity : 1);
  int64_t leading = std::max(bySide ? otherStride : sideStride, length);
  return LibraryProduct::Matrix{buffer, leading, batchStride, !bySide};
}

std::optional<LibraryProduct> Finder::find() {
  Type element = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  bool isKnown = element.isF32() || element.isF64();
  if (!isKnown || !product.nonNegative.empty() || !product.inResult.empty())
    return std::nullopt;
  std::optional<Strides> a = stridesOf(op->getOperand(product.a.number), product.a.index),
                         b = stridesOf(op->getOperand(product.b.number), product.b.index),
                         c = stridesOf(op->getResult(0), product.result);
  if (!a || !b || !c)
    return std::nullopt;
  std::optional<Merged> m = merge(Product::M, {&*c, &*a}), n = merge(Product::N, {&*c, &*b}),
                        k = merge(Product::K, {&*a, &*b}), batch = merge(Product::Batch, {&*c, &*a, &*b});
  if (!m || !n || !k || !batch)
    return std::nullopt;
  int64_t result = op->getNumOperands();
  auto bufferOf = [&](const Product::Operand &operand) { // before there is a kernel, none
    auto argument = dyn_cast<BlockArgument>(op->getOperand(operand.number));
    return argument ? int64_t(argument.getArgNumber()) : 0;
  };
  bool alongN = n->strides[0] == 1; // neighbours in the result
  const Merged &p = alongN ? *n : *m, &q = alongN ? *m : *n;
  std::optional<LibraryProduct::Matrix> left = matrixOf(bufferOf(product.a), *m, m->strides[1], *k, k->strides[0],
                                                        batch->strides[1]),
                                        right = matrixOf(bufferOf(product.b), *n, n->strides[1], *k, k->strides[1],
                                                         batch->strides[2]),
                                        whole = matrixOf(result, p, p.strides[0], q, q.strides[0], batch->strides[0]);
  if (!left || !right || !whole || whole->isTransposed)
    return std::nullopt;
  LibraryProduct found;
  found.type = element.isF32() ? "f32" : "f64";
  found.p = p.extent, found.q = q.extent, found.k = k->extent, found.batch = batch->extent;
  found.first = alongN ? *right : *left;
  found.second = alongN ? *left : *right;
  found.second.isTransposed = !found.second.isTransposed; // it lies as [k, q] where q comes second
  found.result = *whole;
  found.capacity = capacity;
  return found;
}

std::optional<LibraryProduct> findLibraryProduct(const Product &product, Operation *op, int64_t capacity) {
  return Finder(product, op, capacity).find();
}

} // namespace sluice::cuda
