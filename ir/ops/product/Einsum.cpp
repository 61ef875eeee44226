// Products by an equation. Their gradients are also such products. So are a product of a permuted or broadcast operand
// and a product with a permuted result.
#include "ir/Dialect.h"
#include "ir/ops/Inference.h"
#include "ir/reference/Permuted.h"
#include "ir/reference/Products.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace sluice::ir {

//===- types and meaning ------------------------------------------------------------------------------------------===//

static LogicalResult checkRankOf(MaybeLocation loc, StringRef name, Value operand, StringRef letters) {
  if (shapeOf(operand).size() == letters.size())
    return success();
  return inferenceFailure(loc, "operand ", name, " has shape ", printShape(shapeOf(operand)), " and ", letters.size(),
                          " letters, '", letters, "'");
}

/// A letter has one size, and at most one letter is the rows.
static LogicalResult checkSizes(MaybeLocation loc, const Equation &letters, ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  for (auto [letter, size] : llvm::zip_equal(letters.b, b)) {
    size_t inA = letters.a.find(letter);
    if (inA != std::string::npos && a[inA] != size)
      return inferenceFailure(loc, "letter ", StringRef(&letter, 1), " has two sizes, ", printDim(a[inA]), " and ",
                              printDim(size), ", in ", printShape(a), " x ", printShape(b), " by '", letters.str(),
                              "'");
  }
  const auto *rowsOfA = llvm::find_if(a, ShapedType::isDynamic), *rowsOfB = llvm::find_if(b, ShapedType::isDynamic);
  if (rowsOfA == a.end() || rowsOfB == b.end())
    return success();
  char ofA = letters.a[rowsOfA - a.begin()], ofB = letters.b[rowsOfB - b.begin()];
  if (ofA == ofB)
    return success();
  return inferenceFailure(loc, "two letters are the rows, ", StringRef(&ofA, 1), " and ", StringRef(&ofB, 1), ", in ",
                          printShape(a), " x ", printShape(b), " by '", letters.str(), "'");
}

LogicalResult EinsumOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                         DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                         SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  FailureOr<Equation> letters = Equation::parse(loc, op.getEquation());
  if (failed(letters) || failed(checkFloats(loc, operands)) || failed(checkRankOf(loc, "a", op.getA(), letters->a)) ||
      failed(checkRankOf(loc, "b", op.getB(), letters->b)))
    return failure();
  if (std::string canonical = letters->canonical().str(); canonical != op.getEquation())
    return inferenceFailure(loc, "the letters of '", op.getEquation(), "' are not in the order in which they appear: '",
                            canonical, "' is the same product");
  ArrayRef<int64_t> a = shapeOf(op.getA()), b = shapeOf(op.getB());
  if (failed(checkSizes(loc, *letters, a, b)))
    return failure();
  SmallVector<int64_t> shape = llvm::map_to_vector(letters->y, [&](char letter) {
    size_t inA = letters->a.find(letter);
    return inA != std::string::npos ? a[inA] : b[letters->b.find(letter)];
  });
  return addResult(loc, shape, elementOf(op.getA()), types);
}

Equation EinsumOp::getLetters() { return *Equation::parse(std::nullopt, getEquation()); }

SmallVector<unsigned> EinsumOp::getSummedDims(unsigned number) {
  Equation letters = getLetters();
  std::string summed = letters.summed();
  SmallVector<unsigned> dims;
  for (auto [dim, letter] : llvm::enumerate(number == 0 ? letters.a : letters.b))
    if (Equation::isIn(summed, letter))
      dims.push_back(unsigned(dim));
  return dims;
}

/// The stride of each letter of `order` in a row-major tensor; 0 if the tensor lacks the letter.
static SmallVector<int64_t> stridesAlong(StringRef order, StringRef letters, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(order.size(), 0);
  int64_t stride = 1;
  for (size_t dim = letters.size(); dim-- > 0; stride *= shape[dim])
    strides[order.find(letters[dim])] = stride;
  return strides;
}

namespace {
/// An operand whose elements along the last letter of an order are neighbors, or one element.
struct Arranged {
  HostTensor copy; ///< empty if the operand is so already
  const double *data;
  SmallVector<int64_t> strides; ///< along the letters of the order

