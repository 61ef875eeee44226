// Compares reference functions with numbers computed by hand or by NumPy and JAX (x64), never by themselves.
#include "ir/ops/Inference.h"
#include "ir/ops/layer/AttentionReference.h"
#include "op_instance.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace sluice::ir;
using namespace sluice::test;

namespace {

struct Case {
  std::string op;
  std::vector<std::vector<double>> operands;
  std::vector<std::vector<double>> results;
};

} // namespace

static void expectResults(const Case &test, double tolerance) {
  OpInstance instance(test.op);
  ASSERT_TRUE(instance.op) << test.op << "\n" << instance.error;
  std::vector<HostTensor> operands;
  for (auto [value, data] : llvm::zip_equal(instance.op->getOperands(), test.operands))
    operands.push_back(makeTensor(value, data));
  std::vector<HostTensor> results = instance.run(operands);
  ASSERT_EQ(results.size(), test.results.size()) << test.op;
  for (auto [number, result] : llvm::enumerate(results)) {
    const std::vector<double> &expected = test.results[number];
    ASSERT_EQ(result.data.size(), expected.size()) << test.op;
    EXPECT_EQ(result.shape, runtimeShape(instance.op->getResult(number).getType(), kRows));
    for (size_t i = 0; i < expected.size(); ++i) {
      bool same = result.data[i] == expected[i] || (std::isnan(result.data[i]) && std::isnan(expected[i]));
      EXPECT_TRUE(same || std::fabs(result.data[i] - expected[i]) <= tolerance)
          << test.op << "\n[" << i << "]: " << result.data[i] << " != " << expected[i];
    }
  }
}

static std::vector<double>
count(size_t size, const std::function<double(int64_t)> &element = [](int64_t i) { return double(i); }) {
  std::vector<double> data;
  for (size_t i = 1; i <= size; ++i)
    data.push_back(element(int64_t(i)));
  return data;
}

static std::string unary(const std::string &name, size_t size, const std::string &attributes = "") {
  std::string type = "tensor<" + std::to_string(size) + "xf64>";
  return "\"sluice." + name + "\"(%0) " + attributes + " : (" + type + ") -> " + type;
}

// Tests that bytes are signed, and that each block has its own scale.
TEST(Evaluate, DequantizeBlocks) {
  auto byte = [](int64_t i) { return i <= 32 ? double(i) : 256.0 - double(i); };
  auto value = [](int64_t i) { return i <= 32 ? 0.5 * double(i) : -0.25 * double(i); };
  expectResults({"\"sluice.dequantize_blocks\"(%0, %1) {axis = 1 : i64} : (tensor<1x64xui8>, tensor<1x2xf16>) -> "
                 "tensor<1x64xf32>",
                 {count(64, byte), {0.5, 0.25}},
                 {count(64, value)}},
                0);
}

TEST(Evaluate, Elementwise) {
  const double nan = NAN, inf = INFINITY;
  const Case cases[] = {
      {unary("gelu", 2), {{1, -0.5}}, {{0.8413447460685429, -0.15426876936299344}}},
      {unary("gelu", 2, "{tanh}"), {{1, -0.5}}, {{0.8411919906082768, -0.15428599017485609}}},
      {unary("softplus", 3), {{1, -800, 800}}, {{1.3132616875182228, 0, 800}}},
      {unary("silu", 1), {{1}}, {{0.7310585786300049}}},
      {unary("sigmoid", 2), {{0, -1000}}, {{0.5, 0}}},
      {unary("hardswish", 4), {{-4, 1, 4, nan}}, {{0, 2.0 / 3, 4, nan}}},
      {unary("hardsigmoid", 3), {{-4, 1, 4}}, {{0, 2.0 / 3, 1}}},
      {unary("elu", 2, "{alpha = 2.0 : f64}"), {{-1, 3}}, {{-1.2642411176571153, 3}}},
      {unary("leaky_relu", 2), {{-1, 3}}, {{-0.01, 3}}},
      {unary("relu", 3), {{-1, 3, nan}}, {{0, 3, nan}}},
      {unary("clip", 4, "{min = -1.0 : f64, max = 2.0 : f64}"), {{-3, 0.5, 7, nan}}, {{-1, 0.5, 2, nan}}},
      {unary("round", 5), {{0.5, 1.5, -0.5, -1.5, 2.4}}, {{0, 2, 0, -2, 2}}},
      {unary("sign", 4), {{-3, 0, 2, nan}}, {{-1, 0, 1, 0}}},
      {unary("erf", 1), {{0.5}}, {{0.5204998778130465}}},
      {unary("asin", 1), {{0.5}}, {{0.5235987755982989}}},
      {unary("acos", 1), {{0.5}}, {{1.0471975511965979}}},
      {unary("atan", 1), {{0.5}}, {{0.4636476090008061}}},
      {unary("sinh", 1), {{0.5}}, {{0.5210953054937474}}},
      {unary("cosh", 1), {{0.5}}, {{1.1276259652063807}}},
      {unary("asinh", 1), {{0.5}}, {{0.48121182505960347}}},
      {unary("acosh", 1), {{1.5}}, {{0.9624236501192069}}},
      {unary("atanh", 1), {{0.5}}, {{0.5493061443340549}}},
      {"\"sluice.isnan\"(%0) : (tensor<3xf64>) -> tensor<3xi1>", {{1, nan, inf}}, {{0, 1, 0}}},
      {"\"sluice.isinf\"(%0) : (tensor<3xf64>) -> tensor<3xi1>", {{1, nan, -inf}}, {{0, 0, 1}}},
      {"\"sluice.max\"(%0, %1) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>",
       {{1, nan, 5}, {2, 0, nan}},
       {{2, nan, nan}}},
      {"\"sluice.min\"(%0, %1) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>",
       {{1, nan, 5}, {2, 0, nan}},
       {{1, nan, nan}}},
      {"\"sluice.div\"(%0, %1) : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi32>",
       {{7, -7, 5, -2147483648.0, 0}, {2, 2, 0, -1, 0}},
       {{3, -3, 0, -2147483648.0, 0}}},
      {"\"sluice.neg\"(%0) : (tensor<3xi32>) -> tensor<3xi32>", {{5, -5, -2147483648.0}}, {{-5, 5, -2147483648.0}}},
      {"\"sluice.neg\"(%0) : (tensor<2xui8>) -> tensor<2xui8>", {{0, 128}}, {{0, 128}}},
      {"\"sluice.abs\"(%0) : (tensor<2xi64>) -> tensor<2xi64>", {{-9, 4}}, {{9, 4}}},
      {"\"sluice.abs\"(%0) : (tensor<2xui8>) -> tensor<2xui8>", {{200, 4}}, {{200, 4}}},
      {"\"sluice.clip\"(%0) {min = -1.0 : f64, max = 2.0 : f64} : (tensor<3xi32>) -> tensor<3xi32>",
       {{-3, 1, 7}},
       {{-1, 1, 2}}},
      {unary("clip", 3, "{min = 0.5 : f64}"), {{-3, inf, nan}}, {{0.5, inf, nan}}},
      {unary("clip", 2, "{max = 0.5 : f64}"), {{-inf, 3}}, {{-inf, 0.5}}},
      {unary("relu6", 5), {{-1, 3, 7, nan, inf}}, {{0, 3, 6, nan, 6}}},
      {"\"sluice.add\"(%0, %1) : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>",
       {{2147483647}, {1}},
       {{-2147483648.0}}},
      {"\"sluice.add\"(%0, %1) : (tensor<1xui8>, tensor<1xui8>) -> tensor<1xui8>", {{200}, {100}}, {{44}}},
      {"\"sluice.cast\"(%0) {to = i32} : (tensor<6xf64>) -> tensor<6xi32>",
       {{1.9, -1.9, nan, 1e30, -1e30, -inf}},
       {{1, -1, 0, 2147483647, -2147483648.0, -2147483648.0}}},
      {"\"sluice.cast\"(%0) {to = ui8} : (tensor<4xf64>) -> tensor<4xui8>",
       {{-3, 255.9, 300, 7.5}},
       {{0, 255, 255, 7}}},
      {"\"sluice.cast\"(%0) {to = ui8} : (tensor<2xi32>) -> tensor<2xui8>", {{-1, 257}}, {{255, 1}}},
      {"\"sluice.cast\"(%0) {to = i1} : (tensor<3xf64>) -> tensor<3xi1>", {{0, 0.25, -4}}, {{0, 1, 1}}},
      {"\"sluice.where\"(%0, %1, %2) : (tensor<2xi1>, tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>",
       {{1, 0}, {1, 2}, {3, 4}},
       {{1, 4}}},
      {"\"sluice.compare\"(%0, %1) {predicate = #sluice<predicate ne>} : (tensor<2xf64>, tensor<2xf64>) -> "
       "tensor<2xi1>",
       {{nan, 2}, {nan, 2}},
       {{1, 0}}},
      {"\"sluice.compare\"(%0, %1) {predicate = #sluice<predicate le>} : (tensor<2xf64>, tensor<2xf64>) -> "
       "tensor<2xi1>",
       {{nan, 2}, {nan, 2}},
       {{0, 1}}},
  };
  for (const Case &test : cases)
    expectResults(test, 1e-15);
}

