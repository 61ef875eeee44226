// Attention and its gradients as CUDA C++, run by emulated threads against the reference functions: on every kind of cores,
// with tiles and blocks that are not full, masks, shared heads and layouts.
#include "backends/cuda/compiler/attention/AttentionKernel.h"
#include "tests/backends/cuda/Budgets.h"
#include "tests/backends/cuda/GridRun.h"
#include "tests/cuda_emu/PinnedNvrtc.h"
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <limits>

using namespace mlir;

namespace sluice::cuda::test {

namespace {

/// The sizes of an instance, and its notation.
struct Case {
  int64_t heads, headsOfKeys, queries, keys, depth, valueDepth;
  std::string attributes = ""; // in addition to the scale
  std::string mask = "";       // its dimensions but the first, "1x5x7xi1"
  std::string layout = "";     // ", #bthd" of all of four dimensions
  std::string batch = "?", batchOfMask = "?";
  std::string element = "f32";

  std::string type(int64_t head, int64_t items, int64_t elements) const {
    return "tensor<" + batch + "x" + std::to_string(head) + "x" + std::to_string(items) + "x" +
           std::to_string(elements) + "x" + element + layout + ">";
  }
  std::string q() const { return type(heads, queries, depth); }
  std::string k() const { return type(headsOfKeys, keys, depth); }
  std::string v() const { return type(headsOfKeys, keys, valueDepth); }
  std::string y() const { return type(heads, queries, valueDepth); }
  std::string rows() const {
    std::string sums = element == "f64" ? "xf64>" : "xf32>";
    return "tensor<" + batch + "x" + std::to_string(heads) + "x" + std::to_string(queries) + sums;
  }
};

/// A kernel of one op. For halves, products with probabilities round these to halves.
Body bodyOf(const Case &c, const std::string &op, std::vector<std::string> operands,
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
  Body body{operands,
            "%a:" + std::to_string(results.size()) + " = sluice." + op + numbers + " {scale = 0.3 : f64" +
                c.attributes + "} : (" + types + ") -> (" + resultTypes + ")",
            names + " : " + resultTypes};
  // Probabilities are rounded to halves.
  body.tolerance = c.element == "f32" ? 1e-5 : c.element == "f16" ? 0x1p-10 : 0x1p-7;
  return body;
}

Body forward(const Case &c) {
  return bodyOf(c, "scaled_dot_product_attention", {c.q(), c.k(), c.v()}, {c.y(), c.rows()});
}
std::vector<std::string> operandsOfGradients(const Case &c) { return {c.q(), c.k(), c.v(), c.y(), c.rows(), c.rows()}; }
Body ofQueries(const Case &c) { return bodyOf(c, "attention_query_grad", operandsOfGradients(c), {c.q()}); }
Body ofKeys(const Case &c) { return bodyOf(c, "attention_key_value_grad", operandsOfGradients(c), {c.k(), c.v()}); }

/// All three ops.
std::vector<Body> bodiesOf(const std::vector<Case> &cases) {
  std::vector<Body> all;
  for (const Case &c : cases)
    llvm::append_range(all, std::vector<Body>{forward(c), ofQueries(c), ofKeys(c)});
  return all;
}

/// In halves, masks of floats, too.
std::vector<Case> in(const std::string &element, std::vector<Case> cases) {
  for (Case &c : cases) {
    c.element = element;
    if (size_t at = c.mask.find("f32"); at != std::string::npos)
      c.mask.replace(at, 3, element);
  }
  return cases;
}

/// All three ops of two heads of 16 elements, which products leave inside of 40 items: queries, keys and values behind each other,
/// from `first` on, and the gradient by itself. Masks are by key.
std::vector<Body> ofProducts(const std::string &element, int first) {
  const std::string made = "tensor<?x40x104x" + element + ">", part = "tensor<?x40x32x" + element + ">",
                    split = "tensor<?x40x2x16x" + element + ">", mask = "tensor<?x40xi1>", wide = "tensor<?x1x1x40xi1>",
                    rows = "?";
  std::string moves;
  auto move = [&](const std::string &name, const std::string &from) {
    moves += "%" + name + "r = sluice.reshape " + from + " {shape = array<i64: " + rows + ", 40, 2, 16>} : (" + part +
             ") -> " + split + "\n%" + name + " = sluice.transpose %" + name +
             "r {permutation = array<i64: 0, 2, 1, 3>} : (" + split + ") -> tensor<?x2x40x16x" + element + ">\n";
  };
  int at = first;
  for (std::string name : {"q", "k", "v"}) {
    moves += fmt::format("%{0}s = sluice.slice %0 {{start = array<i64: 0, 0, {1}>, end = array<i64: {2}, 40, {3}>, "
                         "step = array<i64: 1, 1, 1>}} : ({4}) -> {5}\n",
                         name, at, rows, at + 32, made, part);
    move(name, "%" + name + "s");
    at += 32;
  }
  move("g", "%1");
  moves += "%m = sluice.reshape %2 {shape = array<i64: " + rows + ", 1, 1, 40>} : (" + mask + ") -> " + wide + "\n";
  Case its{2, 2, 40, 40, 16, 16, "", "1x1x40xi1"};
  its.element = element;
  std::vector<Body> all = {forward(its), ofQueries(its), ofKeys(its)};
  for (Body &body : all) {
    bool isForward = &body == &all.front();
    std::string from = isForward ? "%0, %1, %2, %3 {" : "%0, %1, %2, %3, %4, %5, %6 {";
    size_t at = body.text.find(from);
    body.text.replace(at, from.size(), isForward ? "%q, %k, %v, %m {" : "%q, %k, %v, %g, %3, %4, %m {");
    body.text = moves + body.text;
    body.operands = {made, part, mask};
    if (!isForward)
      body.operands.insert(body.operands.end(), {its.rows(), its.rows()});
  }
  return all;
}

/// Half of the bools of a mask.
void flipMask(GridRun &run, const Case &c) {
  if (!llvm::StringRef(c.mask).ends_with("i1"))
    return;
  for (size_t i = 0; i < run.inputs.back().data.size(); ++i)
    run.inputs.back().data[i] = i * 2654435761u >> 7 & 1;
}

/// The largest difference in a result, relative to its largest element; checks that nothing outside of results was
/// written.
double relativeError(GridRun &run) {
  double worst = std::isfinite(run.error()) ? 0 : INFINITY;
  for (auto [number, wanted] : llvm::enumerate(run.expected())) {
    ir::HostTensor got = run.output(unsigned(number));
    double largest = 0, difference = 0;
    for (auto [a, b] : llvm::zip_equal(got.data, wanted.data)) {
      if (a == b)
        continue;
      if (!std::isfinite(a - b))
        return INFINITY;
      largest = std::max(largest, std::fabs(b));
      difference = std::max(difference, std::fabs(a - b));
    }
    worst = std::max(worst, largest == 0 ? difference : difference / largest);
  }
  return worst;
}

void expectTheReference(const sluice::test::EmulatedLibrary &library, const Body &body, GridRun &run,
                        double tolerance) {
  ASSERT_EQ(run.kernel.functions.size(), 1u);
  EXPECT_EQ(run.kernel.workspaceBytes, 0) << "scores are stored";
  for (auto [rows, order] : {std::pair(0, "ascending"), {1, "ascending"}, {2, "descending"}}) {
    Schedule schedule(order);
    run.run(library, rows);
    double error = relativeError(run);
    EXPECT_TRUE(error <= tolerance) << body.text << "\nwith " << rows << " rows, " << order << ": " << error;
  }
}

/// All three ops of each case, the gradients with the logsumexp of the same scores.
void expectTheReference(const std::vector<Case> &cases, const GridOptions &options = {}) {
  Grid grid(bodiesOf(cases), options);
  sluice::test::EmulatedLibrary library;
  library.compile(grid.kernels + grid.callers);
  for (auto [number, its] : llvm::enumerate(cases)) {
    GridRun &first = grid.runs[number * 3];
    first.randomize(-1, 1);
    flipMask(first, its);
    double tolerance = options.math != SLUICE_MATH_STRICT ? 0x1p-9 : grid.all[number * 3].tolerance;
    expectTheReference(library, grid.all[number * 3], first, tolerance);
    for (size_t gradient : {number * 3 + 1, number * 3 + 2}) {
      GridRun &run = grid.runs[gradient];
      run.randomize(-1, 1, /*seed=*/2);
      for (size_t operand : {0, 1, 2})
        run.inputs[operand] = first.inputs[operand];
      run.inputs[4] = first.expected()[1];
      if (!its.mask.empty())
        run.inputs.back() = first.inputs.back();
      expectTheReference(library, grid.all[gradient], run, tolerance);
    }
  }
}

/// Tiles and blocks that are full, and such that are not; elements that are no whole fragments; few heads of keys; `causal` with
/// fewer keys than queries, and more.
std::vector<Case> sizes() {
  return {{2, 2, 70, 130, 64, 64},
          {1, 1, 64, 64, 64, 64, ", causal"},
          {2, 2, 3, 5, 4, 3},
          {1, 1, 20, 33, 16, 40},
          {6, 1, 70, 20, 8, 16, ", causal"},
          {4, 2, 150, 150, 16, 16, ", causal"},
          {1, 1, 40, 130, 32, 32, ", causal"},
          {1, 1, 1, 70, 128, 128}};
}

std::vector<Case> masks() {
  std::vector<Case> all;
  for (const char *mask : {"2x70x40xf32", "1x1x40xf32", "2x70x1xf32", "1x70x40xi1", "1x1x40xi1", "1x70x1xi1"})
    all.push_back({2, 1, 70, 40, 16, 16, "", mask});
  all.push_back({2, 2, 70, 40, 16, 16, ", causal", "1x70x40xi1", "", "?", "1"});
  return all;
}

/// An op for a separate test.
struct OpCase : sluice::test::KernelCase {
  explicit OpCase(const Body &body) : KernelCase(body.operands, body.text, body.yields, kCapacity, kLayouts) {}
  std::string reason(const GridOptions &options = {}) {
    return op ? reasonAgainstAttention(&op.getBody().front().front(), options) : diagnostics();
  }
  bool findsItsOperands() {
    EXPECT_TRUE(op) << diagnostics();
    return findsOperands(ops().back(), kCapacity);
  }
};

} // namespace

TEST(AttentionKernel, IsThatOfTheReference) { expectTheReference(sizes()); }

TEST(AttentionKernel, MultipliesHalvesOnTensorCores) {
  std::vector<Case> all = in("bf16", sizes());
  llvm::append_range(all, in("f16", {sizes()[1], sizes()[2]}));
  expectTheReference(all);
}

// Each operand of a product errs by at most 2^-11 of itself.
TEST(AttentionKernel, RoundsOperandsForTensorCores) {
  expectTheReference({sizes()[0], sizes()[2], sizes()[5]}, {.math = SLUICE_MATH_TF32});
}

TEST(AttentionKernel, AddsMasks) {
  std::vector<Case> all = masks(), ofHalves = in("bf16", masks());
  all.insert(all.end(), {ofHalves[0], ofHalves[3], ofHalves[6]});
  expectTheReference(all);
}

TEST(AttentionKernel, AddsOneMaskOnTensorCores) { expectTheReference({in("bf16", masks())[3]}); }

TEST(AttentionKernel, ReadsAndWritesItemsAsTheyLie) {
  Case its{2, 2, 70, 40, 16, 8, ", causal", "", ", #bthd"},
      other{4, 2, 33, 40, 8, 8, "", "1x33x40xi1", ", #hbtd", "3", "3"};
  expectTheReference({its, other, in("bf16", {its})[0]});
}

// Results of products are read in their layout.
TEST(AttentionKernel, ReadsThroughWhatMovesElements) {
  std::vector<Body> all;
  for (const char *element : {"f32", "bf16"})
    llvm::append_range(all, ofProducts(element, 8));
  Grid grid(all);
  sluice::test::EmulatedLibrary library;
  library.compile(grid.kernels + grid.callers);
  for (size_t number = 0; number < all.size(); ++number) {
    GridRun &forward = grid.runs[number / 3 * 3], &run = grid.runs[number];
    forward.randomize(-1, 1);
    std::vector<ir::HostTensor> operands = forward.inputs;
    for (size_t i = 0; i < operands[2].data.size(); ++i)
      operands[2].data[i] = i * 2654435761u >> 7 & 1;
    forward.inputs = operands;
    ir::HostTensor logsumexp = forward.expected()[1];
    run.randomize(-1, 1, /*seed=*/2);
    llvm::copy(operands, run.inputs.begin());
    if (number % 3 > 0)
      run.inputs[3] = logsumexp;
    expectTheReference(library, all[number], run, all[number].tolerance);
  }
}

// Packs of elements must be aligned, and those of an item contiguous.
TEST(AttentionKernel, ReadsThroughNothingThatLiesApart) {
  for (const Body &body : ofProducts("bf16", 8))
    EXPECT_TRUE(OpCase(body).findsItsOperands()) << body.text;
  for (const Body &body : ofProducts("bf16", 4))
    EXPECT_FALSE(OpCase(body).findsItsOperands()) << body.text;
  Case its{2, 2, 16, 16, 16, 16};
  Body turned = forward(its);
  turned.text = "%t = sluice.transpose %0 {permutation = array<i64: 0, 1, 3, 2>} : (" + its.q() + ") -> " + its.q() +
                "\n" + turned.text.replace(turned.text.find("%0"), 2, "%t");
  EXPECT_FALSE(OpCase(turned).findsItsOperands()) << turned.text;
}

// Tests that scores within the range of f32 do not overflow in intermediate values, and that an unused result is not
// stored.
TEST(AttentionKernel, OfLargeScoresIsFinite) {
  Case its{1, 1, 20, 150, 8, 8};
  Body body = forward(its);
  body.yields = "%a#0 : " + its.y();
  Grid grid({body});
  sluice::test::EmulatedLibrary library;
  library.compile(grid.kernels + grid.callers);
  GridRun &run = grid.runs.front();
  run.randomize(-1e4, 1e4);
  run.run(library, 2);
  EXPECT_TRUE(run.error() <= 1) << run.error(); // and writes nothing beyond its result
}

TEST(AttentionKernel, LeavesTheRestToItsFormula) {
  EXPECT_EQ(OpCase(forward({1, 1, 3, 3, 128, 128})).reason(), "");
  EXPECT_NE(OpCase(forward({1, 1, 3, 3, 136, 8})).reason(), "");
  EXPECT_NE(OpCase(forward({1, 1, 3, 3, 8, 136})).reason(), "");
  Case halves = in("bf16", {{1, 1, 3, 3, 8, 8}})[0], doubles = in("f64", {{1, 1, 3, 3, 8, 8}})[0];
  EXPECT_EQ(OpCase(ofKeys(halves)).reason(), "");
  EXPECT_NE(OpCase(ofKeys(halves)).reason({.halfCores = false}), "");
  EXPECT_NE(OpCase(forward(doubles)).reason(), "");
}

TEST(AttentionKernel, FitsItsBudgets) {
  llvm::Expected<Nvrtc> nvrtc = sluice::test::loadPinnedNvrtc();
  if (!nvrtc)
    GTEST_SKIP() << llvm::toString(nvrtc.takeError());
  const std::vector<Case> cases = {{12, 12, 1024, 1024, 64, 64, ", causal"},
                                   {12, 12, 384, 384, 64, 64, "", "1x1x384xi1"},
                                   {8, 2, 512, 512, 128, 128, ", causal"},
                                   {8, 8, 500, 500, 96, 80},
                                   {8, 8, 500, 500, 32, 32}};
  struct Way {
    const char *element;
    bool tf32;
  };
  for (auto [element, tf32] : {Way{"bf16", false}, {"f32", false}, {"f32", true}}) {
    Grid grid(bodiesOf(in(element, cases)), {.math = tf32 ? SLUICE_MATH_TF32 : SLUICE_MATH_STRICT});
    std::vector<GridFunction> functions;
    for (const GridRun &run : grid.runs)
      llvm::append_range(functions, run.kernel.functions);
    std::vector<const char *> architectures{"sm_90"};
    if (std::getenv("SLUICE_TEST_FULL"))
      architectures.push_back("sm_80"); // with as many registers
    for (const char *architecture : architectures) {
      SCOPED_TRACE(std::string(element) + (tf32 ? " in tf32, " : ", ") + architecture);
      llvm::Expected<DeviceCode> code = nvrtc->compile(grid.kernels, architecture);
      ASSERT_TRUE(bool(code)) << llvm::toString(code.takeError());
      expectBudgets(*code, functions);
    }
  }
}

} // namespace sluice::cuda::test
