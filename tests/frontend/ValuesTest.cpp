// Values of functions that build several ops, computed by the ops' reference functions.
#include "frontend/graph/GraphImpl.h"
#include <sluice/sluice.h>

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <numeric>

using namespace sluice;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::Pointwise;

namespace {

constexpr int64_t rows = 2;

/// Evaluates the graph's ops in order on two rows; every state and input is 0, 1, 2, ... unless given.
class Values : public testing::Test {
protected:
  Graph g{"test"};
  nn::Module root{g};
  std::map<std::string, std::vector<double>> given;

  Tensor input(const char *name, Shape shape, DType dtype = f32) { return g.input(name, dtype, std::move(shape)); }
  Tensor batch(const char *name, std::vector<double> values, DType dtype = f32) {
    given[name] = values;
    return g.input(name, dtype, {Dim{"batch"}, int64_t(values.size()) / rows});
  }
  Tensor labels(std::vector<double> values) {
    given["label"] = std::move(values);
    return g.input("label", i64, {Dim{"batch"}});
  }
  Tensor state(const char *name, std::vector<double> values) {
    given[name] = values;
    return root.buffer(name, {int64_t(values.size())}, init::zeros());
  }

  std::vector<double> valuesOf(const Tensor &x) {
    std::map<const void *, ir::HostTensor> values;
    ir::GraphOp graph = detail::Access::graph(g)->graph;
    for (auto [argument, name] : llvm::zip(graph.getBody().getArguments(), graph.getInputs()))
      values[argument.getAsOpaquePointer()] = begin(llvm::cast<mlir::StringAttr>(name).str(), argument.getType());
    for (mlir::Operation &op : graph.getBody().front())
      evaluate(op, values);
    return values.at(detail::Access::value(x).getAsOpaquePointer()).data;
  }

private:
  ir::HostTensor begin(const std::string &name, mlir::Type type) {
    ir::HostTensor value(ir::runtimeShape(type, rows));
    std::iota(value.data.begin(), value.data.end(), 0.0);
    if (auto known = given.find(name); known != given.end())
      value.data = known->second;
    return value;
  }

  void evaluate(mlir::Operation &op, std::map<const void *, ir::HostTensor> &values) {
    if (auto get = llvm::dyn_cast<ir::GetOp>(op)) {
      values[get.getValue().getAsOpaquePointer()] = begin(get.getState().str(), get.getValue().getType());
      return;
    }
    auto reference = llvm::dyn_cast<ir::ReferenceOp>(op);
    if (!reference)
      return;
    llvm::SmallVector<ir::HostTensor> operands;
    for (mlir::Value operand : op.getOperands())
      operands.push_back(values.at(operand.getAsOpaquePointer()));
    for (auto [result, value] : llvm::zip(op.getResults(), reference.evaluate(operands, rows)))
      values[mlir::Value(result).getAsOpaquePointer()] = value;
  }
};

/// Tolerance for rounding of a few operations in double precision.
auto near(std::vector<double> values) { return Pointwise(DoubleNear(1e-12), std::move(values)); }

} // namespace

TEST_F(Values, NumbersStandOnTheirSide) {
  Tensor x = batch("x", {1, 2});
  EXPECT_THAT(valuesOf(10 - x), ElementsAre(9, 8));
  EXPECT_THAT(valuesOf(x - 10), ElementsAre(-9, -8));
  EXPECT_THAT(valuesOf(6 / x), ElementsAre(6, 3));
  EXPECT_THAT(valuesOf(pow(2, x)), ElementsAre(2, 4));
  EXPECT_THAT(valuesOf(lt(1.5, x)), ElementsAre(0, 1));
  EXPECT_THAT(valuesOf(where(gt(x, 1), x, -1)), ElementsAre(-1, 2));
  EXPECT_THAT(valuesOf(where(gt(x, 1), 7, x)), ElementsAre(1, 7));
}

TEST_F(Values, BytesScale) {
  Tensor x = batch("x", {0, 255}, u8);
  EXPECT_THAT(valuesOf(x.to(f32) / 255), ElementsAre(0, 1));
}

// PyTorch's rules for integers.
TEST_F(Values, DivisionIsTrue) {
  Tensor x = batch("x", {51, 102}, u8), y = batch("y", {4, -5}, i32), flag = batch("flag", {1, 0}, boolean);
  EXPECT_THAT(valuesOf(x / 255), near({0.2, 0.4}));
  EXPECT_THAT(valuesOf(div(y, 8)), ElementsAre(0.5, -0.625));
  EXPECT_THAT(valuesOf(10 / y), ElementsAre(2.5, -2));
  EXPECT_THAT(valuesOf(y / y), ElementsAre(1, 1));
  EXPECT_THAT(valuesOf(flag / 0.5), ElementsAre(2, 0));
  EXPECT_EQ((x / 255).dtype(), f32);
  g.set_dtype(f64);
  EXPECT_EQ((x / x).dtype(), f64);
}

TEST_F(Values, SumsOfIntegersAreWide) {
  Tensor x = batch("x", {200, 100, 250, 5}, u8), flag = batch("flag", {1, 0, 1, 1}, boolean);
  EXPECT_THAT(valuesOf(x.sum(1)), ElementsAre(300, 255));
  EXPECT_THAT(valuesOf(flag.sum()), ElementsAre(3));
  EXPECT_EQ(x.sum().dtype(), i64);
  EXPECT_EQ(batch("n", {1, 2}, i32).sum().dtype(), i64);
  EXPECT_EQ(flag.sum().dtype(), i64);
  EXPECT_EQ(batch("real", {1, 2}).sum().dtype(), f32);
}

TEST_F(Values, IntegersHaveSignsAndBounds) {
  Tensor x = batch("x", {-7, 3}, i32), bytes = batch("bytes", {0, 200}, u8);
  EXPECT_THAT(valuesOf(abs(x)), ElementsAre(7, 3));
  EXPECT_THAT(valuesOf(-x), ElementsAre(7, -3));
  EXPECT_THAT(valuesOf(clip(x, -2, 2)), ElementsAre(-2, 2));
  EXPECT_THAT(valuesOf(x.clamp(0)), ElementsAre(0, 3));
  EXPECT_THAT(valuesOf(x.clamp({}, 0)), ElementsAre(-7, 0));
  EXPECT_THAT(valuesOf(clamp(bytes, -1, 300)), ElementsAre(0, 200));
  EXPECT_THAT(valuesOf(abs(bytes)), ElementsAre(0, 200));
  EXPECT_EQ(clip(bytes, 3, 100).dtype(), u8);
}

