#include "backends/loops/Product.h"

#include "backends/loops/Padding.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <set>

namespace sluice::loops {

using namespace mlir;

static bool usesVariable(AffineExpr expr, AffineExpr variable) {
  bool found = false;
  forEachVariable(expr, [&](unsigned number) { found |= number == cast<AffineDimExpr>(variable).getPosition(); });
  return found;
}

static bool isFoundBy(ArrayRef<AffineExpr> index, AffineExpr variable) {
  return llvm::any_of(index, [&](AffineExpr expr) { return usesVariable(expr, variable); });
}

bool Product::uses(AffineExpr expr, Role role) const {
  return llvm::any_of(dims, [&](const Dim &dim) { return dim.role == role && usesVariable(expr, dim.variable); });
}

void Product::gatherUnits() {
  for (Dim &dim : dims)
    if (dim.size == 1 && dim.role != K)
      dim.role = M;
}

namespace {

/// A formula's reads and conditions, in its own dimensions.
struct Terms {
  const Reduction *reduction = nullptr;
  SmallVector<const Read *> reads;
  SmallVector<AffineExpr> nonNegative;

  void take(const Steps &steps) {
    for (const Step &step : steps.steps) {
      if (auto *read = std::get_if<Read>(&step.what))
        reads.push_back(read);
      if (auto *guarded = std::get_if<Guarded>(&step.what)) {
        llvm::append_range(nonNegative, guarded->nonNegative);
        take(guarded->then);
      }
    }
  }
};

/// Builds a product, with some dimensions of the result split into a quotient and a remainder.
class Builder {
public:
  Builder(Formulas &formulas, const Formula &formula, const Terms &terms, int64_t capacity, ArrayRef<Operation *> moves)
      : formulas(formulas), type(cast<RankedTensorType>(formula.op->getResult(0).getType())), formula(formula),
        terms(terms), capacity(capacity), moves(moves) {}

  /// Returns none if both operands depend on the quotient of a split dimension.
  std::optional<Product> build(const std::map<unsigned, int64_t> &divisors = {}) const;

private:
  Product place(const std::map<unsigned, int64_t> &divisors) const;
  std::set<int64_t> divisorsOf(unsigned dim) const;

