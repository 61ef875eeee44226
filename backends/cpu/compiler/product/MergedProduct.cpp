#include "backends/cpu/compiler/product/MergedProduct.h"

#include "backends/cpu/compiler/product/tile/IndexMath.h"
#include "ir/Layout.h"

#include <numeric>

namespace sluice::cpu {

using namespace mlir;

static int64_t countOf(ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
}

SmallVector<int64_t> MergedProduct::sizesOf(ArrayRef<unsigned> dims) const {
  return llvm::map_to_vector(dims, [&](unsigned dim) { return sizes[dim]; });
}

SmallVector<Value> MergedProduct::indexOf(OpBuilder &b, Location loc, ArrayRef<Value> place) const {
  IndexMath math{b, loc};
  SmallVector<Value> found(sizes.size());
  for (auto [dim, index] : llvm::zip(batch, place))
    found[dim] = index;
  auto split = [&](const Dims &merged, Value index) {
    for (auto [dim, part] : llvm::zip_equal(merged, math.delinearize(index, sizesOf(merged))))
      found[dim] = part;
  };
  split(m, place[batch.size()]);
  split(n, place[batch.size() + 1]);
  found.truncate(rank);
  for (Value &index : found)
    if (!index)
      index = math.constant(0);
  return found;
}

namespace {

class Merger {
public:
  Merger(const MatrixProduct &product, const Target &target)
      : product(product), vectorLanes(target.lanes(bitsOfSums(product.y.type()))) {
    for (const MatrixProduct::Tensor *operand : {&product.a, &product.b})
      for (unsigned dim : operand->dims)
        if (product.dims[dim].hasRows)
          rows = dim;
  }

  MergedProduct merge() {
    result.sizes = llvm::map_to_vector(product.dims, [](const loops::Product::Dim &dim) { return dim.size; });
    result.rank = unsigned(product.y.dims.size());
    mergeDims();
    result.matmul.element = ir::getAccumulator(product.y.type().getElementType());
    result.matmul.batch = result.sizesOf(result.batch);
    result.matmul.m = countOf(result.sizesOf(result.m));
    result.matmul.n = countOf(result.sizesOf(result.n));
    result.matmul.k = countOf(result.sizesOf(result.k));
    findRows();
    result.matmul.a = matrixOf(product.a, result.m, result.k);
    result.matmul.b = matrixOf(product.b, result.k, result.n);
    result.matmul.c = matrixOf(product.y, result.m, result.n);
    result.storesAlone = canStoreAlone();
    return result;
  }

private:
  void mergeDims();
  Dims mergedRows() const;
  Dims mergedLanes() const;
  void findRows();
  SmallVector<int64_t> stridesOf(const MatrixProduct::Tensor &tensor, const Dims &along) const;
  Matmul::Matrix matrixOf(const MatrixProduct::Tensor &tensor, const Dims &rowDims, const Dims &columnDims) const;
  bool isChain(const Dims &merged) const;
  bool canStoreAlone() const;