TEST(Evaluate, Movement) {
  const Case cases[] = {
      {"\"sluice.constant\"() {value = dense<[[1, 2], [3, -4]]> : tensor<2x2xi32>} : () -> tensor<2x2xi32>",
       {},
       {{1, 2, 3, -4}}},
      {"\"sluice.constant\"() {value = dense<[true, false]> : tensor<2xi1>} : () -> tensor<2xi1>", {}, {{1, 0}}},
      {"\"sluice.constant\"() {value = dense<[200, 3]> : tensor<2xui8>} : () -> tensor<2xui8>", {}, {{200, 3}}},
      {"\"sluice.constant\"() {value = dense<0.5> : tensor<3xf32>} : () -> tensor<3xf32>", {}, {{0.5, 0.5, 0.5}}},
      {"\"sluice.full\"() {value = 7.0 : f64, type = tensor<?xi32>} : () -> tensor<?xi32>", {}, {{7, 7, 7}}},
      {"\"sluice.iota\"() {start = 5.0 : f64, step = -2.0 : f64, axis = 1 : i64, type = tensor<?x2xi32>} : () -> "
       "tensor<?x2xi32>",
       {},
       {{5, 3, 5, 3, 5, 3}}},
      {"\"sluice.iota\"() {start = 1.0 : f64, step = 2.0 : f64, axis = 0 : i64, type = tensor<?x2xi64>} : () -> "
       "tensor<?x2xi64>",
       {},
       {{1, 1, 3, 3, 5, 5}}},
      {"\"sluice.iota\"() {start = 0.5 : f64, step = 0.25 : f64, axis = 0 : i64, type = tensor<3xf32>} : () -> "
       "tensor<3xf32>",
       {},
       {{0.5, 0.75, 1}}},
      {"\"sluice.rows\"() {to = i32} : () -> tensor<i32>", {}, {{3}}},
      {"\"sluice.transpose\"(%0) {permutation = array<i64: 1, 0>} : (tensor<2x3xf64>) -> tensor<3x2xf64>",
       {count(6)},
       {{1, 4, 2, 5, 3, 6}}},
      {"\"sluice.expand\"(%0) {dims = array<i64: 0>, shape = array<i64: 2, 3>} : (tensor<2xf64>) -> tensor<2x3xf64>",
       {{1, 2}},
       {{1, 1, 1, 2, 2, 2}}},
      {"\"sluice.expand\"(%0) {dims = array<i64: 0, 1>, shape = array<i64: -1, 2>} : (tensor<1x2xf64>) -> "
       "tensor<?x2xf64>",
       {{1, 2}},
       {{1, 2, 1, 2, 1, 2}}},
      {"\"sluice.slice\"(%0) {start = array<i64: 1, 0>, end = array<i64: 3, 4>, step = array<i64: 1, 3>} : "
       "(tensor<3x4xf64>) -> tensor<2x2xf64>",
       {count(12)},
       {{5, 8, 9, 12}}},
      {"\"sluice.pad\"(%0) {low = array<i64: 1>, high = array<i64: 2>, interior = array<i64: 1>, value = 9.0 : f64} : "
       "(tensor<3xf64>) -> tensor<8xf64>",
       {count(3)},
       {{9, 1, 9, 2, 9, 3, 9, 9}}},
      {"\"sluice.concat\"(%0, %1) {axis = 1 : i64} : (tensor<2x2xf64>, tensor<2x1xf64>) -> tensor<2x3xf64>",
       {count(4), {8, 9}},
       {{1, 2, 8, 3, 4, 9}}},
      {"\"sluice.one_hot\"(%0) {classes = 3 : i64, to = f32} : (tensor<3xi32>) -> tensor<3x3xf32>",
       {{2, -1, 3}},
       {{0, 0, 1, 0, 0, 0, 0, 0, 0}}},
      {"\"sluice.ignore_index\"(%0) {size = 3 : i64, ignored = 1 : i64} : (tensor<4xi32>) -> tensor<4xi32>",
       {{2, 1, -1, 7}},
       {{2, -1, -1, 7}}},
      {"\"sluice.ignore_index\"(%0) {size = 3 : i64, ignored = -100 : i64} : (tensor<3xi64>) -> tensor<3xi64>",
       {{2, -100, 0}},
       {{2, -1, 0}}},
      {"\"sluice.gather\"(%0, %1) {axis = 0 : i64} : (tensor<3x2xf64>, tensor<?xi32>) -> tensor<?x2xf64>",
       {count(6), {2, -1, 5}},
       {{5, 6, 1, 2, 5, 6}}},
      {"\"sluice.gather\"(%0, %1) {axis = 1 : i64} : (tensor<2x3xf64>, tensor<2x1xi64>) -> tensor<2x2x1xf64>",
       {count(6), {2, 0}},
       {{3, 1, 6, 4}}},
      {"\"sluice.scatter_add\"(%0, %1) {axis = 0 : i64, size = 4 : i64} : (tensor<?x2xf64>, tensor<?xi32>) -> "
       "tensor<4x2xf64>",
       {count(6), {2, 2, 9}},
       {{0, 0, 0, 0, 4, 6, 5, 6}}},
      {"\"sluice.scatter_add\"(%0, %1) {axis = 1 : i64, size = 2 : i64} : (tensor<2x3xf64>, tensor<3xi64>) -> "
       "tensor<2x2xf64>",
       {count(6), {1, 1, 0}},
       {{3, 3, 6, 9}}},
      {"\"sluice.dynamic_slice\"(%0, %1) {axis = 1 : i64, size = 2 : i64} : (tensor<2x3xf64>, tensor<i32>) -> "
       "tensor<2x2xf64>",
       {count(6), {1}},
       {{2, 3, 5, 6}}},
      {"\"sluice.dynamic_slice\"(%0, %1) {axis = 0 : i64, size = 2 : i64} : (tensor<3x2xf64>, tensor<i64>) -> "
       "tensor<2x2xf64>",
       {count(6), {5}},
       {{3, 4, 5, 6}}},
      {"\"sluice.dynamic_update_slice\"(%0, %1, %2) {axis = 1 : i64} : (tensor<2x3xf64>, tensor<2x1xf64>, tensor<i32>) "
       "-> tensor<2x3xf64>",
       {count(6), {8, 9}, {1}},
       {{1, 8, 3, 4, 9, 6}}},
      {"\"sluice.dynamic_update_slice\"(%0, %1, %2) {axis = 0 : i64} : (tensor<3x2xf64>, tensor<2x2xf64>, tensor<i64>) "
       "-> tensor<3x2xf64>",
       {count(6), {6, 7, 8, 9}, {-3}},
       {{6, 7, 8, 9, 5, 6}}},
  };
  for (const Case &test : cases)
    expectResults(test, 0);
}

