#include "backends/cpu/compiler/product/window/WinogradTransform.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace sluice::cpu {

using namespace mlir;

static constexpr double imageOf2[] = {1, 0,  -1, 0, //
                                      0, 1,  1,  0, //
                                      0, -1, 1,  0, //
                                      0, 1,  0,  -1};
static constexpr double filterOf2[] = {1,   0,    0,   //
                                       0.5, 0.5,  0.5, //
                                       0.5, -0.5, 0.5, //
                                       0,   0,    1};
static constexpr double outputOf2[] = {1, 1, 1,  0, //
                                       0, 1, -1, -1};

static constexpr double imageOf4[] = {4, 0,  -5, 0,  1, 0, //
                                      0, -4, -4, 1,  1, 0, //
                                      0, 4,  -4, -1, 1, 0, //
                                      0, -2, -1, 2,  1, 0, //
                                      0, 2,  -1, -2, 1, 0, //
                                      0, 4,  0,  -5, 0, 1};
static constexpr double filterOf4[] = {1. / 4,  0,        0,       //
                                       -1. / 6, -1. / 6,  -1. / 6, //
                                       -1. / 6, 1. / 6,   -1. / 6, //
                                       1. / 24, 1. / 12,  1. / 6,  //
                                       1. / 24, -1. / 12, 1. / 6,  //
                                       0,       0,        1};
static constexpr double outputOf4[] = {1, 1, 1,  1, 1,  0, //
                                       0, 1, -1, 2, -2, 0, //
                                       0, 1, 1,  4, 4,  0, //
                                       0, 1, -1, 8, -8, 1};

const WinogradTransforms &winogradTransforms(int64_t outputs) {
  static const WinogradTransforms two{{4, 4, imageOf2}, {4, 3, filterOf2}, {2, 4, outputOf2}};
  static const WinogradTransforms four{{6, 6, imageOf4}, {6, 3, filterOf4}, {4, 6, outputOf4}};
  assert((outputs == 2 || outputs == 4) && "there are transforms for 2 and 4 outputs");
  return outputs == 2 ? two : four;
}

namespace {

// A linear form of some vectors: the terms that have a factor.
using Terms = SmallVector<std::pair<double, Value>>;

// The product of a constant matrix and a column of vectors. Points come in pairs p and -p, whose rows, or columns,
// differ only in signs. So the pair shares its even and its odd part, which halves the multiplications.
class ColumnTransform {
public:
  ColumnTransform(OpBuilder &b, Location loc, const TransformMatrix &matrix) : b(b), loc(loc), m(matrix) {}

  SmallVector<Value> apply(ArrayRef<Value> x) {
    addPairsOfColumns(x);
    SmallVector<Value> y;
    for (int64_t row = 0; row < m.rows; ++row) {
      if (row + 1 == m.rows || !isPairOfRows(row)) {
        y.push_back(sumOf(termsOf(row, [](int64_t) { return true; })));
        continue;
      }
      Value even = sumOf(termsOf(row, [&](int64_t j) { return m.at(row, j) == m.at(row + 1, j); }));
      Value odd = sumOf(termsOf(row, [&](int64_t j) { return m.at(row, j) != m.at(row + 1, j); }));
      y.push_back(b.create<arith::AddFOp>(loc, even, odd));
      y.push_back(b.create<arith::SubFOp>(loc, even, odd));
      ++row;
    }
    return y;
  }

private:
  /// Whether rows `row` and `row + 1` have an equal and an opposite element each, and no others.
  bool isPairOfRows(int64_t row) const {
    bool equal = false, opposite = false;
    for (int64_t j = 0; j < m.columns; ++j) {
      double first = m.at(row, j), second = m.at(row + 1, j);
      if (std::abs(first) != std::abs(second))
        return false;
      equal |= first != 0 && first == second;
      opposite |= first != 0 && first != second;
    }
    return equal && opposite && pairs.empty();
  }

  bool isPairOfColumns(int64_t column) const {
    bool equal = false, opposite = false;
    for (int64_t i = 0; i < m.rows; ++i) {
      double first = m.at(i, column), second = m.at(i, column + 1);
      if (std::abs(first) != std::abs(second))
        return false;
      equal |= first != 0 && first == second;
      opposite |= first != 0 && first != second;
    }
    return equal && opposite;
  }

  /// Sums and differences of the pairs of columns.
  void addPairsOfColumns(ArrayRef<Value> x) {
    inputs.assign(x.begin(), x.end());
    for (int64_t j = 0; j + 1 < m.columns; ++j)
      if (isPairOfColumns(j)) {
        pairs.push_back(j);
        inputs[size_t(j)] = b.create<arith::AddFOp>(loc, x[size_t(j)], x[size_t(j + 1)]);
        inputs[size_t(j + 1)] = b.create<arith::SubFOp>(loc, x[size_t(j)], x[size_t(j + 1)]);
        ++j;
      }
  }

  /// The terms of a row, of the columns that `isPart` selects.
  Terms termsOf(int64_t row, llvm::function_ref<bool(int64_t)> isPart) const {
    Terms terms;
    for (int64_t j = 0; j < m.columns; ++j) {
      double factor = m.at(row, j);
      if (factor == 0 || !isPart(j))
        continue;
      bool isPair = llvm::is_contained(pairs, j);
      terms.emplace_back(factor, inputs[size_t(isPair && m.at(row, j + 1) != factor ? j + 1 : j)]);
      j += isPair;
    }
    return terms;
  }

  Value constant(double value, Type type) {
    auto attribute = b.getFloatAttr(getElementTypeOrSelf(type), value);
    return b.create<arith::ConstantOp>(loc, DenseElementsAttr::get(cast<VectorType>(type), Attribute(attribute)));
  }

  /// Begins with a term without a multiplication, if there is one.
  Value sumOf(Terms terms) {
    auto first = llvm::find_if(terms, [](const auto &term) { return term.first == 1; });
    if (first != terms.end())
      std::rotate(terms.begin(), first, first + 1);
    Value sum;
    for (auto [factor, x] : terms) {
      if (!sum)
        sum = factor == 1 ? x : Value(b.create<arith::MulFOp>(loc, x, constant(factor, x.getType())));
      else if (std::abs(factor) == 1)
        sum = factor == 1 ? Value(b.create<arith::AddFOp>(loc, sum, x)) : Value(b.create<arith::SubFOp>(loc, sum, x));
      else
        sum = b.create<vector::FMAOp>(loc, x, constant(factor, x.getType()), sum);
    }
    return sum;
  }

  OpBuilder &b;
  Location loc;
  const TransformMatrix &m;
  SmallVector<int64_t> pairs; // first columns
  SmallVector<Value> inputs;  // of each column; of a pair, the sum and the difference
};

} // namespace

SmallVector<Value> transformSquare(OpBuilder &b, Location loc, const TransformMatrix &matrix, ArrayRef<Value> x) {
  auto n = size_t(matrix.columns), m = size_t(matrix.rows);
  assert(x.size() == n * n && "the transform is of a square");
  SmallVector<Value> half(m * n), result;
  for (size_t column = 0; column < n; ++column) {
    SmallVector<Value> its;
    for (size_t row = 0; row < n; ++row)
      its.push_back(x[row * n + column]);
    for (auto [row, value] : llvm::enumerate(ColumnTransform(b, loc, matrix).apply(its)))
      half[row * n + column] = value;
  }
  for (size_t row = 0; row < m; ++row)
    llvm::append_range(result, ColumnTransform(b, loc, matrix).apply(ArrayRef(half).slice(row * n, n)));
  return result;
}

} // namespace sluice::cpu