  Arranged(const HostTensor &tensor, StringRef letters, StringRef order)
      : data(tensor.data.data()), strides(stridesAlong(order, letters, tensor.shape)) {
    if (strides.empty() || strides.back() <= 1)
      return;
    std::string sorted(letters);
    llvm::sort(sorted, [&](char a, char b) { return order.find(a) < order.find(b); });
    copy = permuted(tensor, llvm::map_to_vector(sorted, [&](char letter) { return int64_t(letters.find(letter)); }));
    data = copy.data.data();
    strides = stridesAlong(order, sorted, copy.shape);
  }

  int64_t step() const { return strides.empty() ? 0 : strides.back(); }
};
} // namespace

SmallVector<HostTensor> EinsumOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  Equation letters = getLetters();
  const HostTensor &a = operands[0], &b = operands[1];
  HostTensor y(runtimeShape(getY().getType(), rows));
  // The result's innermost letter becomes the innermost loop.
  size_t outer = letters.y.empty() ? 0 : letters.y.size() - 1;
  std::string order = letters.y.substr(0, outer) + letters.summed() + letters.y.substr(outer);
  SmallVector<int64_t> sizes = llvm::map_to_vector(order, [&](char letter) {
    size_t inA = letters.a.find(letter);
    return inA != std::string::npos ? a.shape[inA] : b.shape[letters.b.find(letter)];
  });
  int64_t inner = sizes.empty() ? 1 : sizes.pop_back_val();
  Arranged ofA(a, letters.a, order), ofB(b, letters.b, order);
  SmallVector<int64_t> ofY = stridesAlong(order, letters.y, y.shape);
  forEachIndex(sizes, [&](ArrayRef<int64_t> index) {
    const double *fromA = ofA.data, *fromB = ofB.data;
    double *to = y.data.data();
    for (auto [place, i] : llvm::enumerate(index))
      fromA += i * ofA.strides[place], fromB += i * ofB.strides[place], to += i * ofY[place];
    if (!letters.y.empty())
      return addProducts(to, fromA, ofA.step(), fromB, ofB.step(), inner);
    for (int64_t i = 0; i < inner; ++i)
      *to += fromA[i * ofA.step()] * fromB[i * ofB.step()];
  });
  return {y};
}

std::pair<int64_t, int64_t> EinsumOp::getFlops() {
  return countFlops({shapeOf(getY()), getSummedLetters(getLetters(), shapeOf(getA())).sizes});
}

//===- gradient ---------------------------------------------------------------------------------------------------===//

Value EinsumOp::multiply(OpBuilder &builder, Location loc, Value a, Value b, const Equation &letters) {
  return builder.create<EinsumOp>(loc, a, b, letters.canonical().str());
}

/// The operand with the result's innermost free letter comes second, as in x [m, k] times w [k, n].
static Value multiplyInOrder(OpBuilder &builder, Location loc, Value first, Value second, const Equation &letters) {
  auto free = std::find_if(letters.y.rbegin(), letters.y.rend(), [&](char letter) { return letters.isFree(letter); });
  bool inOrder = free == letters.y.rend() || Equation::isIn(letters.b, *free);
  return inOrder ? EinsumOp::multiply(builder, loc, first, second, letters)
                 : EinsumOp::multiply(builder, loc, second, first, {letters.b, letters.a, letters.y});
}

SmallVector<Value> EinsumOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  Equation letters = getLetters();
  return {multiplyInOrder(builder, getLoc(), dResults[0], getB(), {letters.y, letters.b, letters.a}),
          multiplyInOrder(builder, getLoc(), getA(), dResults[0], {letters.a, letters.y, letters.b})};
}

// The steps become one more letter that is summed over.
Value EinsumOp::buildStepSum(OpBuilder &builder, ValueRange stacked, ArrayRef<int64_t> dims) {
  Equation letters = getLetters();
  char steps = 'a';
  while (Equation::isIn(letters.a + letters.b, steps))
    ++steps;
  letters.a.insert(size_t(dims[0]), 1, steps);
  letters.b.insert(size_t(dims[1]), 1, steps);
  return multiply(builder, getLoc(), stacked[0], stacked[1], letters);
}