TEST(Evaluate, Reductions) {
  const Case cases[] = {
      {"\"sluice.sum\"(%0) {axes = array<i64: 0, 2>} : (tensor<2x2x2xf64>) -> tensor<2xf64>", {count(8)}, {{14, 22}}},
      {"\"sluice.mean\"(%0) {axes = array<i64: 0>, keepdims} : (tensor<?x2xf64>) -> tensor<1x2xf64>",
       {count(6)},
       {{3, 4}}},
      {"\"sluice.reduce_max\"(%0) {axes = array<i64: 1>} : (tensor<2x3xf64>) -> tensor<2xf64>",
       {{1, 3, 2, -4, -6, -5}},
       {{3, -4}}},
      {"\"sluice.reduce_min\"(%0) {axes = array<i64: 1>} : (tensor<2x3xi32>) -> tensor<2xi32>",
       {{1, 3, 2, -4, -6, -5}},
       {{1, -6}}},
      {"\"sluice.prod\"(%0) {axes = array<i64: 1>} : (tensor<2x3xf64>) -> tensor<2xf64>",
       {{1, 3, 2, -4, 0.5, 5}},
       {{6, -10}}},
      {"\"sluice.prod\"(%0) {axes = array<i64: 0>, keepdims} : (tensor<?xui8>) -> tensor<1xui8>", {{3, 5, 20}}, {{44}}},
      {"\"sluice.normalize\"(%0, %1, %2) {axis = 1 : i64, dims = array<i64: 1>, eps = 0.75 : f64} : (tensor<1x4xf64>, "
       "tensor<4xf64>, tensor<4xf64>) -> tensor<1x4xf64>",
       {{1, 2, 3, 4}, {std::sqrt(2.0), std::sqrt(2.0), 0, std::sqrt(8.0)}, {10, 20, 30, 40}},
       {{8.5, 19.5, 30, 43}}},
      {"\"sluice.normalize\"(%0, %1, %2) {axis = 2 : i64, dims = array<i64: 1>, eps = 3.0 : f64, rms} : "
       "(tensor<1x2x2xf64>, tensor<2xf64>, tensor<2xf64>) -> tensor<1x2x2xf64>",
       {{1, 1, 5, 7}, {3, 2 * std::sqrt(10.0)}, {0, 1}},
       {{1.5, 1.5, 6, 8}}},
      {"\"sluice.argmax\"(%0) {axis = 1 : i64} : (tensor<2x4xf64>) -> tensor<2xi32>",
       {{1, 5, 5, 2, -3, -4, -1, -1}},
       {{1, 2}}},
      {"\"sluice.softmax\"(%0) {axis = 0 : i64} : (tensor<3xf64>) -> tensor<3xf64>",
       {{1, 2, 3}},
       {{0.09003057317038046, 0.24472847105479764, 0.6652409557748219}}},
      {"\"sluice.log_softmax\"(%0) {axis = 1 : i64} : (tensor<1x3xf64>) -> tensor<1x3xf64>",
       {{1001, 1002, 1003}},
       {{-2.4076059644443806, -1.4076059644443804, -0.4076059644443804}}},
      {"\"sluice.softmax_cross_entropy\"(%0, %1) : (tensor<2x3xf64>, tensor<2xi32>) -> tensor<2xf64>",
       {{1, 2, 3, 3, 2, 1}, {2, 2}},
       {{0.4076059644443804, 2.4076059644443806}}},
      {"\"sluice.softmax_cross_entropy\"(%0, %1) : (tensor<1x3x2xf64>, tensor<1x2xi64>) -> tensor<1x2xf64>",
       {{1, 3, 2, 2, 3, 1}, {2, -1}},
       {{0.4076059644443804, 3.4076059644443804}}},
      {"\"sluice.softmax_cross_entropy\"(%0, %1) {axis = 0 : i64} : (tensor<3xf64>, tensor<i32>) -> tensor<f64>",
       {{1, 2, 3}, {2}},
       {{0.4076059644443804}}},
      {"\"sluice.soft_cross_entropy\"(%0, %1) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2xf64>",
       {{1, 2, 3, 3, 2, 1}, {0, 0.5, 0.5, 0, 0, 2}},
       {{0.9076059644443804, 4.8152119288887612}}},
      {"\"sluice.batch_norm\"(%0, %1, %2, %3, %4) {eps = 0.75 : f64, momentum = 0.25 : f64, training} : "
       "(tensor<4x1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<1xf64>, "
       "tensor<1xf64>) -> (tensor<4x1xf64>, tensor<1xf64>, tensor<1xf64>)",
       {{1, 2, 3, 4}, {std::sqrt(2.0)}, {10}, {0}, {1}},
       {{8.5, 9.5, 10.5, 11.5}, {0.625}, {0.75 + 0.25 * 5 / 3}}},
      // One value per channel has no variance: the running variance stays.
      {"\"sluice.batch_norm\"(%0, %1, %2, %3, %4) {eps = 0.75 : f64, momentum = 0.25 : f64, training} : "
       "(tensor<1x2xf64>, tensor<2xf64>, tensor<2xf64>, tensor<2xf64>, tensor<2xf64>) -> "
       "(tensor<1x2xf64>, tensor<2xf64>, tensor<2xf64>)",
       {{5, 6}, {1, 2}, {10, 20}, {1, 2}, {3, 1}},
       {{10, 20}, {2, 3}, {3, 1}}},
      {"\"sluice.batch_norm\"(%0, %1, %2, %3, %4) {eps = 1.0 : f64} : (tensor<1x2x1xf64>, tensor<2xf64>, "
       "tensor<2xf64>, tensor<2xf64>, tensor<2xf64>) -> "
       "(tensor<1x2x1xf64>, tensor<2xf64>, tensor<2xf64>)",
       {{5, 6}, {1, 2}, {0, 1}, {1, 2}, {3, 0}},
       {{2, 9}, {1, 2}, {3, 0}}},
  };
  for (const Case &test : cases)
    expectResults(test, 1e-12);
}