  const MatrixProduct &product;
  int64_t vectorLanes;
  std::optional<unsigned> rows; // the dimension with the rows of the call
  MergedProduct result;
};

} // namespace

void Merger::mergeDims() {
  result.k = product.withoutUnits(product.summed());
  result.m = mergedRows();
  result.n = mergedLanes();
  for (unsigned dim : product.withoutUnits(product.y.dims))
    if (!llvm::is_contained(result.m, dim) && !llvm::is_contained(result.n, dim))
      // The rows first: the generator cuts them into tasks.
      result.batch.insert(dim == rows ? result.batch.begin() : result.batch.end(), dim);
}

/// The longest run of adjacent free dimensions of A; the rows begin a run.
Dims Merger::mergedRows() const {
  Dims best, run;
  auto take = [&] {
    if (best.empty() || countOf(result.sizesOf(run)) > countOf(result.sizesOf(best)))
      best = run;
    run.clear();
  };
  for (unsigned dim : product.a.inMemory()) {
    bool isFree = product.isFree(dim);
    if (!run.empty() && (!isFree || dim == rows))
      take();
    if (isFree)
      run.push_back(dim);
  }
  take();
  return best;
}

/// The dimension of the lanes with its adjacent dimensions in B, unless vectors would cross them.
Dims Merger::mergedLanes() const {
  if (!product.lanes || product.isUnit(*product.lanes))
    return {};
  Dims merged{*product.lanes};
  if (panelDim(product.b.type()))
    return merged;
  Dims inMemory = product.b.inMemory();
  for (size_t place = llvm::find(inMemory, *product.lanes) - inMemory.begin(); place-- > 0;) {
    unsigned dim = inMemory[place];
    bool fits =
        product.isFree(dim) && dim != rows && merged[0] != rows && countOf(result.sizesOf(merged)) % vectorLanes == 0;
    if (!fits)
      break;
    merged.insert(merged.begin(), dim);
  }
  return merged;
}

void Merger::findRows() {
  Matmul &matmul = result.matmul;
  auto begins = [&](const Dims &merged) { return !merged.empty() && merged[0] == rows; };
  auto factorOf = [&](const Dims &merged) { return countOf(result.sizesOf(ArrayRef(merged).drop_front())); };
  if (begins(result.k))
    matmul.rows = Matmul::Rows::K, matmul.rowsFactor = factorOf(result.k);
  else if (begins(result.m))
    matmul.rows = Matmul::Rows::M, matmul.rowsFactor = factorOf(result.m);
  else if (begins(result.batch))
    matmul.rows = Matmul::Rows::Batch;
  // Rows along the lanes are all computed, up to the capacity.
}

/// The stride of each of these dimensions in memory; 0 if the tensor has no such dimension.
SmallVector<int64_t> Merger::stridesOf(const MatrixProduct::Tensor &tensor, const Dims &along) const {
  SmallVector<int64_t> strides(product.dims.size(), 0);
  int64_t stride = 1;
  const Dims inMemory = tensor.inMemory();
  for (unsigned dim : llvm::reverse(inMemory)) {
    strides[dim] = stride;
    stride *= product.dims[dim].size;
  }
  return llvm::map_to_vector(along, [&](unsigned dim) { return strides[dim]; });
}

Matmul::Matrix Merger::matrixOf(const MatrixProduct::Tensor &tensor, const Dims &rowDims,
                                const Dims &columnDims) const {
  Matmul::Matrix matrix;
  matrix.batchStrides = stridesOf(tensor, result.batch);
  RankedTensorType type = tensor.type();
  if (std::optional<unsigned> along = panelDim(type); along && !ir::liesAs(type, AffineMap())) {
    // Panels of the result split its columns. Panels of B split its columns if their dimension is free, else its rows.
    matrix.layout = product.isFree(tensor.dims[*along]) ? Matmul::Layout::Panels : Matmul::Layout::PanelsT;
    matrix.panel = panelAlong(type, *along);
    return matrix;
  }
  SmallVector<int64_t> rowStrides = stridesOf(tensor, rowDims), columnStrides = stridesOf(tensor, columnDims);
  matrix.strideI = rowStrides.empty() ? 1 : rowStrides.back();
  matrix.strideJ = columnStrides.empty() ? 1 : columnStrides.back();
  return matrix;
}

/// Whether the merged dimensions have the same layout in the result as in the operand.
bool Merger::isChain(const Dims &merged) const {
  SmallVector<int64_t> strides = stridesOf(product.y, merged);
  for (size_t i = 1; i < merged.size(); ++i)
    if (strides[i - 1] != strides[i] * product.dims[merged[i]].size)
      return false;
  return true;
}

bool Merger::canStoreAlone() const {
  const Matmul::Matrix &c = result.matmul.c;
  if (c.layout == Matmul::Layout::Panels)
    return result.matmul.n % c.panel == 0; // else the epilogue fills the last panel
  return isChain(result.m) && isChain(result.n) && c.strideJ == 1;
}

MergedProduct MergedProduct::of(const MatrixProduct &product, const Target &target) {
  return Merger(product, target).merge();
}

} // namespace sluice::cpu
