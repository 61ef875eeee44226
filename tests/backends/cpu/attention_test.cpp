// Attention and its gradients: kernels against the reference functions, whatever the order of tasks.
#include "tests/backends/cpu/KernelRun.h"

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>

namespace sluice::cpu::testing {

namespace {

constexpr const char *kLayouts = "#bthd = #sluice.at<layout = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>>\n"
                                 "#hbtd = #sluice.at<layout = affine_map<(d0, d1, d2, d3) -> (d1, d0, d2, d3)>>\n";

/// The sizes of an instance, and its notation.
struct Case {
  int64_t heads, headsOfKeys, queries, keys, depth, valueDepth;
  std::string attributes = ""; // in addition to the scale
  std::string mask = "";       // its dimensions but the first, "1x5x7xi1"
  std::string element = "f32";
  std::string layout = ""; // ", #bthd" of all of four dimensions
  std::string batch = "?", batchOfMask = "?";

  std::string type(int64_t head, int64_t items, int64_t elements) const {
    return "tensor<" + batch + "x" + std::to_string(head) + "x" + std::to_string(items) + "x" +
           std::to_string(elements) + "x" + element + layout + ">";
  }
  std::string q() const { return type(heads, queries, depth); }
  std::string k() const { return type(headsOfKeys, keys, depth); }
  std::string v() const { return type(headsOfKeys, keys, valueDepth); }
  std::string y() const { return type(heads, queries, valueDepth); }
  std::string rows() const {
    return "tensor<" + batch + "x" + std::to_string(heads) + "x" + std::to_string(queries) + "x" +
           (element == "f64" ? "f64" : "f32") + ">";
  }
  double tolerance() const {
    return element == "f64" ? 1e-13 : element == "f32" ? 3e-5 : element == "f16" ? 4e-3 : 4e-2;
  }
};

KernelRun makeKernel(const Case &c, const std::string &op, std::vector<std::string> operands,
                     const std::vector<std::string> &results) {
  if (!c.mask.empty())
    operands.push_back("tensor<" + c.batchOfMask + "x" + c.mask + ">");
  std::string numbers, types, resultTypes, names;
  for (size_t i = 0; i < operands.size(); ++i) {
    numbers += (i ? ", %" : " %") + std::to_string(i);
    types += (i ? ", " : "") + operands[i];
  }
  for (size_t i = 0; i < results.size(); ++i) {
    resultTypes += (i ? ", " : "") + results[i];
    names += (i ? ", %a#" : "%a#") + std::to_string(i);
  }
  return KernelRun(operands,
                   "%a:" + std::to_string(results.size()) + " = sluice." + op + numbers + " {scale = 0.6 : f64" +
                       c.attributes + "} : (" + types + ") -> (" + resultTypes + ")",
                   names + " : " + resultTypes, 5, kLayouts);
}

void expectRuns(KernelRun kernel, const Case &c, const std::string &op) {
  SCOPED_TRACE(op + " of " + c.q() + ", " + c.k() + ", " + c.v() + c.attributes + " mask " + c.mask);
  ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
  kernel.randomize(-1, 1);
  for (int64_t rows : {5, 2, 0}) {
    kernel.run(rows);
    EXPECT_LE(kernel.error(), c.tolerance()) << "with " << rows << " rows";
    auto inOrder = kernel.bytes(0);
    kernel.run(rows, /*seed=*/7);
    EXPECT_TRUE(kernel.bytes(0) == inOrder) << "other bits in another order";
  }
}

void expectForwardMatches(const Case &c) {
  expectRuns(makeKernel(c, "scaled_dot_product_attention", {c.q(), c.k(), c.v()}, {c.y(), c.rows()}), c, "attention");
}

void expectMatches(const Case &c) {
  expectForwardMatches(c);
  std::vector<std::string> operands{c.q(), c.k(), c.v(), c.y(), c.rows(), c.rows()};
  expectRuns(makeKernel(c, "attention_query_grad", operands, {c.q()}), c, "dQ");
  expectRuns(makeKernel(c, "attention_key_value_grad", operands, {c.k(), c.v()}), c, "dK and dV");
}

} // namespace

// Tests tiles that are full, tails of one vector and of several, blocks and their tails, and elements that fill no vector.
TEST(Attention, IsThatOfTheReference) {
  expectMatches({2, 2, 70, 130, 16, 20});
  expectMatches({1, 1, 64, 64, 32, 32});
  expectMatches({2, 2, 3, 5, 4, 3, ", block = 2 : i64"});
  expectMatches({1, 1, 100, 7, 1, 33, ", block = 3 : i64"});
  expectMatches({2, 2, 1, 200, 8, 8});
}

TEST(Attention, IsThatOfTheReferenceInF64) {
  expectMatches({2, 2, 41, 70, 12, 9, "", "", "f64"});
  expectMatches({1, 1, 32, 64, 8, 8, ", causal", "", "f64"});
}

TEST(Attention, SharesKeysAmongHeads) {
  expectMatches({4, 2, 20, 70, 8, 8});
  expectMatches({6, 1, 70, 20, 8, 3, ", causal"});
}

// Tests blocks before, on and behind the diagonal, with fewer keys than queries, and more.
TEST(Attention, HidesLaterKeys) {
  expectMatches({1, 1, 150, 150, 8, 8, ", causal"});
  expectMatches({2, 1, 130, 40, 8, 8, ", causal, block = 16 : i64"});
  expectMatches({1, 1, 40, 130, 8, 8, ", causal, block = 48 : i64"});
}

TEST(Attention, AddsMasksOfAnyShape) {
  std::vector<const char *> masks{"2x70x40xf32", "1x1x40xf32", "2x70x1xf32"}; // each dimension whole and of one element
  if (std::getenv("SLUICE_TEST_FULL"))
    masks.insert(masks.end(), {"1x70x40xf32", "1x1x1xf32"});
  for (const char *mask : masks)
    expectMatches({2, 1, 70, 40, 8, 8, ", block = 24 : i64", mask});
  expectMatches({2, 1, 70, 40, 8, 8, "", "1x70x40xf32", "f32", "", "?", "1"});
  expectMatches({2, 1, 33, 40, 8, 8, ", causal", "1x33x40xf64", "f64"});
}

TEST(Attention, LeavesOutWhatABoolMaskDoes) {
  for (const char *mask : {"2x70x40xi1", "1x1x40xi1", "1x70x1xi1"})
    expectMatches({2, 2, 70, 40, 8, 8, ", block = 24 : i64", mask});
  expectMatches({2, 2, 33, 40, 8, 8, ", causal", "1x33x40xi1", "f64", "", "?", "1"});
}

// Tests attention of one query, whose lanes are keys: masks, elements that fill no vector, several tiles of keys, and
// values of several groups of vectors.
TEST(Attention, OfOneQueryIsThatOfTheReference) {
  expectForwardMatches({1, 1, 1, 70, 256, 200, ", block = 24 : i64"});
  expectForwardMatches({2, 1, 1, 150, 20, 3, ", block = 150 : i64", "2x1x150xi1"});
  expectForwardMatches({2, 2, 1, 70, 8, 16, "", "1x1x70xf32"});
  expectForwardMatches({2, 2, 1, 70, 8, 16, "", "1x1x1xi1", "f64", ", #bthd"});
  expectForwardMatches({2, 1, 1, 70, 16, 24, "", "1x1x70xbf16", "bf16"});
}

// Tests that blocks of keys after the last one that some query of a tile attends to are not read.
TEST(Attention, EndsWhereABoolMaskDoes) {
  constexpr int64_t kKeys = 150, kBlock = 64;
  for (int64_t queries : {1, 70}) {
    Case c{2, 1, queries, kKeys, 8, 8, "", "1x" + std::to_string(queries) + "x150xi1", "f32", "", "?", "1"};
    KernelRun kernel = makeKernel(c, "scaled_dot_product_attention", {c.q(), c.k(), c.v()}, {c.y(), c.rows()});
    ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
    for (int64_t shown : {0, 1, 64, 65, 128, 140, 150}) {
      kernel.randomize(-1, 1);
      for (int64_t query = 0; query < queries; ++query)
        for (int64_t key = 0; key < kKeys; ++key) { // only one query of each tile attends to the last of them
          bool isLast = queries == 1 || query == 7 || query == 67;
          kernel.inputs[3].at({0, 0, query, key}) = key + 1 < shown || (key < shown && isLast);
        }
      kernel.run(5);
      EXPECT_LE(kernel.error(), c.tolerance()) << shown;
      auto bits = kernel.bytes(0);
      for (size_t operand : {1, 2})
        for (int64_t row = 0; row < 5; ++row)
          for (int64_t key = (shown + kBlock - 1) / kBlock * kBlock; key < kKeys; ++key)
            kernel.inputs[operand].at({row, 0, key, 3}) = std::numeric_limits<double>::quiet_NaN();
      kernel.run(5);
      EXPECT_TRUE(kernel.bytes(0) == bits) << shown;
    }
  }
}

TEST(Attention, ReadsAndWritesItemsAsTheyLie) {
  expectMatches({2, 2, 70, 40, 12, 8, "", "", "f32", ", #bthd"});
  expectMatches({4, 2, 33, 40, 8, 8, ", causal", "1x33x40xi1", "f32", ", #hbtd", "3", "3"});
}

TEST(Attention, ComputesHalvesInF32) {
  for (const char *element : {"f16", "bf16"}) {
    expectMatches({2, 1, 70, 70, 16, 16, ", causal", "", element});
    expectMatches({1, 1, 20, 40, 8, 8, "", std::string("1x20x40x") + element, element});
  }
}

// Tests that a query without keys gives 0 and -inf, has no gradient, and gives none.
TEST(Attention, OfNoKeyIsZero) {
  Case c{1, 1, 20, 40, 8, 8, "", "1x20x40xi1"};
  KernelRun kernel = makeKernel(c, "scaled_dot_product_attention", {c.q(), c.k(), c.v()}, {c.y(), c.rows()});
  ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
  kernel.randomize(-1, 1);
  std::fill_n(kernel.inputs[3].data.begin() + 3 * 40, 40, 0.0);
  kernel.run(5);
  EXPECT_LE(kernel.error(), c.tolerance());
  EXPECT_EQ(kernel.output(0).at({0, 0, 3, 5}), 0);
  EXPECT_EQ(kernel.output(1).at({0, 0, 3}), -std::numeric_limits<double>::infinity());

  std::vector<std::string> operands{c.q(), c.k(), c.v(), c.y(), c.rows(), c.rows()};
  for (auto &[op, results] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"attention_query_grad", {c.q()}}, {"attention_key_value_grad", {c.k(), c.v()}}}) {
    KernelRun gradient = makeKernel(c, op, operands, results);
    gradient.randomize(-1, 1);
    std::fill_n(gradient.inputs[6].data.begin() + 3 * 40, 40, 0.0);
    gradient.inputs[4].at({0, 0, 3}) = -std::numeric_limits<double>::infinity();
    gradient.run(5);
    EXPECT_LE(gradient.error(), c.tolerance()) << op;
    EXPECT_TRUE(std::isfinite(gradient.output(0).at({0, 0, 3, 5}))) << op;
  }
}