class Composite : public testing::TestWithParam<const char *> {};

TEST_P(Composite, IsItsExpansion) {
  std::vector<Sample> samples = getSamples(GetParam());
  EXPECT_GE(samples.size(), 3u);
  for (const Sample &sample : samples) {
    OpInstance instance(sample.op);
    ASSERT_TRUE(instance.op) << instance.error;
    std::vector<HostTensor> operands = drawOperands(instance, sample), expected = instance.run(operands);
    OpBuilder builder(instance.op);
    instance.op->replaceAllUsesWith(cast<CompositeOp>(instance.op).expand(builder));
    instance.op->erase();
    std::vector<HostTensor> actual = instance.run(operands);
    for (size_t number = 0; number < expected.size(); ++number)
      for (size_t i = 0; i < expected[number].data.size(); ++i)
        EXPECT_NEAR(actual[number].data[i], expected[number].data[i], 1e-14) << sample.op << " result " << number;
  }
}

INSTANTIATE_TEST_SUITE_P(Evaluate, Composite,
                         testing::Values("sluice.batch_norm", "sluice.batch_norm_grad",
                                         "sluice.scaled_dot_product_attention", "sluice.attention_query_grad",
                                         "sluice.attention_key_value_grad"));

// For a query that may attend to no key, and one whose scores overflow e^x.
TEST(Evaluate, AttentionOfNoKeyIsZero) {
  OpInstance instance("\"sluice.scaled_dot_product_attention\"(%0, %1, %2, %3) {scale = 1.0 : f64} : "
                      "(tensor<1x1x2x1xf64>, tensor<1x1x2x1xf64>, tensor<1x1x2x1xf64>, tensor<1x1x2x2xi1>) -> "
                      "(tensor<1x1x2x1xf64>, tensor<1x1x2xf64>)");
  ASSERT_TRUE(instance.op) << instance.error;
  auto tensor = [&](unsigned number, std::vector<double> data) {
    return makeTensor(instance.op->getOperand(number), std::move(data));
  };
  std::vector<HostTensor> results =
      instance.run({tensor(0, {1000, 3}), tensor(1, {1, -1}), tensor(2, {5, 7}), tensor(3, {1, 1, 0, 0})});
  EXPECT_EQ(results[0].data, (std::vector<double>{5, 0}));
  EXPECT_EQ(results[1].data, (std::vector<double>{1000, -std::numeric_limits<double>::infinity()}));
}

// A NaN in a hidden key and its value reaches no result of the reference. That of a key which is not hidden does.
TEST(Evaluate, AttentionLeavesOutHiddenKeys) {
  OpInstance instance("\"sluice.scaled_dot_product_attention\"(%0, %1, %2, %3) {scale = 1.0 : f64} : "
                      "(tensor<1x1x2x1xf64>, tensor<1x1x2x1xf64>, tensor<1x1x2x1xf64>, tensor<1x1x2x2xi1>) -> "
                      "(tensor<1x1x2x1xf64>, tensor<1x1x2xf64>)");
  ASSERT_TRUE(instance.op) << instance.error;
  auto tensor = [&](unsigned number, std::vector<double> data) {
    return makeTensor(instance.op->getOperand(number), std::move(data));
  };
  std::vector<HostTensor> operands = {tensor(0, {2, 2}), tensor(1, {3, NAN}), tensor(2, {5, NAN}),
                                      tensor(3, {1, 0, 0, 1})};
  std::vector<HostTensor> results = instance.run(operands);
  EXPECT_EQ(results[0].data[0], 5);
  EXPECT_EQ(results[1].data[0], 6);
  EXPECT_TRUE(std::isnan(results[0].data[1]));
  EXPECT_TRUE(std::isnan(results[1].data[1]));

  auto withKeys = evaluateHiddenKeys(instance.op, operands, /*rows=*/0);
  EXPECT_TRUE(std::isnan(withKeys[0].data[0]));
  EXPECT_TRUE(std::isnan(withKeys[1].data[0]));
}

