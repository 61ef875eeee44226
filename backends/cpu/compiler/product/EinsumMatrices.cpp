#include "backends/cpu/compiler/product/EinsumMatrices.h"

#include "backends/cpu/compiler/product/tile/IndexMath.h"
#include "ir/Layout.h"
#include "ir/ops/Inference.h"

#include <numeric>

namespace sluice::cpu {

using namespace mlir;
using ir::tensorOf;

static int64_t countOf(ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
}

SmallVector<int64_t> EinsumMatrices::sizesOf(StringRef letters) const {
  return llvm::map_to_vector(letters, [&](char letter) { return sizes.lookup(letter); });
}

SmallVector<Value> EinsumMatrices::indexOf(StringRef letters, OpBuilder &b, Location loc, ArrayRef<Value> place) const {
  IndexMath math{b, loc};
  llvm::DenseMap<char, Value> found;
  for (auto [letter, index] : llvm::zip(batch, place))
    found[letter] = index;
  auto split = [&](const std::string &merged, Value index) {
    for (auto [letter, part] : llvm::zip_equal(merged, math.delinearize(index, sizesOf(merged))))
      found[letter] = part;
  };
  split(m, place[batch.size()]);
  split(n, place[batch.size() + 1]);
  return llvm::map_to_vector(letters, [&](char letter) {
    auto it = found.find(letter);
    return it == found.end() ? math.constant(0) : it->second;
  });
}

namespace {

/// Maps the letters to matrix dimensions.
class MatrixBuilder {
public:
  MatrixBuilder(const EinsumLetters &product, const Target &target, int64_t capacity)
      : product(product), vectorLanes(lanesOfSums(tensorOf(product.y), target)), capacity(capacity) {}

  EinsumMatrices build() {
    note(tensorOf(product.left()), product.lettersOfLeft());
    note(tensorOf(product.right()), product.lettersOfRight());
    merge();
    result.matmul.element = ir::getAccumulator(tensorOf(product.y).getElementType());
    result.matmul.batch = result.sizesOf(result.batch);
    result.matmul.m = countOf(result.sizesOf(result.m));
    result.matmul.n = countOf(result.sizesOf(result.n));
    result.matmul.k = countOf(result.sizesOf(result.k));
    findRows();
    result.matmul.a = matrixOf(tensorOf(product.left()), product.lettersOfLeft(), result.m, result.k);
    result.matmul.b = matrixOf(tensorOf(product.right()), product.lettersOfRight(), result.k, result.n);
    result.matmul.c = matrixOf(tensorOf(product.y), product.equation.y, result.m, result.n);
    result.storesAlone = canStoreAlone();
    return result;
  }

private:
  void note(RankedTensorType type, StringRef letters) {
    for (auto [letter, size] : llvm::zip_equal(letters, type.getShape())) {
      result.sizes[letter] = ShapedType::isDynamic(size) ? capacity : size;
      if (ShapedType::isDynamic(size))
        rows = letter;
      else if (size == 1)
        units += letter;
    }
  }
  bool isUnit(char letter) const { return ir::Equation::isIn(units, letter); }
  std::string withoutUnits(StringRef letters) const {
    std::string large;
    llvm::copy_if(letters, std::back_inserter(large), [&](char letter) { return !isUnit(letter); });
    return large;
  }

  void merge();
  std::string mergedRows() const;
  std::string mergedLanes() const;
  void findRows();
  SmallVector<int64_t> stridesOf(RankedTensorType type, StringRef letters, StringRef along) const;
  Matmul::Matrix matrixOf(RankedTensorType type, StringRef letters, StringRef rowLetters,
                          StringRef columnLetters) const;
  bool isChain(StringRef merged) const;
  bool canStoreAlone() const;