TEST_F(Values, RemaindersHaveTheDivisorsSign) {
  Tensor a = batch("a", {7, -7, 7, -7}), b = batch("b", {4, 4, -4, -4});
  EXPECT_THAT(valuesOf(remainder(a, b)), ElementsAre(3, 1, -1, -3));
  EXPECT_THAT(valuesOf(remainder(a.to(i32), b.to(i32))), ElementsAre(3, 1, -1, -3));
  EXPECT_THAT(valuesOf(remainder(a.to(i64), 0)), ElementsAre(7, -7, 7, -7));
  EXPECT_THAT(valuesOf(remainder(-10, b)), ElementsAre(2, 2, -2, -2));
  EXPECT_THAT(valuesOf(remainder(batch("large", {1e10, -1e10, 5.5, -5.5}), batch("by", {3, 3, INFINITY, INFINITY}))),
              ElementsAre(1, 2, 5.5, INFINITY));
}

TEST_F(Values, OperatorsCompareAndCombine) {
  Tensor x = batch("x", {1, 2}), y = batch("y", {2, 2});
  EXPECT_THAT(valuesOf(x < y), ElementsAre(1, 0));
  EXPECT_THAT(valuesOf(x == y), ElementsAre(0, 1));
  EXPECT_THAT(valuesOf(x != 2), ElementsAre(1, 0));
  EXPECT_THAT(valuesOf(2 <= x), ElementsAre(0, 1));
  EXPECT_THAT(valuesOf(x > 0.5), ElementsAre(1, 1));
  EXPECT_THAT(valuesOf(x >= y), ElementsAre(0, 1));
  EXPECT_THAT(valuesOf(!(x < y)), ElementsAre(0, 1));
  EXPECT_THAT(valuesOf((x < y) & (x == 1)), ElementsAre(1, 0));
  EXPECT_THAT(valuesOf((x > y) | (y == 2)), ElementsAre(1, 1));
  EXPECT_THAT(valuesOf((x < y) ^ (y == 2)), ElementsAre(0, 1));
}

TEST_F(Values, OperatorsWorkOnBits) {
  Tensor x = batch("x", {12, -7}, i32), y = batch("y", {10, 3}, i32), flag = batch("flag", {1, 0}, boolean);
  EXPECT_THAT(valuesOf(x & y), ElementsAre(8, 1));
  EXPECT_THAT(valuesOf(x | 3), ElementsAre(15, -5));
  EXPECT_THAT(valuesOf(1 ^ x), ElementsAre(13, -8));
  EXPECT_THAT(valuesOf(~x), ElementsAre(-13, 6));
  EXPECT_THAT(valuesOf(x << 2), ElementsAre(48, -28));
  EXPECT_THAT(valuesOf(x >> y), ElementsAre(0, -1));
  EXPECT_THAT(valuesOf(1 << y), ElementsAre(1024, 8));
  EXPECT_THAT(valuesOf(x % 5), ElementsAre(2, 3));
  EXPECT_THAT(valuesOf(7.5 % batch("z", {2, -2})), ElementsAre(1.5, -0.5));
  EXPECT_THAT(valuesOf(flag | (x > 0)), ElementsAre(1, 0));
  EXPECT_THAT(valuesOf(~flag), ElementsAre(0, 1));
  EXPECT_THAT(valuesOf(flag ^ 1), ElementsAre(0, 1));
  EXPECT_EQ((x << 2).dtype(), i32);
}

// PyTorch's, by the names of its functions.
TEST_F(Values, BitwiseFunctionsWorkOnAllIntegers) {
  Tensor x = batch("x", {200, 7}, u8), y = batch("y", {0x1p40, -5}, i64);
  EXPECT_THAT(valuesOf(bitwise_and(x, 12)), ElementsAre(8, 4));
  EXPECT_THAT(valuesOf(bitwise_or(x, x)), ElementsAre(200, 7));
  EXPECT_THAT(valuesOf(bitwise_xor(x, 255)), ElementsAre(55, 248));
  EXPECT_THAT(valuesOf(bitwise_not(x)), ElementsAre(55, 248));
  EXPECT_THAT(valuesOf(bitwise_left_shift(x, 1)), ElementsAre(144, 14));
  EXPECT_THAT(valuesOf(bitwise_right_shift(x, 3)), ElementsAre(25, 0));
  EXPECT_THAT(valuesOf(bitwise_right_shift(y, 38)), ElementsAre(4, -1));
  EXPECT_THAT(valuesOf(bitwise_right_shift(y, 64)), ElementsAre(0, -1));
  EXPECT_THAT(valuesOf(bitwise_left_shift(y, -1)), ElementsAre(0, 0));
}

TEST_F(Values, AssignmentsMakeTheHandleTheResult) {
  Tensor x = batch("x", {1, 2}), before = x;
  x += 3;
  EXPECT_THAT(valuesOf(x), ElementsAre(4, 5));
  (x *= before) -= 1;
  EXPECT_THAT(valuesOf(x), ElementsAre(3, 9));
  x /= 2;
  EXPECT_THAT(valuesOf(x), ElementsAre(1.5, 4.5));
  EXPECT_THAT(valuesOf(before), ElementsAre(1, 2));
}

TEST_F(Values, ChoosesBetweenNumbers) {
  Tensor x = batch("x", {1, 2}, i32);
  Tensor chosen = where(x > 1, 0.5, -1.0);
  EXPECT_THAT(valuesOf(chosen), ElementsAre(-1, 0.5));
  EXPECT_EQ(chosen.dtype(), f32);
}