// The formula sums the same products in the same order, so all bits must agree.
TEST(Evaluate, ConvolutionsInGroupsAreTheirGroups) {
  size_t tried = 0;
  for (const std::string &name : getOpsWith<CompositeOp>())
    for (const Sample &sample :
         StringRef(name).starts_with("sluice.batch_norm") || StringRef(name).contains("attention")
             ? std::vector<Sample>()
             : getSamples(name)) {
      OpInstance instance(sample.op);
      ASSERT_TRUE(instance.op) << instance.error;
      std::vector<HostTensor> operands = drawOperands(instance, sample), expected = instance.run(operands);
      OpBuilder builder(instance.op);
      SmallVector<Value> parts = cast<CompositeOp>(instance.op).expand(builder);
      if (parts.empty())
        continue;
      ++tried;
      EXPECT_EQ(parts[0].getType(), instance.op->getResult(0).getType());
      instance.op->replaceAllUsesWith(parts);
      instance.op->erase();
      EXPECT_EQ(instance.run(operands)[0].data, expected[0].data) << sample.op;
    }
  EXPECT_GE(tried, 4u) << "two samples of the convolution, one of each gradient";
}

TEST(Evaluate, Pools) {
  const std::string rest = ", padding = array<i64: 0, 0, 0, 0>";
  const Case cases[] = {
      {"\"sluice.max_pool2d\"(%0) {kernel = array<i64: 2, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, "
       "ceil_mode" +
           rest + "} : (tensor<1x1x5x5xf64>) -> (tensor<1x1x3x3xf64>, tensor<1x1x3x3xui8>)",
       {count(25)},
       {{7, 9, 10, 17, 19, 20, 22, 24, 25}, {3, 3, 2, 3, 3, 2, 1, 1, 0}}},
      {"\"sluice.max_pool2d\"(%0) {kernel = array<i64: 2, 2>, stride = array<i64: 1, 1>, dilation = array<i64: 2, 1>, "
       "padding = array<i64: 1, 0, 1, 0>} : "
       "(tensor<1x1x3x2xf64>) -> (tensor<1x1x3x1xf64>, tensor<1x1x3x1xui8>)",
       {{-1, -2, -3, -4, -5, -6}},
       {{-3, -1, -3}, {2, 0, 0}}},
      {"\"sluice.avg_pool2d\"(%0) {kernel = array<i64: 2, 2>, stride = array<i64: 2, 2>, ceil_mode" + rest +
           "} : (tensor<1x1x3x3xf64>) -> tensor<1x1x2x2xf64>",
       {count(9)},
       {{3, 4.5, 7.5, 9}}},
      {"\"sluice.avg_pool2d\"(%0) {kernel = array<i64: 3, 3>, stride = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, "
       "1>, count_include_pad} : "
       "(tensor<1x1x3x3xf64>) -> tensor<1x1x2x2xf64>",
       {count(9)},
       {{12.0 / 9, 16.0 / 9, 24.0 / 9, 28.0 / 9}}},
      {"\"sluice.avg_pool2d\"(%0) {kernel = array<i64: 3, 3>, stride = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, "
       "1>} : (tensor<1x1x3x3xf64>) -> tensor<1x1x2x2xf64>",
       {count(9)},
       {{3, 4, 6, 7}}},
  };
  for (const Case &test : cases)
    expectResults(test, 1e-15);
}