RowFlow EinsumOp::getRowFlow() {
  SummedLetters summed = getSummedLetters(getLetters(), shapeOf(getA()));
  return llvm::is_contained(summed.sizes, ShapedType::kDynamic) ? RowFlow::Sum : RowFlow::Apart;
}

bool EinsumOp::isLinearIn(ArrayRef<bool> sums) { return sums[0] != sums[1]; }

SmallVector<Sample> EinsumOp::samples() {
  std::pair<double, double> range{-1, 1};
  auto sample = [&](const char *equation, const char *type) {
    return Sample{std::string("\"sluice.einsum\"(%0, %1) {equation = \"") + equation + "\"} : " + type, {range, range}};
  };
  return {
      // Matrices, either one transposed, and the rows in each position.
      sample("ab,bc->ac", "(tensor<?x4xf64>, tensor<4x5xf64>) -> tensor<?x5xf64>"),
      sample("ab,cb->ac", "(tensor<?x4xf64>, tensor<5x4xf64>) -> tensor<?x5xf64>"),
      sample("ab,ac->bc", "(tensor<?x4xf64>, tensor<?x5xf64>) -> tensor<4x5xf64>"),
      sample("abc,adb->acd", "(tensor<2x4x3xf64>, tensor<2x5x4xf64>) -> tensor<2x3x5xf64>"),
      sample("abc,acd->abd", "(tensor<2x3x4xf64>, tensor<2x4x2xf64>) -> tensor<2x3x2xf64>"),
      sample("ab,cb->ac", "(tensor<3x4xf64>, tensor<?x4xf64>) -> tensor<3x?xf64>"),
      // Enough columns that backends may pad them.
      sample("ab,bc->ac", "(tensor<2x3xf64>, tensor<3x257xf64>) -> tensor<2x257xf64>"),
      // Several free, summed and batch letters, and the rows as a separate letter of their role.
      sample("abc,dc->abd", "(tensor<?x3x4xf64>, tensor<5x4xf64>) -> tensor<?x3x5xf64>"),
      sample("abc,abd->cd", "(tensor<?x3x4xf64>, tensor<?x3x5xf64>) -> tensor<4x5xf64>"),
      sample("abc,cde->abde", "(tensor<?x3x4xf64>, tensor<4x2x5xf64>) -> tensor<?x3x2x5xf64>"),
      sample("abcd,aecd->acbe", "(tensor<?x3x2x4xf64>, tensor<?x5x2x4xf64>) -> tensor<?x2x3x5xf64>"),
      sample("abcd,adbe->acbe", "(tensor<?x2x3x5xf64>, tensor<?x5x2x4xf64>) -> tensor<?x3x2x4xf64>"),
      sample("abcd,befc->adef", "(tensor<2x3x4x2xf64>, tensor<3x2x3x4xf64>) -> tensor<2x2x2x3xf64>"),
      sample("abcd,dbe->eac", "(tensor<2x3x?x4xf64>, tensor<4x3x5xf64>) -> tensor<5x2x?xf64>"),
      sample("abc,dbae->dce", "(tensor<3x?x4xf64>, tensor<2x?x3x5xf64>) -> tensor<2x4x5xf64>"),
      // No free letter on one side or on both, nothing summed, the batch innermost.
      sample("ab,b->a", "(tensor<?x4xf64>, tensor<4xf64>) -> tensor<?xf64>"),
      sample("ab,ab->a", "(tensor<?x4xf64>, tensor<?x4xf64>) -> tensor<?xf64>"),
      sample("ab,ab->", "(tensor<?x4xf64>, tensor<?x4xf64>) -> tensor<f64>"),
      sample("ab,c->cab", "(tensor<?x4xf64>, tensor<3xf64>) -> tensor<3x?x4xf64>"),
      sample("abc,bc->acb", "(tensor<2x?x4xf64>, tensor<?x4xf64>) -> tensor<2x4x?xf64>"),
      sample("abc,acd->bda", "(tensor<3x2x4xf64>, tensor<3x4x5xf64>) -> tensor<2x5x3xf64>"),
      sample(",ab->ba", "(tensor<f64>, tensor<?x4xf64>) -> tensor<4x?xf64>"),
  };
}