// Tests that scores within the range of f32 do not overflow in intermediate values.
TEST(Attention, OfLargeScoresIsFinite) {
  Case c{1, 1, 20, 150, 8, 8};
  KernelRun kernel = makeKernel(c, "scaled_dot_product_attention", {c.q(), c.k(), c.v()}, {c.y(), c.rows()});
  kernel.randomize(-1e4, 1e4);
  kernel.run(5);
  for (double value : kernel.output(0).data)
    ASSERT_TRUE(std::isfinite(value));
}

// Tests that blocks of keys follow from the op alone: other blocks would round differently.
TEST(Attention, HasTheOrderOfItsBlocks) {
  auto bitsOf = [](const char *block) {
    Case c{1, 1, 40, 150, 8, 8, block};
    KernelRun kernel = makeKernel(c, "scaled_dot_product_attention", {c.q(), c.k(), c.v()}, {c.y(), c.rows()});
    kernel.randomize(-3, 3);
    kernel.run(5);
    return kernel.bytes(0);
  };
  EXPECT_EQ(bitsOf(""), bitsOf(", block = 64 : i64"));
  EXPECT_NE(bitsOf(", block = 64 : i64"), bitsOf(", block = 16 : i64"));
}

// Tests that the workspace is smaller than all scores.
TEST(Attention, NeedsNoWorkspace) {
  Case c{2, 2, 512, 512, 8, 8};
  KernelRun kernel = makeKernel(c, "scaled_dot_product_attention", {c.q(), c.k(), c.v()}, {c.y(), c.rows()});
  ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
  EXPECT_EQ(kernel.result().workspaceBytes, 0);
  EXPECT_EQ(kernel.result().work.flopsPerRow, 2 * 2 * 512 * 512 * (8 + 8));
}

} // namespace sluice::cpu::testing