// JAX: conv_general_dilated with strides (2, 1), padding ((1, 0), (0, 2)), dilation (1, 2) and 2 groups, and its vjp.
TEST(Evaluate, Contractions) {
  std::vector<double> x = count(80, [](int64_t i) { return double(i % 7); }),
                      weight = count(24, [](int64_t i) { return double(i % 5 - 2); });
  std::vector<double> dY = count(48, [](int64_t i) { return double(i % 4 - 1); });
  const std::string how =
      "stride = array<i64: 2, 1>, padding = array<i64: 1, 0, 0, 2>, dilation = array<i64: 1, 2>, groups = 2 : i64} : ";
  const std::string tx = "tensor<2x2x4x5xf64>", tw = "tensor<4x1x2x3xf64>", ty = "tensor<2x4x2x3xf64>";
  const Case cases[] = {
      {"\"sluice.einsum\"(%0, %1) {equation = \"ab,bc->ac\"} : (tensor<2x3xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>",
       {count(6), {7, 8, 9, 10, 11, 12}},
       {{58, 64, 139, 154}}},
      {"\"sluice.einsum\"(%0, %1) {equation = \"ab,ca->bc\"} : (tensor<3x2xf64>, tensor<2x3xf64>) -> tensor<2x2xf64>",
       {{1, 4, 2, 5, 3, 6}, {7, 9, 11, 8, 10, 12}},
       {{58, 64, 139, 154}}},
      {"\"sluice.einsum\"(%0, %1) {equation = \"ab,ac->bc\"} : (tensor<?x2xf64>, tensor<?x2xf64>) -> tensor<2x2xf64>",
       {{1, 4, 2, 5, 3, 6}, {7, 8, 9, 10, 11, 12}},
       {{58, 64, 139, 154}}},
      {"\"sluice.einsum\"(%0, %1) {equation = \"abc,acd->abd\"} : (tensor<2x1x2xf64>, tensor<2x2x1xf64>) -> "
       "tensor<2x1x1xf64>",
       {count(4), {1, 1, 1, 2}},
       {{3, 11}}},
      // y[d, a] is the sum over b and c of x[a, b, c] z[c, d, b].
      {"\"sluice.einsum\"(%0, %1) {equation = \"abc,cdb->da\"} : (tensor<2x1x2xf64>, tensor<2x3x1xf64>) -> "
       "tensor<3x2xf64>",
       {count(4), {1, 2, 3, 10, 20, 30}},
       {{21, 43, 42, 86, 63, 129}}},
      {"\"sluice.einsum\"(%0, %1) {equation = \"a,ba->ab\"} : (tensor<2xf64>, tensor<3x2xf64>) -> tensor<2x3xf64>",
       {{2, 3}, count(6)},
       {{2, 6, 10, 6, 12, 18}}},
      {"\"sluice.conv2d\"(%0, %1) {" + how + "(" + tx + ", " + tw + ") -> " + ty,
       {x, weight},
       {{-9, -4, -4, -8,  10, 9,   -5,  -8, -11, -7, -8,  -10, 4,  -1, -2, -2, 4,  -1, 10, 3, 4, 13, 16, -4,
         7,  -4, -4, -13, -9, -10, -13, -2, -5,  0,  -11, -13, -3, -6, 0,  17, 14, 2,  4,  1, 2, 9,  0,  15}}},
      {"\"sluice.conv2d_input_grad\"(%0, %1) {size = array<i64: 4, 5>, " + how + "(" + ty + ", " + tw + ") -> " + tx,
       {dY, weight},
       {{-4, 4,  2, -1, -4, 1, 0, 0,  2, 0,  -4, -4, 5, -2, 0,  0, 0,  0,  0, 0, 0, -1, 0, -1, 4,  1, 4,
         -5, -4, 5, 1,  0,  0, 2, 0,  0, 0,  0,  0,  0, -4, 4,  2, -1, -4, 1, 0, 0, 2,  0, -4, -4, 5, -2,
         0,  0,  0, 0,  0,  0, 0, -1, 0, -1, 4,  1,  4, -5, -4, 5, 1,  0,  0, 2, 0, 0,  0, 0,  0,  0}}},
      {"\"sluice.conv2d_weight_grad\"(%0, %1) {size = array<i64: 2, 3>, " + how + "(" + tx + ", " + ty + ") -> " + tw,
       {x, dY},
       {{-3, -3, -4, 14, 19, -7, 13, 7, 4, 24, 15, 23, -3, -3, -2, 15, 13, -5, 23, 17, 2, 11, 23, 17}}},
  };
  for (const Case &test : cases)
    expectResults(test, 0);
}

TEST(Evaluate, FlopsAreCountedPerRow) {
  OpInstance product("\"sluice.einsum\"(%0, %1) {equation = \"ab,bc->ac\"} : (tensor<?x784xf32>, tensor<784x10xf32>) "
                     "-> tensor<?x10xf32>");
  OpInstance convolution("\"sluice.conv2d\"(%0, %1) {stride = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, "
                         "dilation = array<i64: 1, 1>, groups = 1 : i64} : "
                         "(tensor<2x3x5x5xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x3x3xf32>");
  EXPECT_EQ(cast<ContractionOp>(product.op).getFlops(), std::make_pair(int64_t(0), int64_t(2 * 784 * 10)));
  EXPECT_EQ(cast<ContractionOp>(convolution.op).getFlops(), std::make_pair(int64_t(2 * 2 * 4 * 9 * 27), int64_t(0)));
}

namespace {
/// The shapes of the tensors of a convolution or of one of its gradients.
struct ConvolutionShapes {
  ArrayRef<int64_t> x, weight, y;
};
} // namespace

static ConvolutionShapes shapesOf(Conv2dOp op) {
  return {shapeOf(op.getX()), shapeOf(op.getWeight()), shapeOf(op.getY())};
}
static ConvolutionShapes shapesOf(Conv2dInputGradOp op) {
  return {shapeOf(op.getDx()), shapeOf(op.getWeight()), shapeOf(op.getDy())};
}
static ConvolutionShapes shapesOf(Conv2dWeightGradOp op) {
  return {shapeOf(op.getX()), shapeOf(op.getDweight()), shapeOf(op.getDy())};
}

/// Counts the products with elements of x, not padding, for one image and one pair of channels, by the formula in the
/// description of conv2d.
template <typename Op> static int64_t countPlaneProducts(Op op) {
  auto [x, weight, y] = shapesOf(op);
  ArrayRef<int64_t> stride = op.getStride(), padding = op.getPadding(), dilation = op.getDilation();
  int64_t count = 0;
  for (int64_t i = 0; i < y[2]; ++i)
    for (int64_t j = 0; j < y[3]; ++j)
      for (int64_t u = 0; u < weight[2]; ++u)
        for (int64_t v = 0; v < weight[3]; ++v) {
          int64_t h = i * stride[0] - padding[0] + u * dilation[0], w = j * stride[1] - padding[1] + v * dilation[1];
          count += h >= 0 && h < x[2] && w >= 0 && w < x[3];
        }
  return count;
}

/// Compares the flops of the op's samples with these counts.
template <typename Op> static void expectProductsOfSamples() {
  for (const Sample &sample : Op::samples()) {
    OpInstance instance(sample.op);
    ASSERT_TRUE(instance.op) << instance.error;
    auto op = cast<Op>(instance.op);
    auto [x, weight, y] = shapesOf(op);
    int64_t flops = 2 * y[1] * weight[1] * countPlaneProducts(op);
    bool isPerRow = ShapedType::isDynamic(y[0]);
    EXPECT_EQ(cast<ContractionOp>(instance.op).getFlops(),
              isPerRow ? std::make_pair(int64_t(0), flops) : std::make_pair(y[0] * flops, int64_t(0)))
        << sample.op;
  }
}