//===- canonical forms --------------------------------------------------------------------------------------------===//

/// The same product with other operands, and with its attributes.
static Value multiplyInstead(PatternRewriter &rewriter, EinsumOp product, Value a, Value b, const Equation &letters,
                             Type type) {
  auto made = EinsumOp::multiply(rewriter, product.getLoc(), a, b, letters).getDefiningOp<EinsumOp>();
  made->setDiscardableAttrs(product->getDiscardableAttrDictionary());
  made.getY().setType(cast<RankedTensorType>(type));
  return made.getY();
}

namespace {

/// A value that has all elements of an operand, and the letters of its dimensions.
struct Source {
  Value value;
  std::string letters;
};

/// Absorbs an operand's producer into the equation.
class TakeInOperand : public OpRewritePattern<EinsumOp> {
public:
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(EinsumOp op, PatternRewriter &rewriter) const final {
    Equation letters = op.getLetters();
    std::optional<Source> a = sourceOf(op, op.getA(), letters, letters.a),
                          b = sourceOf(op, op.getB(), letters, letters.b);
    if (!a && !b)
      return failure();
    // Both at once only if the letters that one operand drops are not dropped by the other.
    if (a && b && isBroadcast(*a, letters.a) && isBroadcast(*b, letters.b))
      b.reset();
    Source first = a.value_or(Source{op.getA(), letters.a}), second = b.value_or(Source{op.getB(), letters.b});
    rewriter.replaceOp(op, multiplyInstead(rewriter, op, first.value, second.value,
                                           {first.letters, second.letters, letters.y}, op.getY().getType()));
    return success();
  }

private:
  static bool isBroadcast(const Source &source, StringRef letters) { return source.letters.size() < letters.size(); }

  static std::optional<Source> sourceOf(EinsumOp op, Value operand, const Equation &equation, StringRef letters) {
    if (auto transpose = operand.getDefiningOp<TransposeOp>(); transpose && canTakeIn(op, transpose)) {
      std::string source(letters.size(), ' ');
      for (auto [dim, axis] : llvm::enumerate(transpose.getPermutation()))
        source[axis] = letters[dim];
      return Source{transpose.getX(), source};
    }
    if (auto expand = operand.getDefiningOp<ExpandOp>(); expand && canTakeIn(op, expand))
      return sourceOfExpanded(expand, equation, letters);
    return std::nullopt;
  }

  /// An operand that is broadcast along batch letters is equivalent to one without them.
  static std::optional<Source> sourceOfExpanded(ExpandOp expand, const Equation &equation, StringRef letters) {
    ArrayRef<int64_t> x = shapeOf(expand.getX()), y = shapeOf(expand.getY());
    std::string source;
    for (auto [size, dim] : llvm::zip_equal(x, expand.getDims())) {
      if (size != y[dim])
        return std::nullopt;
      source += letters[dim];
    }
    for (char letter : letters)
      if (!Equation::isIn(source, letter) && !equation.isBatch(letter))
        return std::nullopt;
    return Source{expand.getX(), source};
  }
};

/// Writes the result in permuted form if it has no other consumers.
class TakeInPermutedResult : public OpRewritePattern<TransposeOp> {
public:
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(TransposeOp transpose, PatternRewriter &rewriter) const final {
    auto product = transpose.getX().getDefiningOp<EinsumOp>();
    if (!product || !product.getY().hasOneUse() || !canTakeIn(product, transpose))
      return failure();
    Equation letters = product.getLetters();
    std::string permuted;
    for (int64_t axis : transpose.getPermutation())
      permuted += letters.y[axis];
    rewriter.setInsertionPoint(product);
    rewriter.replaceOp(transpose, multiplyInstead(rewriter, product, product.getA(), product.getB(),
                                                  {letters.a, letters.b, permuted}, transpose.getY().getType()));
    rewriter.eraseOp(product);
    return success();
  }
};

} // namespace

void EinsumOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<TakeInOperand, TakeInPermutedResult>(context);
}

} // namespace sluice::ir
