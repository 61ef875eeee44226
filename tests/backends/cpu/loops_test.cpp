// Kernels without products: generated code against the reference functions.
#include "tests/backends/cpu/KernelRun.h"

#include "backends/cpu/compiler/loops/LaneEmitter.h"
#include "backends/cpu/compiler/loops/LoopNest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>
#include <map>

namespace sluice::cpu::testing {

using namespace mlir;

namespace {

constexpr const char *kNhwc =
    "#nhwc = #sluice.at<layout = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>>\n"
    "#panels = #sluice.at<layout = affine_map<(d0, d1) -> (d0 floordiv 32, d1, d0 mod 32)>>\n";

// Lowers, runs the tasks in order and in random order with all and with few rows, and compares.
void expectRuns(KernelRun &kernel, double low, double high, double tolerance) {
  ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
  kernel.randomize(low, high);
  for (int64_t rows : {7, 3, 1, 0}) {
    kernel.run(rows);
    EXPECT_LE(kernel.error(), tolerance) << "with " << rows << " rows\n"
                                         << (getenv("SLUICE_SHOW") ? kernel.text() : "");
    auto inOrder = kernel.bytes(0);
    kernel.run(rows, /*seed=*/5);
    EXPECT_LE(kernel.error(), tolerance) << "with " << rows << " rows, in random order";
    EXPECT_TRUE(kernel.bytes(0) == inOrder) << "other bits in another order";
  }
}

void expectRuns(const std::vector<std::string> &operands, const std::string &body, const std::string &yields,
                double tolerance = 1e-5, double low = -2, double high = 2) {
  KernelRun kernel(operands, body, yields, 7, kNhwc);
  expectRuns(kernel, low, high, tolerance);
}

// Tests that elementwise ops run over row-major values of any inner size.
TEST(Loops, RunsElementwiseChains) {
  expectRuns({"tensor<?x10xf32>", "tensor<?x10xf32>"},
             "%a = sluice.add %0, %1 : (tensor<?x10xf32>, tensor<?x10xf32>) -> tensor<?x10xf32>\n"
             "%b = sluice.relu %a : (tensor<?x10xf32>) -> tensor<?x10xf32>",
             "%b : tensor<?x10xf32>", 1e-6);
}

TEST(Loops, RunsOneDimensionalRows) {
  expectRuns({"tensor<?xf32>"}, "%a = sluice.square %0 : (tensor<?xf32>) -> tensor<?xf32>", "%a : tensor<?xf32>", 1e-6);
}

TEST(Loops, RunsScalars) {
  expectRuns({"tensor<f32>"}, "%a = sluice.square %0 : (tensor<f32>) -> tensor<f32>", "%a : tensor<f32>", 1e-6);
}

TEST(Loops, RunsLargeStaticValuesInBlocks) {
  expectRuns({"tensor<300x1001xf32>"}, "%a = sluice.neg %0 : (tensor<300x1001xf32>) -> tensor<300x1001xf32>",
             "%a : tensor<300x1001xf32>", 0);
}

TEST(Loops, RunsOnDoubles) {
  expectRuns({"tensor<?x33xf64>"}, "%a = sluice.exp %0 : (tensor<?x33xf64>) -> tensor<?x33xf64>",
             "%a : tensor<?x33xf64>", 1e-14);
}

TEST(Loops, ScalesBytes) {
  expectRuns(
      {"tensor<?x1x5x9xui8>"},
      "%a = sluice.cast %0 {to = f32} : (tensor<?x1x5x9xui8>) -> tensor<?x1x5x9xf32>\n"
      "%c = sluice.full {value = 0.00392156862745098 : f64, type = tensor<?x1x5x9xf32>} : () -> tensor<?x1x5x9xf32>\n"
      "%b = sluice.mul %a, %c : (tensor<?x1x5x9xf32>, tensor<?x1x5x9xf32>) -> tensor<?x1x5x9xf32>",
      "%b : tensor<?x1x5x9xf32>", 1e-6, 0, 256);
}

TEST(Loops, ComparesAndSelects) {
  expectRuns({"tensor<?x21xf32>", "tensor<?x21xf32>"},
             "%a = sluice.compare %0, %1 {predicate = #sluice<predicate lt>} : (tensor<?x21xf32>, tensor<?x21xf32>) -> "
             "tensor<?x21xi1>\n"
             "%b = sluice.not %a : (tensor<?x21xi1>) -> tensor<?x21xi1>\n"
             "%c = sluice.where %b, %0, %1 : (tensor<?x21xi1>, tensor<?x21xf32>, tensor<?x21xf32>) -> tensor<?x21xf32>",
             "%a, %c, %b : tensor<?x21xi1>, tensor<?x21xf32>, tensor<?x21xi1>", 0);
}

TEST(Loops, AddsIntegers) {
  expectRuns({"tensor<?x21xi64>", "tensor<?x21xi64>"},
             "%a = sluice.div %0, %1 : (tensor<?x21xi64>, tensor<?x21xi64>) -> tensor<?x21xi64>",
             "%a : tensor<?x21xi64>", 0, -50, 50);
}

// Tests that one kernel can read the same values in NHWC and NCHW.
TEST(Loops, ConvertsLayouts) {
  expectRuns({"tensor<?x3x5x6xf32>"},
             "%a = sluice.relayout %0 : (tensor<?x3x5x6xf32>) -> tensor<?x3x5x6xf32, #nhwc>\n"
             "%b = sluice.neg %a : (tensor<?x3x5x6xf32, #nhwc>) -> tensor<?x3x5x6xf32, #nhwc>",
             "%b : tensor<?x3x5x6xf32, #nhwc>", 0);
  expectRuns({"tensor<?x20x5x6xf32, #nhwc>"},
             "%a = sluice.relayout %0 : (tensor<?x20x5x6xf32, #nhwc>) -> tensor<?x20x5x6xf32>",
             "%a : tensor<?x20x5x6xf32>", 0);
}

// Tests that padding of panels is written as zero.
TEST(Loops, PadsPanels) {
  expectRuns({"tensor<70x9xf32>"},
             "%a = sluice.exp %0 : (tensor<70x9xf32>) -> tensor<70x9xf32>\n"
             "%b = sluice.relayout %a : (tensor<70x9xf32>) -> tensor<70x9xf32, #panels>",
             "%b : tensor<70x9xf32, #panels>", 1e-6);
  expectRuns(
      {"tensor<70x9xf32, #panels>", "tensor<70x9xf32, #panels>"},
      "%a = sluice.add %0, %1 : (tensor<70x9xf32, #panels>, tensor<70x9xf32, #panels>) -> tensor<70x9xf32, #panels>\n"
      "%b = sluice.exp %a : (tensor<70x9xf32, #panels>) -> tensor<70x9xf32, #panels>",
      "%b : tensor<70x9xf32, #panels>", 1e-6);
}

TEST(Loops, BroadcastsBias) {
  expectRuns({"tensor<?x20x3x3xf32, #nhwc>", "tensor<20xf32>"},
             "%a = sluice.expand %1 {dims = array<i64: 1>, shape = array<i64: ?, 20, 3, 3>} : "
             "(tensor<20xf32>) -> tensor<?x20x3x3xf32, #nhwc>\n"
             "%b = sluice.add %0, %a : (tensor<?x20x3x3xf32, #nhwc>, tensor<?x20x3x3xf32, #nhwc>) -> "
             "tensor<?x20x3x3xf32, #nhwc>",
             "%b : tensor<?x20x3x3xf32, #nhwc>", 1e-6);
}

TEST(Loops, MovesElements) {
  expectRuns({"tensor<?x4x6xf32>"},
             "%a = sluice.transpose %0 {permutation = array<i64: 0, 2, 1>} : (tensor<?x4x6xf32>) -> tensor<?x6x4xf32>\n"
             "%b = sluice.reshape %a {shape = array<i64: ?, 24>} : (tensor<?x6x4xf32>) -> "
             "tensor<?x24xf32>\n"
             "%c = sluice.slice %b {start = array<i64: 0, 1>, end = array<i64: 0, 24>, step = array<i64: 1, 3>} : "
             "(tensor<?x24xf32>) -> tensor<?x8xf32>\n"
             "%d = sluice.pad %c {low = array<i64: 0, 2>, high = array<i64: 0, 1>, interior = array<i64: 0, 1>, value "
             "= 7.0 : f64} : (tensor<?x8xf32>) -> tensor<?x18xf32>\n"
             "%e = sluice.concat %d, %b {axis = 1 : i64} : (tensor<?x18xf32>, tensor<?x24xf32>) -> tensor<?x42xf32>",
             "%e : tensor<?x42xf32>", 0);
}

// Tests that the elements of a constant, which lie in the object's memory, are read by their logical index and as their
// type.
TEST(Loops, ReadsConstants) {
  expectRuns({"tensor<?x5xf32>"},
             "%a = sluice.constant {value = dense<[1.0, 2.0, 3.0, 4.0, 5.0]> : tensor<5xf32>} : () -> tensor<5xf32>\n"
             "%e = sluice.expand %a {dims = array<i64: 1>, shape = array<i64: ?, 5>} : "
             "(tensor<5xf32>) -> tensor<?x5xf32>\n"
             "%b = sluice.mul %0, %e : (tensor<?x5xf32>, tensor<?x5xf32>) -> tensor<?x5xf32>",
             "%b : tensor<?x5xf32>", 1e-6);
}

TEST(Loops, TransposesConstants) {
  expectRuns({"tensor<3x2xf64>"},
             "%a = sluice.constant {value = dense<[[1.0, -2.5, 3.0], [4.0, 5.0, 1.0e-300]]> : tensor<2x3xf64>} : () -> "
             "tensor<2x3xf64>\n"
             "%t = sluice.transpose %a {permutation = array<i64: 1, 0>} : (tensor<2x3xf64>) -> tensor<3x2xf64>\n"
             "%b = sluice.add %0, %t : (tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>",
             "%b : tensor<3x2xf64>", 0);
}

TEST(Loops, SelectsByConstants) {
  expectRuns({"tensor<9xi32>"},
             "%m = sluice.constant {value = dense<[true, false, true, true, false, false, true, false, true]> : "
             "tensor<9xi1>} : () -> tensor<9xi1>\n"
             "%c = sluice.constant {value = dense<[-1, 2, 2147483647, -2147483648, 0, 6, -7, 8, 9]> : tensor<9xi32>} : "
             "() -> tensor<9xi32>\n"
             "%u = sluice.constant {value = dense<[0, 255, 128, 127, 1, 2, 3, 4, 5]> : tensor<9xui8>} : () -> "
             "tensor<9xui8>\n"
             "%w = sluice.cast %u {to = i32} : (tensor<9xui8>) -> tensor<9xi32>\n"
             "%s = sluice.add %0, %w : (tensor<9xi32>, tensor<9xi32>) -> tensor<9xi32>\n"
             "%b = sluice.where %m, %c, %s : (tensor<9xi1>, tensor<9xi32>, tensor<9xi32>) -> tensor<9xi32>",
             "%b, %c : tensor<9xi32>, tensor<9xi32>", 0, -50, 50);
}

// Tests sums over each set of axes of a four-dimensional value, in both layouts.
struct Axes {
  const char *name, *axes, *result;
};
constexpr Axes kAxes[] = {
    {"Rows", "0", "tensor<5x6x19xf32>"},        {"Channels", "1", "tensor<?x6x19xf32>"},
    {"Columns", "3", "tensor<?x5x6xf32>"},      {"AllButChannels", "0, 2, 3", "tensor<5xf32>"},
    {"AllButRows", "1, 2, 3", "tensor<?xf32>"}, {"All", "0, 1, 2, 3", "tensor<f32>"},
};

class Sums : public ::testing::TestWithParam<std::tuple<Axes, const char *>> {};
TEST_P(Sums, OverAxes) {
  auto [axes, encoding] = GetParam();
  std::string type = std::string("tensor<?x5x6x19xf32") + encoding + ">", result = axes.result;
  for (std::string op : {"sum", "mean", "reduce_max"})
    expectRuns({type}, "%a = sluice." + op + " %0 {axes = array<i64: " + axes.axes + ">} : (" + type + ") -> " + result,
               "%a : " + result, op == "sum" ? 1e-4 : 1e-5);
}
std::string nameOfSum(const ::testing::TestParamInfo<Sums::ParamType> &info) {
  auto [axes, encoding] = info.param;
  return std::string(axes.name) + (*encoding ? "Nhwc" : "RowMajor");
}
INSTANTIATE_TEST_SUITE_P(Layouts, Sums,
                         ::testing::Combine(::testing::ValuesIn(kAxes), ::testing::Values("", ", #nhwc")), nameOfSum);

// Tests softmax down columns of any shape: whole vectors of columns, remainders, and few columns.
TEST(Loops, ComputesSoftmaxDownColumns) {
  for (std::string op : {"softmax", "log_softmax"}) {
    for (std::string x : {"tensor<?x10x35xf32>", "tensor<?x21x256xf32>", "tensor<?x37x4xf32>", "tensor<?x5x3x16xf32>",
                          "tensor<?x9x6x6xf32, #nhwc>"})
      expectRuns({x}, "%a = sluice." + op + " %0 {axis = 1 : i64} : (" + x + ") -> " + x, "%a : " + x, 1e-5, -9, 9);
    std::string x = "tensor<?x4x70x33xf32>", y = "tensor<300x129xf32>";
    expectRuns({x}, "%a = sluice." + op + " %0 {axis = 2 : i64} : (" + x + ") -> " + x, "%a : " + x, 1e-5, -9, 9);
    expectRuns({y}, "%a = sluice." + op + " %0 {axis = 0 : i64} : (" + y + ") -> " + y, "%a : " + y, 1e-5, -9, 9);
  }
}

// The trips of the loops around an op of the generated code, the innermost first.
std::vector<int64_t> tripsAround(Operation *op) {
  std::vector<int64_t> all;
  for (Operation *around = op->getParentOp(); around; around = around->getParentOp())
    if (auto trips = around->getAttrOfType<IntegerAttr>(kTripsAttr))
      all.push_back(trips.getInt());
  return all;
}

void withCode(const KernelRun &kernel, llvm::function_ref<void(ModuleOp)> look) {
  MLIRContext context;
  context.allowUnregisteredDialects();
  context.loadDialect<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect, scf::SCFDialect,
                      vector::VectorDialect>();
  OwningOpRef<ModuleOp> code = parseSourceString<ModuleOp>(kernel.text(), &context);
  look(*code);
}

// How often an op of the generated code runs in one task.
double countRuns(const KernelRun &kernel, const std::string &op) {
  double count = 0;
  withCode(kernel, [&](ModuleOp code) {
    code->walk([&](Operation *found) {
      double runs = found->getName().getStringRef() == op ? 1 : 0;
      for (int64_t trips : tripsAround(found))
        runs *= double(trips);
      count += runs;
    });
  });
  return count;
}

KernelRun softmaxOf(const std::string &x, int64_t axis) {
  return KernelRun({x}, "%a = sluice.softmax %0 {axis = " + std::to_string(axis) + " : i64} : (" + x + ") -> " + x,
                   "%a : " + x, 1);
}

// Tests that the work of a softmax is linear in the elements: each is exponentiated once for its sum, and once for its
// result.
TEST(Loops, FoldsColumnsOnce) {
  for (int64_t size : {40, 400, 40000}) { // the last are beyond the second-level cache
    KernelRun kernel =
        softmaxOf("tensor<" + std::to_string(size) + "x" + std::to_string(lanesOf(Target::host())) + "xf32>", 0);
    ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
    ASSERT_EQ(kernel.result().stages.size(), 1u);
    EXPECT_EQ(countRuns(kernel, "math.exp") * double(kernel.result().stages[0].tasks), 2.0 * double(size));
  }
}

// Tests that two weights are drawn with one function, which is called for the keys and the elements of both.
TEST(Loops, DrawsWithOneFunction) {
  KernelRun kernel({"tensor<2xi32>"},
                   "%a = sluice.normal %0 {stream = 3 : i64, a = 0.0 : f64, b = 0.5 : f64, type = tensor<32x64xf32>} : "
                   "(tensor<2xi32>) -> tensor<32x64xf32>\n"
                   "%b = sluice.normal %0 {stream = 4 : i64, a = 1.0 : f64, b = 2.0 : f64, type = tensor<32x64xf32>} : "
                   "(tensor<2xi32>) -> tensor<32x64xf32>",
                   "%a, %b : tensor<32x64xf32>, tensor<32x64xf32>", 1);
  expectRuns(kernel, -9e8, 9e8, 1e-5);
  withCode(kernel, [](ModuleOp code) {
    std::map<std::string, int> calls;
    code->walk([&](func::CallOp call) { ++calls[call.getCallee().str()]; });
    std::string lanes = "." + std::to_string(lanesOf(Target::host()));
    EXPECT_EQ(calls, (std::map<std::string, int>{{"erfinv" + lanes + "xf32", 2}, {"threefry" + lanes + "xi32", 4}}));
    EXPECT_EQ(llvm::count_if(code.getOps<func::FuncOp>(), [](func::FuncOp one) { return one.isPrivate(); }), 2);
  });
}

// Tests that a value computed from a fold is computed once, and so is a fold that uses the value: a mean, and then a
// variance of a row.
TEST(Loops, FoldsARowOnce) {
  for (int64_t size : {64, 640}) {
    std::string x = "tensor<1x" + std::to_string(size) + "xf32>", one = "tensor<f32>";
    KernelRun kernel({x, one, one},
                     "%a = sluice.normalize %0, %1, %2 {axis = 1 : i64, dims = array<i64>, eps = 1.0e-5 : f64} : (" +
                         x + ", " + one + ", " + one + ") -> " + x,
                     "%a : " + x, 1);
    ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
    EXPECT_EQ(countRuns(kernel, "math.sqrt"), 1);
  }
}

// Tests that 128 columns are processed together: counts the loops around an exponential, from inside.
TEST(Loops, WalksDownNeighbouringColumnsTogether) {
  KernelRun kernel = softmaxOf("tensor<5x17x256xf32>", 1);
  ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
  withCode(kernel, [](ModuleOp code) {
    std::vector<std::vector<int64_t>> trips;
    code->walk([&](Operation *op) {
      if (op->getName().getStringRef() != "math.exp")
        return;
      EXPECT_EQ(cast<VectorType>(op->getResult(0).getType()).getNumElements(), 128);
      trips.push_back(tripsAround(op));
    });
    EXPECT_EQ(trips, (std::vector<std::vector<int64_t>>(2, {17, 256 / 128, 2}))); // two of five per task
  });
}

// Tests that sums of few terms stay in registers, one vector at a time: with more columns the partial sums would be in
// memory.
TEST(Loops, ShortSumsTakeAVectorAtATime) {
  KernelRun kernel = softmaxOf("tensor<3x5x256xf32>", 1);
  ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
  withCode(kernel, [](ModuleOp code) {
    int64_t exponentials = 0;
    code->walk([&](Operation *op) {
      if (op->getName().getStringRef() != "math.exp")
        return;
      ++exponentials;
      EXPECT_LE(cast<VectorType>(op->getResult(0).getType()).getNumElements(), 16);
    });
    EXPECT_GT(exponentials, 0);
  });
}

/// The sum of the columns `places` of 64 elements in each row, in the order that backends/loops/Fold.h states: element i
/// goes to partial sum i mod `lanes`, and chunk c to sum c mod 4.
float sumInOrder(int64_t rows, int64_t rowsOfChunk, int64_t lanes,
                 llvm::function_ref<float(int64_t, int64_t)> element) {
  auto tree = [](std::vector<float> &sums) {
    for (size_t half = sums.size() / 2; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i)
        sums[i] += sums[i + half];
    return sums[0];
  };
  std::vector<float> ofChunks(4, 0);
  for (int64_t first = 0; first < rows; first += rowsOfChunk) {
    std::vector<float> partial(size_t(lanes), 0);
    for (int64_t row = first; row < std::min(first + rowsOfChunk, rows); ++row)
      for (int64_t i = 0; i < 64; ++i)
        partial[size_t(i % lanes)] += element(row, i);
    ofChunks[size_t(first / rowsOfChunk % 4)] += tree(partial);
  }
  return tree(ofChunks);
}

// Tests that sums over rows read several cache lines of a row at once, in the stated order.
TEST(Loops, SumsOfRowsReadNeighbouringColumnsTogether) {
  constexpr int64_t rows = 61;
  for (int64_t width : {64, 128, 200, 300}) {
    std::string columns = std::to_string(width), x = "tensor<?x64x" + columns + "xf32>",
                y = "tensor<" + columns + "xf32>";
    KernelRun kernel({x}, "%a = sluice.sum %0 {axes = array<i64: 0, 1>} : (" + x + ") -> " + y, "%a : " + y, 64);
    ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
    withCode(kernel, [&](ModuleOp code) {
      int64_t widest = 0;
      code->walk([&](LLVM::LoadOp load) {
        if (auto vector = dyn_cast<VectorType>(load.getType()))
          widest = std::max(widest, vector.getNumElements());
      });
      EXPECT_GE(widest, 64) << width << " columns";
    });
    kernel.randomize(-9, 9);
    kernel.run(rows);
    int64_t unequal = 0;
    for (int64_t column = 0; column < width; ++column)
      unequal +=
          float(kernel.output(0).data[column]) !=
          sumInOrder(rows, kernel.result().stages[0].rowsPerTask, lanesOf(Target::host()), [&](int64_t row, int64_t i) {
            return float(kernel.inputs[0].data[(row * 64 + i) * width + column]);
          });
    EXPECT_EQ(unequal, 0) << width << " columns";
  }
}

// Tests that two sums over the rows share their stages, and have the bits of two kernels.
TEST(Loops, TwoSumsOfRowsAreOnePass) {
  std::string x = "tensor<?x64x128xf32>", y = "tensor<128xf32>", types = " : (" + x + ", " + x + ") -> " + x + "\n";
  auto sumOf = [&](const std::string &name, const std::string &of) {
    return "%" + name + " = sluice.sum %" + of + " {axes = array<i64: 0, 1>} : (" + x + ") -> " + y + "\n";
  };
  std::string product = "%m = sluice.mul %0, %1" + types;
  KernelRun both({x, x}, sumOf("s", "0") + product + sumOf("t", "m"), "%s, %t : " + y + ", " + y, 61),
      first({x}, sumOf("s", "0"), "%s : " + y, 61), second({x, x}, product + sumOf("t", "m"), "%t : " + y, 61);
  ASSERT_TRUE(both.lowered() && first.lowered() && second.lowered()) << both.diagnostics();
  EXPECT_EQ(both.result().stages.size(), first.result().stages.size());
  both.randomize(-9, 9);
  first.inputs = {both.inputs[0]};
  second.inputs = both.inputs;
  for (int64_t rows : {61, 5, 1, 0}) {
    for (KernelRun *kernel : {&both, &first, &second})
      kernel->run(rows);
    EXPECT_TRUE(both.bytes(0) == first.bytes(0)) << rows << " rows";
    EXPECT_TRUE(both.bytes(1) == second.bytes(0)) << rows << " rows";
    EXPECT_LE(both.error(), 1e-3);
  }
}

// Tests that a sum that reads another one has separate stages.
TEST(Loops, SumsOfSumsAreTwoPasses) {
  std::string x = "tensor<?x64x128xf32>", y = "tensor<128xf32>", types = " : (" + x + ", " + x + ") -> " + x + "\n";
  KernelRun kernel({x},
                   "%s = sluice.sum %0 {axes = array<i64: 0, 1>} : (" + x + ") -> " + y + "\n" +
                       "%e = sluice.expand %s {dims = array<i64: 2>, shape = array<i64: ?, 64, 128>} : (" + y +
                       ") -> " + x + "\n%m = sluice.mul %0, %e" + types +
                       "%t = sluice.sum %m {axes = array<i64: 0, 1>} : (" + x + ") -> " + y,
                   "%s, %t : " + y + ", " + y, 61);
  ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
  kernel.randomize(-1, 1);
  kernel.run(61);
  EXPECT_LE(kernel.error(), 1e-2);
}

// Tests that the sum of a column has the same bits for any number of columns together, and along lanes.
TEST(Loops, ColumnsAreAddedInOneOrder) {
  for (int64_t size : {5, 21, 70, 200}) {
    std::string height = std::to_string(size);
    KernelRun narrow = softmaxOf("tensor<" + height + "x4xf32>", 0),
              along = softmaxOf("tensor<4x" + height + "xf32>", 1);
    ASSERT_TRUE(narrow.lowered() && along.lowered()) << narrow.diagnostics() << along.diagnostics();
    narrow.randomize(-9, 9);
    along.randomize(-9, 9);
    for (int64_t row = 0; row < size; ++row)
      for (int64_t column = 0; column < 4; ++column)
        along.inputs[0].data[column * size + row] = narrow.inputs[0].data[row * 4 + column];
    narrow.run(1);
    along.run(1);
    for (int64_t width : {16, 31, 64, 100, 128, 300}) {
      KernelRun wide = softmaxOf("tensor<" + height + "x" + std::to_string(width) + "xf32>", 0);
      ASSERT_TRUE(wide.lowered()) << wide.diagnostics();
      wide.randomize(-9, 9);
      for (int64_t row = 0; row < size; ++row)
        for (int64_t column = 0; column < width; ++column)
          wide.inputs[0].data[row * width + column] = narrow.inputs[0].data[row * 4 + column % 4];
      wide.run(1);
      ir::HostTensor one = narrow.output(0), other = along.output(0), many = wide.output(0);
      int64_t unequal = 0;
      for (int64_t row = 0; row < size; ++row)
        for (int64_t column = 0; column < width; ++column) {
          double value = many.data[row * width + column];
          unequal += value != one.data[row * 4 + column % 4];
          unequal += value != other.data[column % 4 * size + row];
        }
      EXPECT_EQ(unequal, 0) << size << " rows, " << width << " columns";
    }
  }
}

// Tests that a NaN at any position makes its line NaN, and no other line.
TEST(Loops, SoftmaxOfALineWithNaNIsNaN) {
  for (bool down : {true, false})
    for (int64_t place : {0, 20, 69}) {
      KernelRun kernel = softmaxOf(down ? "tensor<70x3xf32>" : "tensor<3x70xf32>", down ? 0 : 1);
      ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
      kernel.randomize(-9, 9);
      auto at = [&](int64_t line, int64_t i) { return down ? i * 3 + line : line * 70 + i; };
      kernel.inputs[0].data[at(1, place)] = NAN;
      kernel.run(1);
      ir::HostTensor y = kernel.output(0);
      for (int64_t line : {0, 1, 2})
        for (int64_t i = 0; i < 70; ++i)
          EXPECT_EQ(std::isnan(y.data[at(line, i)]), line == 1) << "line " << line << ", element " << i;
    }
}

TEST(Loops, ComputesSoftmaxAndItsGradient) {
  expectRuns({"tensor<?x37xf32>", "tensor<?x37xf32>"},
             "%a = sluice.softmax %0 {axis = 1 : i64} : (tensor<?x37xf32>) -> tensor<?x37xf32>\n"
             "%b = sluice.mul %a, %1 : (tensor<?x37xf32>, tensor<?x37xf32>) -> tensor<?x37xf32>\n"
             "%c = sluice.sum %b {axes = array<i64: 1>} : (tensor<?x37xf32>) -> tensor<?xf32>\n"
             "%d = sluice.expand %c {dims = array<i64: 0>, shape = array<i64: ?, 37>} : "
             "(tensor<?xf32>) -> tensor<?x37xf32>\n"
             "%e = sluice.sub %1, %d : (tensor<?x37xf32>, tensor<?x37xf32>) -> tensor<?x37xf32>\n"
             "%f = sluice.mul %e, %a : (tensor<?x37xf32>, tensor<?x37xf32>) -> tensor<?x37xf32>",
             "%f, %c, %a : tensor<?x37xf32>, tensor<?xf32>, tensor<?x37xf32>");
}

TEST(Loops, ComputesCrossEntropy) {
  expectRuns({"tensor<?x10xf32>", "tensor<?xi32>"},
             "%a = sluice.softmax_cross_entropy %0, %1 : (tensor<?x10xf32>, tensor<?xi32>) -> tensor<?xf32>\n"
             "%b = sluice.mean %a {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>",
             "%b, %a : tensor<f32>, tensor<?xf32>", 1e-5, 0, 9.99);
}

TEST(Loops, FindsTheFirstMaximum) {
  expectRuns({"tensor<?x40xi32>"}, "%a = sluice.argmax %0 {axis = 1 : i64} : (tensor<?x40xi32>) -> tensor<?xi32>",
             "%a : tensor<?xi32>", 0, 0, 10);
}

std::string poolTypes(const std::string &encoding, int64_t h, int64_t w, const std::string &element = "f32") {
  return "tensor<?x9x" + std::to_string(h) + "x" + std::to_string(w) + "x" + element + encoding + ">";
}

TEST(Loops, Pools) {
  for (std::string encoding : {"", ", #nhwc"}) {
    std::string x = poolTypes(encoding, 7, 8), y = poolTypes(encoding, 3, 4), place = poolTypes(encoding, 3, 4, "ui8");
    std::string attributes = "kernel = array<i64: 2, 2>, stride = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>";
    expectRuns({x},
               "%a, %p = sluice.max_pool2d %0 {" + attributes + ", dilation = array<i64: 1, 1>} : (" + x + ") -> (" +
                   y + ", " + place + ")",
               "%a, %p : " + y + ", " + place, 0);
    expectRuns({x}, "%a = sluice.avg_pool2d %0 {" + attributes + "} : (" + x + ") -> " + y, "%a : " + y, 1e-6);
    expectRuns({y, place},
               "%a = sluice.max_pool2d_grad %0, %1 {size = array<i64: 7, 8>, " + attributes +
                   ", dilation = array<i64: 1, 1>} : (" + y + ", " + place + ") -> " + x,
               "%a : " + x, 1e-6, 0, 4);
    expectRuns({y},
               "%a = sluice.avg_pool2d_grad %0 {size = array<i64: 7, 8>, " + attributes + "} : (" + y + ") -> " + x,
               "%a : " + x, 1e-6);
  }
}

TEST(Loops, PoolsOverlappingWindowsWithPadding) {
  for (std::string encoding : {"", ", #nhwc"}) {
    std::string x = poolTypes(encoding, 8, 9), y = poolTypes(encoding, 4, 5), place = poolTypes(encoding, 4, 5, "ui8");
    std::string attributes = "kernel = array<i64: 3, 3>, stride = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>";
    expectRuns({x},
               "%a, %p = sluice.max_pool2d %0 {" + attributes + ", dilation = array<i64: 1, 1>} : (" + x + ") -> (" +
                   y + ", " + place + ")",
               "%a, %p : " + y + ", " + place, 0);
    expectRuns({x}, "%a = sluice.avg_pool2d %0 {" + attributes + "} : (" + x + ") -> " + y, "%a : " + y, 1e-6);
    expectRuns({y, place},
               "%a = sluice.max_pool2d_grad %0, %1 {size = array<i64: 8, 9>, " + attributes +
                   ", dilation = array<i64: 1, 1>} : (" + y + ", " + place + ") -> " + x,
               "%a : " + x, 1e-6, 0, 9);
    expectRuns({y},
               "%a = sluice.avg_pool2d_grad %0 {size = array<i64: 8, 9>, " + attributes + "} : (" + y + ") -> " + x,
               "%a : " + x, 1e-6);
  }
}

// Tests that pixels of few channels are made from images of one channel each: with lanes along the image, whose elements
// are contiguous. Lanes along channels and pixels would divide to find each element. 7 x 9 pixels leave inactive lanes.
TEST(Loops, PermutesImagesToNarrowPixels) {
  for (std::string size : {"7x9", "16x24"})
    for (std::string channels : {"2", "3", "7"}) {
      std::string x = "tensor<?x" + channels + "x" + size, bytes = x + "xui8>", floats = x + "xf32, #nhwc>";
      KernelRun kernel({bytes},
                       "%a = sluice.relayout %0 : (" + bytes + ") -> " + x + "xui8, #nhwc>\n" +
                           "%b = sluice.cast %a {to = f32} : (" + x + "xui8, #nhwc>) -> " + floats,
                       "%b : " + floats, 7, kNhwc);
      expectRuns(kernel, 0, 255, 0);
      EXPECT_EQ(countRuns(kernel, "llvm.intr.masked.gather"), 0) << x;
    }
}

// Tests that loops over windows are split at the borders of the image, so that no load has a condition. Images of
// 70 x 69 are also split among tasks. With a stride of 2, windows leave the image on one side only.
TEST(Loops, WindowsInsideOfTheImageHaveNoConditions) {
  struct Case {
    int64_t height, width, stride;
  };
  for (Case one : {Case{9, 11, 1}, Case{70, 69, 1}, Case{10, 12, 2}}) {
    auto image = [](int64_t height, int64_t width) {
      return "tensor<?x16x" + std::to_string(height) + "x" + std::to_string(width) + "xf32, #nhwc>";
    };
    std::string x = image(one.height, one.width),
                y = image((one.height - 1) / one.stride + 1, (one.width - 1) / one.stride + 1);
    std::string stride = std::to_string(one.stride);
    KernelRun kernel({x},
                     "%a = sluice.avg_pool2d %0 {kernel = array<i64: 3, 3>, stride = array<i64: " + stride + ", " +
                         stride + ">, padding = array<i64: 1, 1, 1, 1>} : (" + x + ") -> " + y,
                     "%a : " + y, 7, kNhwc);
    expectRuns(kernel, -1, 1, 1e-6);
    EXPECT_GT(countRuns(kernel, "llvm.load"), 0);
    EXPECT_EQ(countRuns(kernel, "llvm.intr.masked.load"), 0) << x;
  }
}

// Tests that extrema are found in the order of the layout, which reads whole vectors. Sums keep the order of the
// dimensions.
TEST(Loops, ExtremaOfImagesReadWholeVectors) {
  std::string image = "tensor<2x24x9x11xf32, #nhwc>", rows = "tensor<?x24x9x11xf32, #nhwc>";
  auto reduction = [](const std::string &op, const std::string &axes, const std::string &x, const std::string &y) {
    return "%a = sluice." + op + " %0 {axes = array<i64: " + axes + ">} : (" + x + ") -> " + y;
  };
  for (std::string op : {"reduce_max", "reduce_min"}) {
    KernelRun kernel({image}, reduction(op, "0, 1, 2, 3", image, "tensor<f32>"), "%a : tensor<f32>", 1, kNhwc);
    expectRuns(kernel, -2, 2, 0);
    EXPECT_EQ(countRuns(kernel, "llvm.intr.masked.gather"), 0);
    expectRuns({rows}, reduction(op, "0, 1, 2, 3", rows, "tensor<f32>"), "%a : tensor<f32>", 0);
    expectRuns({rows}, reduction(op, "1, 3", rows, "tensor<?x9xf32>"), "%a : tensor<?x9xf32>", 0);
    expectRuns({rows}, reduction(op, "0, 2", rows, "tensor<24x11xf32>"), "%a : tensor<24x11xf32>", 0);
  }
  expectRuns({rows}, reduction("sum", "0, 1, 2, 3", rows, "tensor<f32>"), "%a : tensor<f32>", 1e-3);
}

/// The numbers of ordinary and of masked loads whose address is replaced by the first element's if a condition fails.
std::pair<int, int> conditionalLoads(const KernelRun &kernel) {
  std::pair<int, int> loads{0, 0};
  withCode(kernel, [&](ModuleOp code) {
    code->walk([&](Operation *op) {
      auto load = dyn_cast<LLVM::LoadOp>(op);
      auto masked = dyn_cast<LLVM::MaskedLoadOp>(op);
      if (!load && !masked)
        return;
      auto address = (load ? load.getAddr() : masked.getData()).getDefiningOp<LLVM::GEPOp>();
      bool isReplaced = address && address.getDynamicIndices().size() == 1 &&
                        address.getDynamicIndices()[0].getDefiningOp<arith::SelectOp>();
      EXPECT_TRUE(load || isReplaced);
      (load ? loads.first : loads.second) += isReplaced;
    });
  });
  return loads;
}

// Tests that a load outside of the image reads the first element without active lanes. On some processors, a masked load
// at an unmapped address takes a hundred times as long. Windows of 25 terms are loops, whose loads have conditions. The
// vectors of 17 channels have inactive lanes; those of 32 channels need no mask.
TEST(Loops, LoadsOutsideOfTheImageHaveValidAddresses) {
  for (int64_t channels : {17, 32}) {
    std::string image = "tensor<?x" + std::to_string(channels) + "x9x11xf32, #nhwc>";
    KernelRun kernel({image},
                     "%a = sluice.avg_pool2d %0 {kernel = array<i64: 5, 5>, stride = array<i64: 1, 1>, padding = "
                     "array<i64: 2, 2, 2, 2>} : (" +
                         image + ") -> " + image,
                     "%a : " + image, 7, kNhwc);
    expectRuns(kernel, -1, 1, 1e-6);
    auto [loads, masked] = conditionalLoads(kernel);
    EXPECT_GT(channels == 32 ? loads : masked, 0);
    EXPECT_EQ(channels == 32 ? masked : 0, 0);
  }
}

// Tests that the gradient of a pool needs no masked loads of bytes in a kernel that also sums it. AVX2 has none.
TEST(Loops, SumsOfPoolGradientsLoadWholeVectors) {
  std::string x = "tensor<?x32x8x9xf32, #nhwc>", y = "tensor<?x32x4x5xf32, #nhwc>",
              place = "tensor<?x32x4x5xui8, #nhwc>";
  KernelRun kernel({y, place},
                   "%a = sluice.max_pool2d_grad %0, %1 {size = array<i64: 8, 9>, kernel = array<i64: 3, 3>, stride = "
                   "array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>} : (" +
                       y + ", " + place + ") -> " + x + "\n%s = sluice.sum %a {axes = array<i64: 0, 2, 3>} : (" + x +
                       ") -> tensor<32xf32>",
                   "%a, %s : " + x + ", tensor<32xf32>", 64, kNhwc);
  expectRuns(kernel, 0, 9, 1e-4);
  EXPECT_GT(conditionalLoads(kernel).first, 0);
  EXPECT_EQ(countRuns(kernel, "llvm.intr.masked.load"), 0);
}

} // namespace
} // namespace sluice::cpu::testing