/// The flops per row of the three passes of a convolution with an image of `size` and a kernel of `kernel`.
static std::vector<int64_t> flopsOfPasses(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                                          int64_t groups = 1) {
  int64_t positions = (size + 2 * padding - kernel) / stride + 1;
  auto tensor = [](const char *first, int64_t second, int64_t side) {
    return "tensor<" + std::string(first) + "x" + std::to_string(second) + "x" + std::to_string(side) + "x" +
           std::to_string(side) + "xf32>";
  };
  auto pair = [](int64_t number) { return std::to_string(number) + ", " + std::to_string(number); };
  std::string x = tensor("?", 6, size), weight = tensor("6", 6 / groups, kernel), y = tensor("?", 6, positions),
              how = "stride = array<i64: " + pair(stride) + ">, padding = array<i64: " + pair(padding) + ", " +
                    pair(padding) + ">, dilation = array<i64: 1, 1>, groups = " + std::to_string(groups) + " : i64} : ";
  std::vector<int64_t> flops;
  for (const std::string &text : {"\"sluice.conv2d\"(%0, %1) {" + how + "(" + x + ", " + weight + ") -> " + y,
                                  "\"sluice.conv2d_input_grad\"(%0, %1) {size = array<i64: " + pair(size) + ">, " +
                                      how + "(" + y + ", " + weight + ") -> " + x,
                                  "\"sluice.conv2d_weight_grad\"(%0, %1) {size = array<i64: " + pair(kernel) + ">, " +
                                      how + "(" + x + ", " + y + ") -> " + weight}) {
    OpInstance instance(text);
    EXPECT_TRUE(instance.op) << text << "\n" << instance.error;
    flops.push_back(instance.op ? cast<ContractionOp>(instance.op).getFlops().second : 0);
  }
  return flops;
}

TEST(Evaluate, FlopsOfConvolutionsLeaveOutPadding) {
  expectProductsOfSamples<Conv2dOp>();
  expectProductsOfSamples<Conv2dInputGradOp>();
  expectProductsOfSamples<Conv2dWeightGradOp>();
  // Counted by hand: a 3x3 kernel on a 7x7 image has 7 * 3 - 2 taps that are elements in each dimension.
  EXPECT_EQ(flopsOfPasses(7, 3, 1, 1), std::vector<int64_t>(3, 2 * 6 * 6 * 19 * 19));
  EXPECT_EQ(flopsOfPasses(7, 3, 1, 1, /*groups=*/6), std::vector<int64_t>(3, 2 * 6 * 19 * 19));
  // Stride 2: windows at -1, 1, 3 and 5 of 7 elements, with 2 + 3 + 3 + 2 taps.
  EXPECT_EQ(flopsOfPasses(7, 3, 2, 1), std::vector<int64_t>(3, 2 * 6 * 6 * 10 * 10));
  // The padding exceeds the kernel: 1 of the 5 windows in each dimension is an element.
  EXPECT_EQ(flopsOfPasses(1, 1, 1, 2), std::vector<int64_t>(3, 2 * 6 * 6));
}

/// Flops of attention and its gradients, with vectors of 8 elements for keys and 4 for values.
static std::vector<int64_t> flopsOfAttention(int64_t queries, int64_t keys, const std::string &attributes) {
  auto tensor = [](int64_t heads, int64_t length, int64_t size) {
    return "tensor<?x" + std::to_string(heads) + "x" + std::to_string(length) +
           (size ? "x" + std::to_string(size) : "") + "xf32>";
  };
  std::string q = tensor(2, queries, 8), k = tensor(1, keys, 8), v = tensor(1, keys, 4), y = tensor(2, queries, 4),
              rows = tensor(2, queries, 0), operands = q + ", " + k + ", " + v,
              gradient = operands + ", " + y + ", " + rows + ", " + rows;
  std::vector<int64_t> flops;
  for (const std::string &text :
       {"\"sluice.scaled_dot_product_attention\"(%0, %1, %2) {" + attributes + "} : (" + operands + ") -> (" + y +
            ", " + rows + ")",
        "\"sluice.attention_query_grad\"(%0, %1, %2, %3, %4, %5) {" + attributes + "} : (" + gradient + ") -> " + q,
        "\"sluice.attention_key_value_grad\"(%0, %1, %2, %3, %4, %5) {" + attributes + "} : (" + gradient + ") -> (" +
            k + ", " + v + ")"}) {
    OpInstance instance(text);
    EXPECT_TRUE(instance.op) << text << "\n" << instance.error;
    flops.push_back(instance.op ? cast<BlockwiseOp>(instance.op).getFlops().second : 0);
  }
  return flops;
}

TEST(Evaluate, FlopsOfAttentionLeaveOutHiddenScores) {
  auto ofScores = [](int64_t scores) {
    return std::vector<int64_t>{2 * 2 * scores * (8 + 4), 2 * 2 * scores * (2 * 8 + 4),
                                2 * 2 * scores * (2 * 8 + 2 * 4)};
  };
  for (auto [queries, keys] : {std::pair(5, 3), {3, 5}, {4, 4}, {1, 7}, {7, 1}}) {
    int64_t visible = 0;
    for (int64_t t = 0; t < queries; ++t)
      for (int64_t s = 0; s < keys; ++s)
        visible += s <= t;
    EXPECT_EQ(flopsOfAttention(queries, keys, "scale = 1.0 : f64, causal"), ofScores(visible));
    EXPECT_EQ(flopsOfAttention(queries, keys, "scale = 1.0 : f64"), ofScores(queries * keys));
  }
}

static std::string draw(const std::string &name, double a, double b, const std::string &type, int64_t stream = 0) {
  return "\"sluice." + name + "\"(%0) {stream = " + std::to_string(stream) + " : i64, a = " + std::to_string(a) +
         " : f64, b = " + std::to_string(b) + " : f64, type = " + type + "} : (tensor<2xi32>) -> " + type;
}

// The numbers of jax.random for PRNGKey(0) and PRNGKey(42) in f32: with jax_threefry_partitionable off for static
// shapes, and on if a dimension is `?`.
TEST(Evaluate, RandomNumbersAreThoseOfJax) {
  const Case cases[] = {
      {draw("uniform", 0, 1, "tensor<2x3xf32>"),
       {{0, 0}},
       {{0.574500442, 0.099686027, 0.741965890, 0.894178271, 0.596566558, 0.453251839}}},
      {draw("uniform", -2, 3, "tensor<5xf64>"),
       {{0, 42}},
       {{1.649094105, 2.345968962, -1.017810225, -0.959071636, -1.066879153}}},
      {draw("uniform", 0, 1, "tensor<?x2xf32>"),
       {{0, 0}},
       {{0.947667003, 0.978579879, 0.332291484, 0.468668461, 0.569888711, 0.165503025}}},
  };
  for (const Case &test : cases)
    expectResults(test, 5e-7); // rounding of u * (b - a) + a in f32
  const Case normal[] = {
      {draw("normal", 0, 1, "tensor<2x3xf64>"),
       {{0, 0}},
       {{0.187843844, -1.283342600, 0.649418116, 1.249059439, 0.244470030, -0.117449649}}},
      {draw("normal", 0, 1, "tensor<5xf64>"),
       {{0, 42}},
       {{0.612265229, 1.122588277, -0.854413390, -0.812732518, -0.890404999}}},
      {draw("normal", 0, 1, "tensor<?x2xf64>"),
       {{0, 0}},
       {{1.622642159, 2.025264740, -0.433594435, -0.078617349, 0.176090896, -0.972089231}}},
  };
  for (const Case &test : normal)
    expectResults(test, 2e-6); // erfinv in f32
}