TEST_F(Values, ConstantsHaveTheBatch) {
  Tensor x = batch("x", {1, 2, 3, 4}, i32), full = g.full({Dim{"batch"}, 2}, 0.5);
  EXPECT_THAT(valuesOf(full), ElementsAre(0.5, 0.5, 0.5, 0.5));
  EXPECT_THAT(valuesOf(g.zeros(x.shape(), i32) + x), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(valuesOf(full_like(x, 7)), ElementsAre(7, 7, 7, 7));
  EXPECT_EQ(ones_like(x).dtype(), i32);
  EXPECT_EQ(zeros_like(x).shape(), x.shape());
}

TEST_F(Values, IdentityMatricesMayBeOblong) {
  EXPECT_THAT(valuesOf(g.eye(2)), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(valuesOf(g.eye(2, 3, i32)), ElementsAre(1, 0, 0, 0, 1, 0));
  EXPECT_THAT(valuesOf(g.eye(3, 1, boolean)), ElementsAre(1, 0, 0));
}

TEST_F(Values, DistancesAreEqual) {
  EXPECT_THAT(valuesOf(g.linspace(-1, 2, 4, f64)), ElementsAre(-1, 0, 1, 2));
  EXPECT_THAT(valuesOf(g.linspace(3, 1, 5)), ElementsAre(3, 2.5, 2, 1.5, 1));
  EXPECT_THAT(valuesOf(g.linspace(7, 9, 1)), ElementsAre(7));
  EXPECT_THAT(
      valuesOf(g.linspace(-0.3, 1.7, 7, f64)), // PyTorch's numbers
      near({-0.3, 0.033333333333333326, 0.36666666666666664, 0.7, 1.0333333333333332, 1.3666666666666667, 1.7}));
  EXPECT_EQ(valuesOf(g.linspace(0, 1, 50, f64)).back(), 1); // 49 steps give 1 - 2^-53
  EXPECT_EQ(g.linspace(0, 1, 3, bf16).dtype(), bf16);
}

// The numbers of jax.random for PRNGKey(0): its children, and a uniform draw.
TEST_F(Values, KeysAndNumbersAreThoseOfJax) {
  Tensor key = random::key(g, 0), keys = random::split(key);
  EXPECT_THAT(valuesOf(random::key(g, 0x123456789abcdef0)), ElementsAre(0x12345678, int32_t(0x9abcdef0)));
  EXPECT_THAT(valuesOf(keys), ElementsAre(4146024105 - 0x1p32, 967050713, 2718843009 - 0x1p32, 1272950319));
  EXPECT_THAT(valuesOf(random::bits(key, {2, 2})), ElementsAreArray(valuesOf(keys)));
  EXPECT_THAT(valuesOf(random::uniform(key, {2, 3})),
              Pointwise(DoubleNear(5e-8), {0.57450044, 0.09968603, 0.7419659, 0.8941783, 0.59656656, 0.45325184}));
  EXPECT_THAT(valuesOf(random::normal(key, {3}, 0, 1, f64)),
              near({0.18784401289378871, -1.283342292129158, 0.6494182018294375}));
  EXPECT_EQ(random::normal(keys.select(0, 1), {}, 3, 2, bf16).shape(), Shape());
}

TEST_F(Values, OperandsBroadcast) {
  Tensor x = batch("x", {1, 2, 3, 4, 5, 6}), row = state("row", {10, 20, 30});
  EXPECT_THAT(valuesOf(x + row), ElementsAre(11, 22, 33, 14, 25, 36));
  EXPECT_THAT(valuesOf(x - x.sum(1, true)), ElementsAre(-5, -4, -3, -11, -10, -9));
  EXPECT_THAT(valuesOf(row.unsqueeze(1) - row), ElementsAre(0, -10, -20, 10, 0, -10, 20, 10, 0));
}

TEST_F(Values, LinearMultipliesByTheTransposedWeight) {
  Tensor x = batch("x", {1, 0, 0, 1}), bias = state("bias", {10, 20, 30});
  Tensor weight = root.parameter("weight", {3, 2}, init::zeros()); // 0 1; 2 3; 4 5
  EXPECT_THAT(valuesOf(linear(x, weight, bias)), ElementsAre(10, 22, 34, 11, 23, 35));
}

TEST_F(Values, MatmulTakesVectors) {
  Tensor x = batch("x", {1, 2, 3, 4}), v = state("v", {1, 10});
  EXPECT_THAT(valuesOf(matmul(x, v)), ElementsAre(21, 43));
  EXPECT_THAT(valuesOf(matmul(v, v)), ElementsAre(101));
}

TEST_F(Values, MatmulBroadcastsLeadingDimensions) {
  Tensor x = input("x", {Dim{"batch"}, 1, 2}); // 0 1; 2 3
  Tensor w = root.parameter("w", {2, 2}, init::zeros());
  EXPECT_THAT(valuesOf(matmul(x, w)), ElementsAre(2, 3, 6, 11));
}

TEST_F(Values, MatmulBroadcastsBothWays) {
  Tensor x = input("x", {Dim{"batch"}, 1, 1, 2}); // 0 1; 2 3
  Tensor w = root.parameter("w", {3, 2, 1}, init::zeros());
  EXPECT_THAT(valuesOf(matmul(x, w)), ElementsAre(1, 3, 5, 3, 13, 23));
  EXPECT_THAT(valuesOf(matmul(x.reshape({Dim{"batch"}, 2}), w.select(2, 0).t())), ElementsAre(1, 3, 5, 3, 13, 23));
}

TEST_F(Values, EinsumFollowsItsEquation) {
  Tensor x = input("x", {Dim{"batch"}, 3}), v = state("v", {1, 10, 100}); // 0 1 2; 3 4 5
  Tensor w = root.parameter("w", {2, 3}, init::zeros());                  // 0 1 2; 3 4 5
  EXPECT_THAT(valuesOf(einsum("ni,oi->on", x, w)), ElementsAre(5, 14, 14, 50));
  EXPECT_THAT(valuesOf(einsum("ba, a", x, v)), ElementsAre(210, 543));
  EXPECT_THAT(valuesOf(einsum("Ni,oi->o", x, w)), ElementsAre(3 * 0 + 5 * 1 + 7 * 2, 3 * 3 + 5 * 4 + 7 * 5));
  EXPECT_THAT(valuesOf(einsum("ni,i->in", x, v)), ElementsAre(0, 3, 10, 40, 200, 500));
  EXPECT_THAT(valuesOf(einsum("ni,b", x, v)), // the omitted result is "bin"
              ElementsAre(0, 3, 1, 4, 2, 5, 0, 30, 10, 40, 20, 50, 0, 300, 100, 400, 200, 500));
}

TEST_F(Values, EinsumSumsLettersOfOneOperand) {
  Tensor x = input("x", {Dim{"batch"}, 3}); // 0 1 2; 3 4 5
  Tensor w = root.parameter("w", {2, 3}, init::zeros());
  EXPECT_THAT(valuesOf(einsum("ni,oi->n", x, w)), ElementsAre(5 + 14, 14 + 50));
  EXPECT_THAT(valuesOf(einsum("ni->in", x)), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(valuesOf(einsum("ni->i", x)), ElementsAre(3, 5, 7));
  EXPECT_THAT(valuesOf(einsum("ni->", x)), ElementsAre(15));
}

TEST_F(Values, EinsumBroadcastsSizesOfOne) {
  Tensor x = input("x", {Dim{"batch"}, 3}); // 0 1 2; 3 4 5
  Tensor one = root.parameter("one", {1, 3}, init::zeros());
  EXPECT_THAT(valuesOf(einsum("ni,ni->n", x, one)), ElementsAre(5, 14));
  EXPECT_THAT(valuesOf(einsum("ni,ni->i", x, one)), ElementsAre(0, 5, 14));
}

TEST_F(Values, ConvolutionAddsItsBiasByChannel) {
  Tensor x = input("x", {Dim{"batch"}, 1, 1, 2}), bias = state("bias", {100, 200});
  Tensor weight = root.parameter("weight", {2, 1, 1, 1}, init::zeros()); // 0, 1
  EXPECT_THAT(valuesOf(conv2d(x, weight, bias)), ElementsAre(100, 100, 200, 201, 100, 100, 202, 203));
}

TEST_F(Values, SlicesAndSelects) {
  Tensor x = batch("x", {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_THAT(valuesOf(x.slice(1, 1, 4, 2)), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(valuesOf(x.slice(1, -1)), ElementsAre(3, 7));
  EXPECT_THAT(valuesOf(x.select(1, -2)), ElementsAre(2, 6));
  EXPECT_THAT(valuesOf(x.slice(0, 0)), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7)); // the whole batch
}

// Dimensions before the batch may be added and removed, provided that rows remain rows.
TEST_F(Values, TheBatchNeedNotBeOutermost) {
  Tensor x = batch("x", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}).view({-1, 3, 2}), first = x.permute({1, 0, 2});
  EXPECT_THAT(valuesOf(first.select(0, 1)), ElementsAre(2, 3, 8, 9));
  EXPECT_EQ(first.select(0, 1).shape().str(), "[batch, 2]");
  EXPECT_THAT(valuesOf(first.slice(0, 2).squeeze(0)), ElementsAre(4, 5, 10, 11));
  Tensor split = first.reshape({1, 3, Dim{"batch"}, 2, 1});
  EXPECT_THAT(valuesOf(split), ElementsAre(0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11));
  EXPECT_EQ(x.permute({1, 2, 0}).view({6, -1}).shape().str(), "[6, batch]");
  EXPECT_THAT(valuesOf(x.permute({1, 2, 0}).view({6, -1})), ElementsAre(0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11));
}

TEST_F(Values, PadsAndJoins) {
  Tensor x = batch("x", {1, 2});
  EXPECT_THAT(valuesOf(pad(x, {1, 0}, 9)), ElementsAre(9, 1, 9, 2));
  EXPECT_THAT(valuesOf(cat({x, -x}, 1)), ElementsAre(1, -1, 2, -2));
  EXPECT_THAT(valuesOf(cat({x})), ElementsAre(1, 2)); // a single batch dimension remains
  Tensor wide = batch("wide", {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(valuesOf(pad(wide, {-1, 2, 0, 0}, 9)), ElementsAre(2, 3, 9, 9, 5, 6, 9, 9));
  EXPECT_THAT(valuesOf(pad(wide, {-1, -1})), ElementsAre(2, 5));
}

TEST_F(Values, DiagonalsAndMatrices) {
  Tensor x = g.arange(1, 3, 1, i32), matrix = g.arange(12, f32).reshape({3, 4}); // 0 to 3; 4 to 7; 8 to 11
  EXPECT_THAT(valuesOf(diag(x)), ElementsAre(1, 0, 0, 2));
  EXPECT_THAT(valuesOf(diag(x, 1)), ElementsAre(0, 1, 0, 0, 0, 2, 0, 0, 0));
  EXPECT_THAT(valuesOf(diag(x, -1)), ElementsAre(0, 0, 0, 1, 0, 0, 0, 2, 0));
  EXPECT_THAT(valuesOf(diag(matrix)), ElementsAre(0, 5, 10));
  EXPECT_THAT(valuesOf(diag(matrix, 1)), ElementsAre(1, 6, 11));
  EXPECT_THAT(valuesOf(diag(matrix, 3)), ElementsAre(3));
  EXPECT_THAT(valuesOf(diag(matrix, -2)), ElementsAre(8));
  EXPECT_THAT(valuesOf(diag(matrix.t(), 1)), ElementsAre(4, 9));
  EXPECT_THAT(valuesOf(trace(matrix)), ElementsAre(15));
  EXPECT_EQ(trace(diag(x)).dtype(), i64);
}

TEST_F(Values, TilesRepeatTheLastDimensions) {
  Tensor x = g.arange(2, i32);
  EXPECT_THAT(valuesOf(tile(x.unsqueeze(1), {2})), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(valuesOf(tile(x, {2, 2})), ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
}

TEST_F(Values, GridsHaveTheCoordinates) {
  Tensor x = g.arange(2, i32), y = g.arange(5, 8, 1, i32), z = g.full({}, 9, i32);
  std::vector<Tensor> rows = meshgrid({x, y, z}), columns = meshgrid({x, y, z}, Indexing::xy);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[2].shape().str(), "[2, 3, 1]");
  EXPECT_THAT(valuesOf(rows[0]), ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(valuesOf(rows[1]), ElementsAre(5, 6, 7, 5, 6, 7));
  EXPECT_THAT(valuesOf(rows[2]), ElementsAre(9, 9, 9, 9, 9, 9));
  EXPECT_EQ(columns[2].shape().str(), "[3, 2, 1]");
  EXPECT_THAT(valuesOf(columns[0]), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(valuesOf(columns[1]), ElementsAre(5, 5, 6, 6, 7, 7));
  EXPECT_THAT(valuesOf(meshgrid({x}, Indexing::xy)[0]), ElementsAre(0, 1));
}

// PyTorch's rules: the tolerance is relative to b, infinities are close to themselves alone.
TEST_F(Values, CloseNumbersDifferByLittle) {
  Tensor a = batch("a", {1, 2, INFINITY, NAN, 0, -INFINITY}), b = batch("b", {1.25, 2.75, INFINITY, NAN, INFINITY, 1});
  EXPECT_THAT(valuesOf(isclose(a, b, 0.2, 0)), ElementsAre(1, 0, 1, 0, 0, 0));
  EXPECT_THAT(valuesOf(isclose(b, a, 0.2, 0)), ElementsAre(0, 0, 1, 0, 0, 0));
  EXPECT_THAT(valuesOf(isclose(a, b, 0.2, 0.25, true)), ElementsAre(1, 1, 1, 1, 0, 0));
  EXPECT_THAT(valuesOf(isclose(a, b, 0, 0)), ElementsAre(0, 0, 1, 0, 0, 0));
  EXPECT_THAT(valuesOf(allclose(a, a)), ElementsAre(0));
  EXPECT_THAT(valuesOf(allclose(a, a, 0, 0, true)), ElementsAre(1));
  Tensor whole = batch("whole", {100, -100}, i32);
  EXPECT_THAT(valuesOf(isclose(whole, whole + 1, 0.01, 0)), ElementsAre(1, 0));
  EXPECT_THAT(valuesOf(isclose(whole, whole, 0, 0)), ElementsAre(1, 1));
  EXPECT_EQ(allclose(whole, whole).shape(), Shape());
}

TEST_F(Values, ReorderedDimensions) {
  Tensor x = input("x", {Dim{"batch"}, 2, 2});
  EXPECT_THAT(valuesOf(x.transpose(1, 2)), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_THAT(valuesOf(x.permute({1, 0, 2})), ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
}

TEST_F(Values, CrossEntropyIsNllOfLogSoftmax) {
  Tensor logits = batch("logits", {1, 2, 3, 0.5, -1, 2}), label = labels({2, 0});
  std::vector<double> entropy = valuesOf(cross_entropy(logits, label, Reduction::none));
  EXPECT_THAT(entropy, near({0.40760596444438013, 1.7413112966571571}));
  EXPECT_THAT(valuesOf(nll_loss(log_softmax(logits, 1), label, Reduction::none)), near(entropy));
  EXPECT_THAT(valuesOf(cross_entropy(logits, label)), near({(entropy[0] + entropy[1]) / 2}));
  EXPECT_THAT(valuesOf(nll_loss(log_softmax(logits, 1), label, Reduction::sum)), near({entropy[0] + entropy[1]}));
}

TEST_F(Values, NllIgnoresWhatIsNotTheLabels) {
  Tensor x = batch("x", {-1, -INFINITY, -2, -INFINITY}), label = labels({0, 0});
  EXPECT_THAT(valuesOf(nll_loss(x, label)), ElementsAre(1.5));
}

TEST_F(Values, AccuracyCountsTheRightRows) {
  Tensor logits = batch("logits", {1, 2, 3, 0.5, -1, 2}), label = labels({2, 0});
  EXPECT_THAT(valuesOf(accuracy(logits, label)), ElementsAre(0.5));
}

TEST_F(Values, IgnoredLabelsCountInNoLoss) {
  Tensor logits = batch("logits", {1, 2, 3, 0.5, -1, 2}), label = labels({2, -100});
  CrossEntropyOptions options{.ignore_index = -100, .reduction = Reduction::none};
  EXPECT_THAT(valuesOf(cross_entropy(logits, label, options)), near({0.40760596444438013, 0}));
  EXPECT_THAT(valuesOf(cross_entropy(logits, label, {.ignore_index = -100})), near({0.40760596444438013}));
  EXPECT_THAT(valuesOf(nll_loss(logits, label, {.ignore_index = -100})), near({-3}));
  EXPECT_THAT(valuesOf(nll_loss(logits, label, {.ignore_index = -100, .reduction = Reduction::sum})), near({-3}));
}

TEST_F(Values, AMeanOfIgnoredLabelsIsNoNumber) {
  Tensor logits = batch("logits", {1, 2, 3, 0.5, -1, 2}), label = labels({1, 1});
  EXPECT_TRUE(std::isnan(valuesOf(cross_entropy(logits, label, {.ignore_index = 1})).at(0)));
  EXPECT_TRUE(std::isnan(valuesOf(nll_loss(logits, label, {.ignore_index = 1})).at(0)));
  CrossEntropyOptions sum{.ignore_index = 1, .reduction = Reduction::sum};
  EXPECT_THAT(valuesOf(cross_entropy(logits, label, sum)), ElementsAre(0));
}

TEST_F(Values, WeightsDivideAMean) {
  Tensor logits = batch("logits", {1, 2, 3, 0.5, -1, 2}), label = labels({2, 0});
  Tensor weight = state("weight", {2, 100, 0.5});
  double first = 0.40760596444438013, second = 1.7413112966571571;
  EXPECT_THAT(valuesOf(cross_entropy(logits, label, {.weight = weight})), near({(first / 2 + second * 2) / 2.5}));
  EXPECT_THAT(valuesOf(nll_loss(logits, label, {.weight = weight})), near({-(3 * 0.5 + 0.5 * 2) / 2.5}));
  NllLossOptions none{.weight = weight, .reduction = Reduction::none};
  EXPECT_THAT(valuesOf(nll_loss(logits, label, none)), near({-1.5, -1}));
}

TEST_F(Values, SmoothedLabelsAreShares) {
  Tensor logits = batch("logits", {1, 2, 3, 0.5, -1, 2}), label = labels({2, 0});
  Tensor shares = batch("shares", {0.1, 0.1, 0.8, 0.8, 0.1, 0.1});
  CrossEntropyOptions smoothed{.label_smoothing = 0.3}, none{.reduction = Reduction::none};
  EXPECT_THAT(valuesOf(cross_entropy(logits, label, smoothed)), near(valuesOf(cross_entropy(logits, shares))));
  smoothed.reduction = Reduction::none;
  std::vector<double> logTotals = {3.4076059644443801, 2.2413112966571571};
  EXPECT_THAT(valuesOf(cross_entropy(logits, label, smoothed)),
              near({logTotals[0] - 2.7, logTotals[1] - (0.4 - 0.1 + 0.2)}));
  EXPECT_THAT(valuesOf(cross_entropy(logits, shares, none)), near(valuesOf(cross_entropy(logits, label, smoothed))));
}

TEST_F(Values, ClassesLieInDimensionOne) {
  given["logits"] = {1, 0.5, 2, -1, 3, 2, 1, 0.5, 2, -1, 3, 2};
  given["label"] = {2, 0, 0, 2};
  Tensor logits = input("logits", {Dim{"batch"}, 3, 2}), label = input("label", {Dim{"batch"}, 2}, i32);
  std::vector<double> entropies = valuesOf(cross_entropy(logits, label, Reduction::none));
  EXPECT_THAT(entropies, near({0.40760596444438013, 1.7413112966571571, 2.4076059644443801, 0.2413112966571571}));
  EXPECT_THAT(valuesOf(nll_loss(log_softmax(logits, 1), label, Reduction::none)), near(entropies));
  EXPECT_THAT(valuesOf(accuracy(logits, label)), ElementsAre(0.5));
  EXPECT_THAT(valuesOf(top_k_accuracy(logits, label, 2)), ElementsAre(0.75));
}

TEST_F(Values, TheBestAreThoseThatFewReach) {
  Tensor logits = batch("logits", {1, 3, 3, 2, NAN, 5, 4, 1}), label = labels({2, 0});
  auto best = [&](int64_t k) { return valuesOf(top_k_accuracy(logits, label, k)).at(0); };
  EXPECT_EQ(best(1), 0) << "a tie counts against the label";
  EXPECT_EQ(best(2), 0.5);
  EXPECT_EQ(best(3), 0.5) << "NaN is among the largest of none";
  EXPECT_EQ(best(4), 1);
  EXPECT_THAT(valuesOf(top_k_accuracy(logits, label, 2, 0)), ElementsAre(1));
  EXPECT_THAT(valuesOf(accuracy(logits, label, 0)), ElementsAre(0));
}

TEST_F(Values, BinaryCrossEntropyIsStable) {
  Tensor x = batch("x", {0, 800, -800, 2}), target = batch("target", {1, 0, 1, 0.25});
  BinaryCrossEntropyOptions options{.reduction = Reduction::none};
  double soft = std::log1p(std::exp(-2.0));
  EXPECT_THAT(valuesOf(binary_cross_entropy_with_logits(x, target, options)),
              near({std::log(2), 800, 800, 1.5 + soft}));
  options.pos_weight = state("pos_weight", {3, 5});
  EXPECT_THAT(valuesOf(binary_cross_entropy_with_logits(x, target, options)),
              near({3 * std::log(2), 800, 2400, 1.5 + 2 * soft}));
  options.weight = state("weight", {2});
  options.reduction = Reduction::mean;
  EXPECT_THAT(valuesOf(binary_cross_entropy_with_logits(x, target, options)),
              near({(3 * std::log(2) + 800 + 2400 + 1.5 + 2 * soft) / 2}));
}

TEST_F(Values, DifferencesFarFromZeroCountLinearly) {
  Tensor x = batch("x", {1, 2, 3, 4}), y = batch("y", {1, 2.5, 3, 0});
  EXPECT_THAT(valuesOf(l1_loss(x, y)), ElementsAre(4.5 / 4));
  EXPECT_THAT(valuesOf(huber_loss(x, y, Reduction::none)), ElementsAre(0, 0.125, 0, 3.5));
  EXPECT_THAT(valuesOf(huber_loss(x, y, Reduction::none, 0.5)), ElementsAre(0, 0.125, 0, 0.5 * 3.75));
  EXPECT_THAT(valuesOf(smooth_l1_loss(x, y, Reduction::none, 2)), ElementsAre(0, 0.0625, 0, 3));
  EXPECT_THAT(valuesOf(smooth_l1_loss(x, y, Reduction::sum, 0)), ElementsAre(4.5));
}

TEST_F(Values, MseIsTheMeanSquare) {
  Tensor x = batch("x", {1, 2, 3, 4}), y = batch("y", {1, 4, 3, 0});
  EXPECT_THAT(valuesOf(mse_loss(x, y)), ElementsAre(5));
  EXPECT_THAT(valuesOf(mse_loss(x, y, Reduction::sum)), ElementsAre(20));
}

TEST_F(Values, BatchNormUsesTheRunningStatistics) {
  Tensor x = batch("x", {1, 2, 3, 4}), mean = state("mean", {1, 2}), var = state("var", {3, 8});
  Tensor y = batch_norm(x, mean, var, {}, {}, {.eps = 1.0});
  EXPECT_THAT(valuesOf(y), near({0, 0, 1, 2.0 / 3}));
}

// PyTorch's numbers.
TEST_F(Values, LayersAreNormalised) {
  Tensor x = batch("x", {1, 2, 3, 4, 8, 0}), weight = state("weight", {1, 2, 3}), bias = state("bias", {10, 20, 30});
  EXPECT_THAT(valuesOf(layer_norm(x, 3, weight, bias, 1.0)),
              near({9.225403330758517, 20.0, 32.32379000772445, 10.0, 22.34216017507648, 26.48675973738528}));
  EXPECT_THAT(valuesOf(layer_norm(x, {3})),
              near({-1.2247356859083902, 0.0, 1.2247356859083902, 0.0, 1.2247442972928344, -1.2247442972928344}));
  EXPECT_THAT(valuesOf(layer_norm(x, 3, weight, {}, 1.0)),
              near({-0.7745966692414834, 0.0, 2.32379000772445, 0.0, 2.34216017507648, -3.51324026261472}));
  EXPECT_THAT(valuesOf(layer_norm(x, 3, {}, bias, 1.0)),
              near({10 - 0.7745966692414834, 20.0, 30 + 2.32379000772445 / 3, 10.0, 20 + 2.34216017507648 / 2,
                    30 - 2.34216017507648 / 2}));
  EXPECT_THAT(valuesOf(layer_norm(x.reshape({-1, 1, 3}), {1, 3}, weight.unsqueeze(0), bias.unsqueeze(0), 1.0)),
              near(valuesOf(layer_norm(x, 3, weight, bias, 1.0))));
}

TEST_F(Values, TheRootOfTheMeanSquareNormalises) {
  Tensor x = batch("x", {1, 2, 3, 4, 8, 0}), weight = state("weight", {1, 2, 3});
  EXPECT_THAT(valuesOf(rms_norm(x, 3, weight, 1.0)), near({0.42008402520840293, 1.6803361008336117, 3.780756226875626,
                                                           0.7604691006293735, 3.041876402517494, 0.0}));
  // the default eps is that of the dtype: 2^-23, 2^-52, 2^-10, 2^-7.
  Tensor small = batch("small", {0.0001, -0.0001});
  EXPECT_THAT(valuesOf(rms_norm(small, 1)),
              near({0.0001 / std::sqrt(1e-8 + 0x1p-23), -0.0001 / std::sqrt(1e-8 + 0x1p-23)}));
  for (auto [dtype, eps] : {std::pair(f64, 0x1p-52), {f16, 0x1p-10}, {bf16, 0x1p-7}})
    EXPECT_THAT(valuesOf(rms_norm(batch(to_string(dtype), {0.0001, 1}, dtype), 1)),
                near({0.0001 / std::sqrt(1e-8 + eps), 1 / std::sqrt(1 + eps)}));
}

TEST_F(Values, GroupsOfChannelsAreNormalised) {
  Tensor x = batch("x", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}).reshape({-1, 4, 1, 2});
  Tensor weight = state("weight", {1, 2, 3, 4}), bias = state("bias", {10, 20, 30, 40});
  std::vector<double> expected{9, 29.0 / 3, 62.0 / 3, 22, 27, 29, 124.0 / 3, 44};
  expected.insert(expected.end(), expected.begin(), expected.begin() + 8);
  EXPECT_THAT(valuesOf(group_norm(x, 2, weight, bias, 1.0)), near(expected));
  EXPECT_THAT(valuesOf(group_norm(x, 1, {}, {}, 1.0)), near(valuesOf(layer_norm(x, {4, 1, 2}, {}, {}, 1.0))));
  EXPECT_THAT(valuesOf(group_norm(x.reshape({-1, 8}), 4, {}, {}, 1.0)), near(valuesOf(group_norm(x, 4, {}, {}, 1.0))));
}

TEST_F(Values, VariancesHaveACorrection) {
  Tensor x = batch("x", {1, 2, 3, 4, 8, 0});
  EXPECT_THAT(valuesOf(x.var(1)), near({1, 16}));
  EXPECT_THAT(valuesOf(var(x, 1, 0, true)), near({2.0 / 3, 32.0 / 3}));
  EXPECT_THAT(valuesOf(x.std(1)), near({1, 4}));
  EXPECT_THAT(valuesOf(x.reshape({-1, 3, 1}).var({1, 2}, 2)), near({2, 32}));
}

TEST_F(Values, LogsumexpNeitherOverflowsNorLosesInfinities) {
  Tensor x = batch("x", {1, 2, 3, 1000, 1001, -INFINITY});
  EXPECT_THAT(valuesOf(x.logsumexp(1)), near({3.4076059644443806, 1001.3132616875182}));
  EXPECT_EQ(logsumexp(x, {0, 1}, true).shape().str(), "[1, 1]");
  Tensor infinite = batch("infinite", {-INFINITY, -INFINITY, INFINITY, 1});
  EXPECT_THAT(valuesOf(infinite.logsumexp(1)), ElementsAre(-INFINITY, INFINITY));
}

TEST_F(Values, ProductsAndTruth) {
  Tensor x = batch("x", {1, 2, 3, 4, 0, -2}), n = batch("n", {200, 100, 3, 250}, u8);
  EXPECT_THAT(valuesOf(x.prod(1)), ElementsAre(6, 0));
  EXPECT_THAT(valuesOf(n.prod(1)), ElementsAre(20000, 750));
  EXPECT_EQ(n.prod(1).dtype(), i64);
  EXPECT_THAT(valuesOf(x.all(1)), ElementsAre(1, 0));
  EXPECT_THAT(valuesOf((x < 0).any(1, true)), ElementsAre(0, 1));
  EXPECT_THAT(valuesOf(x.any()), ElementsAre(1));
  EXPECT_EQ(x.any().dtype(), boolean);
}

TEST_F(Values, CountsAndTriangles) {
  EXPECT_THAT(valuesOf(g.arange(4)), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(valuesOf(g.arange(5, 0, -2, i32)), ElementsAre(5, 3, 1));
  EXPECT_THAT(valuesOf(g.arange(0.5, 1.5, 0.25, f64)), ElementsAre(0.5, 0.75, 1, 1.25));
  EXPECT_EQ(g.arange(4).dtype(), i64);
  Tensor x = batch("x", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}).reshape({-1, 2, 3});
  EXPECT_THAT(valuesOf(x.tril()), ElementsAre(1, 0, 0, 4, 5, 0, 7, 0, 0, 10, 11, 0));
  EXPECT_THAT(valuesOf(tril(x, 1)), ElementsAre(1, 2, 0, 4, 5, 6, 7, 8, 0, 10, 11, 12));
  EXPECT_THAT(valuesOf(x.triu()), ElementsAre(1, 2, 3, 0, 5, 6, 7, 8, 9, 0, 11, 12));
  EXPECT_THAT(valuesOf(triu(x, -5)), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
  EXPECT_THAT(valuesOf(triu(x > 0, 2)), ElementsAre(0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0));
}

TEST_F(Values, TakesApartAndStacks) {
  Tensor x = batch("x", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_THAT(valuesOf(x.split(2, 1).at(2)), ElementsAre(4, 9));
  EXPECT_THAT(valuesOf(split(x, {1, 4}, -1).at(1)), ElementsAre(1, 2, 3, 4, 6, 7, 8, 9));
  EXPECT_EQ(x.chunk(4, 1).size(), 3u); // sizes 2, 2 and 1
  EXPECT_THAT(valuesOf(chunk(x, 2, 1).at(0)), ElementsAre(0, 1, 2, 5, 6, 7));
  Tensor a = batch("a", {1, 2}), b = batch("b", {3, 4});
  EXPECT_THAT(valuesOf(stack({a, b}, 1)), ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(valuesOf(stack({a, b})), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(stack({a, b}).shape().str(), "[2, batch, 1]");
  EXPECT_EQ(stack({a}, -1).shape().str(), "[batch, 1, 1]");
}

TEST_F(Values, LinesAreConvolved) {
  Tensor x = batch("x", {0, 1, 2, 3, 4, 5}).reshape({-1, 1, 3}), bias = state("bias", {100});
  Tensor weight = state("weight", {1, 10}).reshape({1, 1, 2});
  EXPECT_THAT(valuesOf(conv1d(x, weight, bias)), ElementsAre(110, 121, 143, 154));
  EXPECT_THAT(valuesOf(conv1d(x, weight, {}, {.stride = 2, .padding = 1, .dilation = 2})), ElementsAre(10, 1, 40, 4));
}

// PyTorch's numbers.
TEST_F(Values, ConvolutionsAreTransposed) {
  Tensor x = input("x", {Dim{"batch"}, 1, 2, 2}), bias = state("bias", {100});
  Tensor weight = root.parameter("weight", {1, 1, 2, 2}, init::zeros()); // 0 1; 2 3
  EXPECT_THAT(valuesOf(conv_transpose2d(x, weight)),
              ElementsAre(0, 0, 1, 0, 4, 6, 4, 12, 9, 0, 4, 5, 8, 28, 22, 12, 32, 21));
  EXPECT_THAT(valuesOf(conv_transpose2d(x, weight, bias, {.stride = 2, .padding = 1, .output_padding = 1})),
              ElementsAre(100, 102, 103, 102, 100, 103, 106, 106, 109, 112, 110, 115, 106, 100, 107, 118, 114, 121));
}

TEST_F(Values, ImagesShrinkAndGrow) {
  Tensor x = input("x", {Dim{"batch"}, 1, 2, 2});
  EXPECT_THAT(valuesOf(adaptive_avg_pool2d(x, 1)), ElementsAre(1.5, 5.5));
  EXPECT_THAT(valuesOf(adaptive_avg_pool2d(x, {1, 2})), ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(valuesOf(interpolate(x, {1, 2})), ElementsAre(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7));
  EXPECT_THAT(valuesOf(interpolate(x, {2, 1})), ElementsAre(0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7));
}

TEST_F(Values, ActivationsWithNumbers) {
  Tensor x = batch("x", {-2, 8});
  EXPECT_THAT(valuesOf(relu6(x)), ElementsAre(0, 6));
  EXPECT_THAT(valuesOf(leaky_relu(x, 0.5)), ElementsAre(-1, 8));
  EXPECT_THAT(valuesOf(clip(x, -1, 1)), ElementsAre(-1, 1));
  EXPECT_THAT(valuesOf(elu(x, 2)), near({-1.7293294335267746, 8}));
}

// Results of PyTorch 2.15: with ceil_mode the only window may exceed the end, and elements beyond the end do not count.
TEST_F(Values, PoolsWhoseWindowExceedsTheInput) {
  Tensor x = input("x", {Dim{"batch"}, 1, 2, 2});
  EXPECT_THAT(valuesOf(avg_pool2d(x, 3, {.stride = 2, .ceil_mode = true})), ElementsAre(1.5, 5.5));
  EXPECT_THAT(valuesOf(max_pool2d(x, 4, {.stride = 3, .ceil_mode = true})), ElementsAre(3, 7));
  Tensor padded = avg_pool2d(x, 5, {.stride = 2, .padding = 1, .ceil_mode = true});
  EXPECT_THAT(valuesOf(padded), ElementsAre(6.0 / 16, 22.0 / 16));
}

// Results of ONNX Runtime 1.32 with pads = [top, left, bottom, right].
TEST_F(Values, WindowsPaddedOnOneSide) {
  Tensor x = root.parameter("x", {1, 1, 3, 4}, init::zeros()), w = state("w", {1, 2, 3, 4}).reshape({1, 1, 2, 2});
  EXPECT_THAT(valuesOf(conv2d(x, w, {}, {.stride = {2, 1}, .padding = {0, 1}, .padding_end = Size2(2, 0)})),
              ElementsAre(16, 34, 44, 54, 16, 26, 29, 32));
  EXPECT_THAT(valuesOf(max_pool2d(-x, 3, {.stride = {1, 2}, .padding = {0, 2}, .padding_end = Size2(2, 0)})),
              ElementsAre(0, 0, -4, -4, -8, -8));
  EXPECT_THAT(
      valuesOf(max_pool2d(x, 3, {.stride = 2, .padding = {0, 2}, .ceil_mode = true, .padding_end = Size2(2, 0)})),
      ElementsAre(8, 10, 11, 8, 10, 11));
  AvgPoolOptions mean{.stride = {1, 2}, .padding = {0, 2}, .count_include_pad = false, .padding_end = Size2(2, 0)};
  EXPECT_THAT(valuesOf(avg_pool2d(x, 3, mean)), ElementsAre(4, 5, 6, 7, 8, 9));
  mean.count_include_pad = true;
  EXPECT_THAT(valuesOf(avg_pool2d(x, 3, mean)), near({12.0 / 9, 5, 12.0 / 9, 42.0 / 9, 8.0 / 9, 3}));
  mean = {.stride = 2, .padding = {0, 1}, .ceil_mode = true, .padding_end = Size2(2, 0)};
  EXPECT_THAT(valuesOf(avg_pool2d(x, 3, mean)), near({3, 6, 17.0 / 9, 30.0 / 9}));
  Tensor line = state("line", {1, 2, 3}).reshape({1, 1, 3}), k = state("k", {1, 10}).reshape({1, 1, 2});
  EXPECT_THAT(valuesOf(conv1d(line, k, {}, {.padding_end = 2})), ElementsAre(21, 32, 3, 0));
  EXPECT_THAT(valuesOf(conv1d(line, k, {}, {.padding = 2, .padding_end = 0})), ElementsAre(0, 10, 21, 32));
}

// Results of ONNX Runtime 1.32; where it refuses output_padding, of PyTorch's result with zeros appended, then cropped.
TEST_F(Values, TransposedConvolutionsCroppedOnOneSide) {
  Tensor x = root.parameter("x", {1, 1, 2, 2}, init::zeros()), w = state("w", {1, 2, 3, 4}).reshape({1, 1, 2, 2});
  auto values = [&](ConvTransposeOptions options) { return valuesOf(conv_transpose2d(x, w, {}, options)); };
  EXPECT_THAT(values({.stride = 2, .padding = {0, 1}, .padding_end = Size2(1, 0)}),
              ElementsAre(0, 1, 2, 0, 3, 4, 4, 3, 6));
  EXPECT_THAT(values({.stride = {2, 1}, .output_padding = {1, 0}, .padding_end = Size2(0, 1)}),
              ElementsAre(0, 1, 0, 3, 2, 7, 6, 17, 0, 0));
  EXPECT_THAT(values({.stride = 2, .output_padding = {3, 0}, .padding_end = Size2(0, 1)}),
              ElementsAre(0, 0, 1, 0, 0, 3, 2, 4, 3, 6, 8, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(values({.stride = 2, .output_padding = {3, 1}, .padding_end = Size2(2, 1)}),
              ElementsAre(0, 0, 1, 2, 0, 0, 3, 4, 2, 4, 3, 6, 6, 8, 9, 12, 0, 0, 0, 0));
  std::vector<double> dilated{0, 1, 2, 2, 7, 6, 0, 0, 0, 0, 0, 0, 0, 3, 4, 6, 17, 12, 0, 0, 0, 0, 0, 0};
  EXPECT_THAT(values({.output_padding = {3, 0}, .dilation = {4, 1}, .padding_end = Size2(1, 0)}),
              ElementsAreArray(dilated));
  dilated.insert(dilated.end(), 3, 0.0); // without the crop
  EXPECT_THAT(values({.output_padding = {3, 0}, .dilation = {4, 1}}), ElementsAreArray(dilated));
  EXPECT_THAT(
      valuesOf(conv_transpose2d(state("row", {0, 1}).reshape({1, 1, 1, 2}), w, state("bias", {100}),
                                {.stride = 2, .output_padding = {3, 0}, .padding_end = Size2(0, 0)})),
      ElementsAre(100, 100, 101, 102, 100, 100, 103, 104, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100));
}
