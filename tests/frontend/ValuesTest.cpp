// What functions that build several ops mean: their values, by the ops' reference functions.
#include "frontend/GraphImpl.h"
#include <sluice/sluice.h>

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <numeric>

using namespace sluice;
using testing::DoubleNear;
using testing::ElementsAre;
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

/// Rounding of a few operations in double precision.
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
}

TEST_F(Values, PadsAndJoins) {
  Tensor x = batch("x", {1, 2});
  EXPECT_THAT(valuesOf(pad(x, {1, 0}, 9)), ElementsAre(9, 1, 9, 2));
  EXPECT_THAT(valuesOf(cat({x, -x}, 1)), ElementsAre(1, -1, 2, -2));
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

TEST_F(Values, ActivationsWithNumbers) {
  Tensor x = batch("x", {-2, 8});
  EXPECT_THAT(valuesOf(relu6(x)), ElementsAre(0, 6));
  EXPECT_THAT(valuesOf(leaky_relu(x, 0.5)), ElementsAre(-1, 8));
  EXPECT_THAT(valuesOf(clip(x, -1, 1)), ElementsAre(-1, 1));
  EXPECT_THAT(valuesOf(elu(x, 2)), near({-1.7293294335267746, 8}));
}