// The keys into which JAX splits PRNGKey(0).
TEST(Evaluate, RandomBitsAreThoseOfJax) {
  expectResults({"\"sluice.random_bits\"(%0) {stream = 0 : i64, type = tensor<2x2xi32>} : (tensor<2xi32>) -> "
                 "tensor<2x2xi32>",
                 {{0, 0}},
                 {{4146024105.0 - 0x1p32, 967050713, 2718843009.0 - 0x1p32, 1272950319}}},
                0);
}

// Computed by another implementation of Threefry, and by Wichura's quantiles.
TEST(Evaluate, WideRandomNumbersHave64Bits) {
  auto wide = [](const std::string &name, double a, double b) {
    std::string op = draw(name, a, b, "tensor<3xf64>");
    return op.replace(op.find("} :"), 1, ", wide}");
  };
  expectResults({wide("uniform", 0, 1), {{0, 42}}, {{0.7298188969046309, 0.8691938242843895, 0.8723002596642415}}}, 0);
  const Case normal[] = {
      {wide("normal", 0, 1), {{0, 0}}, {{0.18784401289378871, -1.2833422921291577, 0.6494182018294374}}},
      {wide("normal", 0, 1), {{0, 42}}, {{0.6122653570510957, 1.1225883830713084, 1.137332099516015}}}};
  for (const Case &test : normal)
    expectResults(test, 1e-15); // a few roundings of numbers near 1
}

// The numbers of JAX are computed from bounds in f32.
TEST(Evaluate, BoundsAreRoundedFirst) {
  float low = 0.1F, high = 0.7F, width = high - low;
  ASSERT_NE(width, float(0.7 - 0.1));
  expectResults({draw("uniform", 0.1, 0.7, "tensor<1xf32>"),
                 {{0, 0}},
                 {{double(0x6b200159 >> 9) / (1 << 23) * double(width) + double(low)}}},
                1e-15);
}

// Bits that are shifted out, signs, and numbers of bits that are negative or too large.
TEST(Evaluate, Bits) {
  auto binary = [](const std::string &name, const std::string &element, size_t size) {
    std::string type = "tensor<" + std::to_string(size) + "x" + element + ">";
    return "\"sluice." + name + "\"(%0, %1) : (" + type + ", " + type + ") -> " + type;
  };
  const Case cases[] = {
      {binary("and", "i32", 3), {{12, -1, -8}, {10, 7, 12}}, {{8, 7, 8}}},
      {binary("or", "i64", 3), {{12, -1, -8}, {10, 7, 3}}, {{14, -1, -5}}},
      {binary("xor", "ui8", 2), {{12, 255}, {10, 15}}, {{6, 240}}},
      {binary("xor", "i32", 2), {{-1, -8}, {12, -7}}, {{-13, 1}}},
      {"\"sluice.not\"(%0) : (tensor<3xi32>) -> tensor<3xi32>", {{0, -1, 7}}, {{-1, 0, -8}}},
      {"\"sluice.not\"(%0) : (tensor<2xui8>) -> tensor<2xui8>", {{0, 12}}, {{255, 243}}},
      {"\"sluice.not\"(%0) : (tensor<2xi1>) -> tensor<2xi1>", {{0, 1}}, {{1, 0}}},
      {binary("shift_left", "i32", 6),
       {{1, -3, 3, 1, 1, 1}, {4, 2, 31, 32, -1, 31}},
       {{16, -12, -0x1p31, 0, 0, -0x1p31}}},
      {binary("shift_left", "ui8", 3), {{3, 255, 1}, {7, 1, 8}}, {{128, 254, 0}}},
      {binary("shift_left", "i64", 3), {{1, -1, 1}, {40, 52, 64}}, {{0x1p40, -0x1p52, 0}}},
      {binary("shift_right", "i32", 6), {{16, -16, -1, 5, -5, 7}, {2, 2, 31, 32, 99, -1}}, {{4, -4, -1, 0, -1, 0}}},
      {binary("shift_right", "ui8", 3), {{255, 255, 128}, {4, 8, 7}}, {{15, 0, 1}}},
      {binary("shift_right", "i64", 3), {{0x1p50, -0x1p50, -3}, {48, 48, 64}}, {{4, -4, -1}}},
  };
  for (const Case &test : cases)
    expectResults(test, 0);
}

// Random123's test vector of Threefry-2x32-20: the block (0, 0) under the key (0, 0) is 6b200159 99ba4efe.
TEST(Evaluate, FirstWordIsThreefrys) {
  expectResults({draw("uniform", 0, 1, "tensor<1xf64>"), {{0, 0}}, {{double(0x6b200159 >> 9) / (1 << 23)}}}, 0);
}

TEST(Evaluate, StreamsDiffer) {
  OpInstance first(draw("uniform", 0, 1, "tensor<64xf64>", 1)), second(draw("uniform", 0, 1, "tensor<64xf64>", 2));
  HostTensor key = makeTensor(first.op->getOperand(0), {0, 0});
  EXPECT_NE(first.run({key})[0].data, second.run({key})[0].data);
  EXPECT_EQ(first.run({key})[0].data, first.run({key})[0].data);
}

TEST(Evaluate, NormalNumbersHaveTheirMoments) {
  OpInstance instance(draw("normal", 3, 2, "tensor<100000xf64>", 5));
  std::vector<double> drawn = instance.run({makeTensor(instance.op->getOperand(0), {-1, 123456789})})[0].data;
  double mean = 0, variance = 0;
  for (double value : drawn)
    mean += value / double(drawn.size());
  for (double value : drawn)
    variance += (value - mean) * (value - mean) / double(drawn.size());
  EXPECT_NEAR(mean, 3, 0.03);
  EXPECT_NEAR(variance, 4, 0.08);
}