  Formulas &formulas;
  RankedTensorType type;
  const Formula &formula;
  const Terms &terms;
  int64_t capacity;
  ArrayRef<Operation *> moves;
};

} // namespace

Product Builder::place(const std::map<unsigned, int64_t> &divisors) const {
  Product product{IndexSpace(type.getContext()), {}, {}, {}, {}, {}, {}, {}};
  SmallVector<AffineExpr> replacements(formula.numDims, getAffineConstantExpr(0, type.getContext()));
  auto add = [&](int64_t size, bool hasRows, Product::Role role) {
    AffineExpr variable = product.space.addVariable(Count(), {0, size - 1});
    product.dims.push_back({variable, size, hasRows, role});
    return variable;
  };
  for (auto [number, size] : llvm::enumerate(type.getShape())) {
    bool hasRows = ShapedType::isDynamic(size);
    auto divisor = divisors.find(unsigned(number));
    if (divisor == divisors.end()) {
      replacements[number] = add(hasRows ? capacity : size, hasRows, Product::M);
      continue;
    }
    int64_t by = divisor->second, quotients = (size + by - 1) / by;
    AffineExpr index = add(quotients, false, Product::M) * by + add(by, false, Product::Batch);
    replacements[number] = index;
    if (size % by != 0)
      product.inResult.push_back(size - 1 - index);
  }
  product.result.assign(replacements.begin(), replacements.begin() + type.getRank());
  for (auto [number, size] : llvm::enumerate(terms.reduction->extents)) {
    bool hasRows = size == ir::ElementBuilder::kRows;
    replacements[terms.reduction->firstDim + number] = add(hasRows ? capacity : size, hasRows, Product::K);
  }
  // A variable stays, also that of one element: roles must not depend on sizes.
  auto normalized = [&](AffineExpr at) { return isa<AffineDimExpr>(at) ? at : product.space.normalize(at); };
  auto place = [&](AffineExpr expr) { return normalized(expr.replaceDims(replacements)); };
  auto operand = [&](const Read &read) {
    PlaceInMemory its =
        placeInMemory(formulas, formula.op->getOperand(read.operand), llvm::map_to_vector(read.index, place), moves);
    its.index = llvm::map_to_vector(its.index, normalized);
    return its;
  };
  product.a = operand(*terms.reads[0]);
  product.b = operand(*terms.reads[1]);
  for (AffineExpr condition : terms.nonNegative)
    if (product.space.range(place(condition)).low < 0)
      product.nonNegative.push_back(place(condition));
  return product;
}

/// The constants by which the formula divides an index that depends on this dimension.
std::set<int64_t> Builder::divisorsOf(unsigned dim) const {
  std::set<int64_t> found;
  auto look = [&](AffineExpr expr) {
    expr.walk([&](AffineExpr inner) {
      auto binary = dyn_cast<AffineBinaryOpExpr>(inner);
      bool divides =
          binary && (binary.getKind() == AffineExprKind::FloorDiv || binary.getKind() == AffineExprKind::Mod);
      if (divides && binary.getLHS().isFunctionOfDim(dim))
        found.insert(cast<AffineConstantExpr>(binary.getRHS()).getValue());
    });
  };
  for (const Read *read : terms.reads)
    llvm::for_each(read->index, look);
  llvm::for_each(terms.nonNegative, look);
  return found;
}

std::optional<Product> Builder::build(const std::map<unsigned, int64_t> &divisors) const {
  Product product = place(divisors);
  size_t next = 0; // among the product's dimensions
  for (unsigned number = 0; number < type.getRank(); ++number) {
    Product::Dim &dim = product.dims[next++];
    bool isSplit = divisors.count(number), byA = isFoundBy(product.a.index, dim.variable),
         byB = isFoundBy(product.b.index, dim.variable);
    next += isSplit;
    dim.role = byA && byB ? Product::Batch : byB ? Product::N : Product::M;
    if (dim.role != Product::Batch)
      continue;
    if (isSplit)
      return std::nullopt;
    for (int64_t divisor : divisorsOf(number)) {
      std::map<unsigned, int64_t> more = divisors;
      more[number] = divisor;
      if (divisor < dim.size && !dim.hasRows)
        if (std::optional<Product> split = build(more))
          return split;
    }
  }
  return product;
}

/// The size of a dimension including the padding of its separate tiles; 0 if there is no padding, or if not all of its
/// elements are read.
static int64_t sizeWithPadding(Value memory, unsigned dim, int64_t read) {
  auto type = cast<RankedTensorType>(memory.getType());
  for (const ir::PhysicalDim &padded : paddedDims(type, PaddingOf::ApartTiles))
    if (padded.logical == dim && type.getDimSize(dim) == read)
      return llvm::divideCeilSigned(read, padded.tile) * padded.tile;
  return 0;
}

/// Extends dimensions to whole tiles. Each of them must be the only index along a dimension of every value that has it.
static void addPadding(Product &product, Value result) {
  for (Product::Dim &dim : product.dims) {
    std::set<int64_t> sizes;
    auto look = [&](Value memory, ArrayRef<AffineExpr> index) {
      for (auto [number, expr] : llvm::enumerate(index))
        if (usesVariable(expr, dim.variable))
          sizes.insert(expr == dim.variable ? sizeWithPadding(memory, unsigned(number), dim.size) : 0);
    };
    look(result, product.result);
    look(product.a.memory, product.a.index);
    look(product.b.memory, product.b.index);
    bool isPadded = sizes.size() == 1 && *sizes.begin() > 0 && !isFoundBy(product.nonNegative, dim.variable);
    // A summed dimension needs zeros in both operands: zero times another value, such as infinity, need not be zero.
    bool isOfBoth = isFoundBy(product.a.index, dim.variable) && isFoundBy(product.b.index, dim.variable);
    if (!isPadded || (dim.role == Product::K && !isOfBoth))
      continue;
    if (isFoundBy(product.result, dim.variable))
      product.isStored.push_back(dim.size - 1 - dim.variable);
    dim.size = *sizes.begin();
    product.space.setRange(dim.variable, {0, dim.size - 1});
  }
}

std::optional<Product> findProduct(Formulas &formulas, Operation *op, int64_t capacity, ArrayRef<Operation *> moves) {
  auto contraction = dyn_cast<ir::ContractionOp>(op);
  if (!contraction || contraction.getGroups() > 1)
    return std::nullopt;
  const Formula &formula = *formulas.of(op, 0);
  if (formula.reductions.empty()) // nothing is summed
    return std::nullopt;
  assert(formula.reductions.size() == 1 && "a product is one sum");
  Terms terms;
  terms.reduction = formula.reductions.front();
  terms.take(terms.reduction->step);
  assert(terms.reads.size() == 2 && "of the products of two elements");
  std::optional<Product> product = Builder(formulas, formula, terms, capacity, moves).build();
  if (product)
    addPadding(*product, op->getResult(0));
  return product;
}

} // namespace sluice::loops