  const EinsumLetters &product;
  int64_t vectorLanes, capacity;
  char rows = 0;     // the letter of the rows
  std::string units; // letters of size 1
  EinsumMatrices result;
};

} // namespace

void MatrixBuilder::merge() {
  result.k = withoutUnits(product.summed);
  result.m = mergedRows();
  result.n = mergedLanes();
  for (char letter : withoutUnits(product.equation.y))
    if (!ir::Equation::isIn(result.m + result.n, letter)) // the rows first: the generator cuts them into tasks
      result.batch.insert(letter == rows ? result.batch.begin() : result.batch.end(), letter);
}

/// The longest run of adjacent free letters of A; the rows begin a run.
std::string MatrixBuilder::mergedRows() const {
  std::string free = product.freeIn(product.lettersOfLeft()), best, run;
  auto take = [&] {
    if (best.empty() || countOf(result.sizesOf(run)) > countOf(result.sizesOf(best)))
      best = run;
    run.clear();
  };
  for (char letter : lettersInMemory(tensorOf(product.left()), product.lettersOfLeft())) {
    bool isFree = ir::Equation::isIn(free, letter);
    if (!run.empty() && (!isFree || letter == rows))
      take();
    if (isFree)
      run += letter;
  }
  take();
  return best;
}

/// The letter of the lanes with its adjacent letters in B, unless vectors would cross them.
std::string MatrixBuilder::mergedLanes() const {
  if (!product.lanes || isUnit(product.lanes))
    return "";
  std::string merged{product.lanes}, free = product.freeIn(product.lettersOfRight());
  if (isInPanels(tensorOf(product.right())))
    return merged;
  std::string inMemory = lettersInMemory(tensorOf(product.right()), product.lettersOfRight());
  for (size_t place = inMemory.find(product.lanes); place-- > 0;) {
    char letter = inMemory[place];
    bool fits = ir::Equation::isIn(free, letter) && letter != rows && merged[0] != rows &&
                countOf(result.sizesOf(merged)) % vectorLanes == 0;
    if (!fits)
      break;
    merged.insert(merged.begin(), letter);
  }
  return merged;
}

void MatrixBuilder::findRows() {
  Matmul &matmul = result.matmul;
  auto begins = [&](const std::string &merged) { return !merged.empty() && merged[0] == rows; };
  auto factorOf = [&](const std::string &merged) { return countOf(result.sizesOf(StringRef(merged).drop_front())); };
  if (begins(result.k))
    matmul.rows = Matmul::Rows::K, matmul.rowsFactor = factorOf(result.k);
  else if (begins(result.m))
    matmul.rows = Matmul::Rows::M, matmul.rowsFactor = factorOf(result.m);
  else if (begins(result.batch))
    matmul.rows = Matmul::Rows::Batch;
  // Rows along the lanes are all computed, up to the capacity.
}

/// The stride of each of these letters in memory; 0 if the type has no such letter.
SmallVector<int64_t> MatrixBuilder::stridesOf(RankedTensorType type, StringRef letters, StringRef along) const {
  llvm::DenseMap<char, int64_t> strides;
  int64_t stride = 1;
  const std::string inMemory = lettersInMemory(type, letters);
  for (char letter : llvm::reverse(inMemory)) {
    strides[letter] = stride;
    stride *= result.sizes.lookup(letter);
  }
  return llvm::map_to_vector(along, [&](char letter) { return strides.lookup(letter); });
}

Matmul::Matrix MatrixBuilder::matrixOf(RankedTensorType type, StringRef letters, StringRef rowLetters,
                                       StringRef columnLetters) const {
  Matmul::Matrix matrix;
  matrix.batchStrides = stridesOf(type, letters, result.batch);
  if (isInPanels(type) && !ir::liesAs(type, AffineMap())) {
    // Panels split the first dimension: B's columns if it is free, the result's always.
    matrix.layout = product.equation.isFree(letters[0]) ? Matmul::Layout::Panels : Matmul::Layout::PanelsT;
    matrix.panel = panelOfFirstDim(type);
    return matrix;
  }
  SmallVector<int64_t> rowStrides = stridesOf(type, letters, rowLetters),
                       columnStrides = stridesOf(type, letters, columnLetters);
  matrix.strideI = rowStrides.empty() ? 1 : rowStrides.back();
  matrix.strideJ = columnStrides.empty() ? 1 : columnStrides.back();
  return matrix;
}

/// Whether the merged letters have the same layout in the result as in the operand.
bool MatrixBuilder::isChain(StringRef merged) const {
  SmallVector<int64_t> strides = stridesOf(tensorOf(product.y), product.equation.y, merged);
  for (size_t i = 1; i < merged.size(); ++i)
    if (strides[i - 1] != strides[i] * result.sizes.lookup(merged[i]))
      return false;
  return true;
}

bool MatrixBuilder::canStoreAlone() const {
  const Matmul::Matrix &c = result.matmul.c;
  if (c.layout == Matmul::Layout::Panels)
    return result.matmul.n % c.panel == 0; // else the epilogue fills the last panel
  return isChain(result.m) && isChain(result.n) && c.strideJ == 1;
}

EinsumMatrices matricesOf(const EinsumLetters &product, const Target &target, int64_t capacity) {
  return MatrixBuilder(product, target, capacity).build();
}

} // namespace sluice::cpu
