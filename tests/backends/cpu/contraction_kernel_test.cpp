// Kernels around a product or convolution: operands, layouts and epilogues, against the reference functions.
#include "backends/cpu/compiler/product/Contraction.h"
#include "tests/backends/cpu/KernelRun.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>
#include <tuple>

namespace sluice::cpu::testing {

using namespace mlir;

namespace {

// Types and layouts for one element type.
struct Types {
  std::string element;
  std::string aliases(int64_t channels) const {
    std::string panel = std::to_string(panelWidth(channels, element == "f64" ? 64 : 32, Target::host()));
    return "#nhwc = #sluice.at<layout = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>>\n"
           "#filter = #sluice.at<layout = affine_map<(d0, d1, d2, d3) -> (d0 floordiv " +
           panel + ", d2, d3, d1, d0 mod " + panel +
           ")>>\n#panels = #sluice.at<layout = affine_map<(d0, d1) -> (d0 floordiv " + panel + ", d1, d0 mod " + panel +
           ")>>\n#columns = #sluice.at<layout = affine_map<(d0, d1) -> (d1 floordiv " + panel + ", d0, d1 mod " +
           panel + ")>>\n";
  }
  std::string tensor(const std::string &shape, const std::string &layout = "") const {
    return "tensor<" + shape + (shape.empty() ? "" : "x") + element + (layout.empty() ? "" : ", #" + layout) + ">";
  }
};

// Tests that properties reported before code generation match the generated code.
void expectDescribed(KernelRun &kernel) {
  auto stagesOf = [](const LoweredKernel &lowered) {
    std::vector<std::tuple<std::string, int64_t, int64_t>> stages;
    for (const Stage &stage : lowered.stages)
      stages.emplace_back(stage.function, stage.tasks, stage.rowsPerTask);
    return stages;
  };
  LoweredKernel described = kernel.described();
  EXPECT_FALSE(described.hasBodies);
  EXPECT_EQ(stagesOf(described), stagesOf(kernel.result()));
  EXPECT_EQ(described.workspaceBytes, kernel.result().workspaceBytes);
  EXPECT_EQ(described.lanes, kernel.result().lanes);
}

/// Numbers with so few digits that their products, and sums of these in f32, are exact.
void makeCoarse(KernelRun &kernel) {
  for (ir::HostTensor &input : kernel.inputs)
    for (double &value : input.data)
      value = std::round(value * 64) / 64;
}

/// With a tolerance of 0, operands are coarse, so that only the rounding of results remains.
void expectRuns(KernelRun &kernel, double tolerance) {
  ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
  expectDescribed(kernel);
  kernel.randomize(-1, 1);
  if (tolerance == 0)
    makeCoarse(kernel);
  for (int64_t rows : {7, 2, 1}) {
    kernel.run(rows);
    EXPECT_LE(kernel.error(), tolerance) << "with " << rows << " rows";
    auto inOrder = kernel.bytes(0);
    kernel.run(rows, /*seed=*/3);
    EXPECT_TRUE(kernel.bytes(0) == inOrder) << "other bits in another order";
  }
}

class ContractionKernels : public ::testing::TestWithParam<const char *> {
protected:
  Types t{GetParam()};
  bool isHalf = t.element == "f16" || t.element == "bf16";
  double tolerance = isHalf ? 0 : t.element == "f64" ? 1e-13 : 2e-5;
  const std::string window =
      "stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 1, 1, 1, 1>";

  std::string expandChannels(const std::string &name, const std::string &from, const std::string &shape,
                             const std::string &sizes, const std::string &layout) {
    return "%" + name + " = sluice.expand %" + from + " {dims = array<i64: 1>, shape = array<i64: ?, " + sizes +
           ">} : (" + t.tensor("20") + ") -> " + t.tensor(shape, layout) + "\n";
  }
};

TEST_P(ContractionKernels, ConvolvesWithBiasAndRelu) {
  std::string x = t.tensor("?x3x6x5", "nhwc"), w = t.tensor("20x3x3x3", "filter"), y = t.tensor("?x20x6x5", "nhwc");
  KernelRun kernel({x, w, t.tensor("20")},
                   "%a = sluice.conv2d %0, %1 {" + window + "} : (" + x + ", " + w + ") -> " + y + "\n" +
                       expandChannels("b", "2", "?x20x6x5", "20, 6, 5", "nhwc") + "%c = sluice.add %a, %b : (" + y +
                       ", " + y + ") -> " + y + "\n%d = sluice.relu %c : (" + y + ") -> " + y,
                   "%d, %a : " + y + ", " + y, 7, t.aliases(20));
  expectRuns(kernel, tolerance);
}

// A long epilogue of sums of many terms is a loop over the rows of a tile. The last tile has fewer rows.
TEST_P(ContractionKernels, LoopOverRowsInALongEpilogue) {
  std::string x = t.tensor("?x15x6x5", "nhwc"), w = t.tensor("20x15x3x3", "filter"), y = t.tensor("?x20x6x5", "nhwc");
  auto epilogue = [](const std::string &type) {
    std::string types = " : (" + type + ", " + type + ") -> " + type + "\n";
    return "%b = sluice.sub %a, %2" + types + "%c = sluice.mul %b, %2" + types + "%d = sluice.add %c, %a" + types +
           "%e = sluice.sub %d, %c" + types + "%f = sluice.add %e, %2" + types;
  };
  KernelRun convolution(
      {x, w, y}, "%a = sluice.conv2d %0, %1 {" + window + "} : (" + x + ", " + w + ") -> " + y + "\n" + epilogue(y),
      "%f, %c : " + y + ", " + y, 7, t.aliases(20));
  expectRuns(convolution, 2 * tolerance); // the epilogue adds five roundings

  std::string a = t.tensor("?x140"), b = t.tensor("20x140", "panels"), c = t.tensor("?x20");
  KernelRun product({a, b, c},
                    "%a = sluice.einsum \"ab,cb->ac\" %0, %1 : (" + a + ", " + b + ") -> " + c + "\n" + epilogue(c),
                    "%f, %c : " + c + ", " + c, 7, t.aliases(20));
  expectRuns(product, 2 * tolerance);
}

/// The divisions in the generated code whose results are used.
int countDivisions(const KernelRun &kernel) {
  MLIRContext context;
  context.allowUnregisteredDialects();
  context
      .loadDialect<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, scf::SCFDialect, vector::VectorDialect>();
  OwningOpRef<ModuleOp> code = parseSourceString<ModuleOp>(kernel.text(), &context);
  int count = 0;
  code->walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
    if (isOpTriviallyDead(op))
      op->erase();
    else
      count += isa<arith::DivUIOp, arith::RemUIOp>(op);
  });
  return count;
}

// A pointwise convolution is a product over all pixels. The epilogue's values at a pixel are at the same offset as its
// sums; to find it, the pixel's row and column are not needed.
TEST_P(ContractionKernels, EpiloguesOfAllPixelsDivideNoPixel) {
  if (isHalf)
    return;
  std::string x = t.tensor("?x16x6x5", "nhwc"), w = t.tensor("20x16x1x1", "filter"), y = t.tensor("?x20x6x5", "nhwc");
  std::string point =
      "stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 0, 0, 0, 0>";
  std::string product = "%a = sluice.conv2d %0, %1 {" + point + "} : (" + x + ", " + w + ") -> " + y + "\n";
  KernelRun alone({x, w}, product, "%a : " + y, 7, t.aliases(20));
  KernelRun kernel({x, w, y, t.tensor("20")},
                   product + expandChannels("b", "3", "?x20x6x5", "20, 6, 5", "nhwc") + "%c = sluice.add %a, %b : (" +
                       y + ", " + y + ") -> " + y + "\n%d = sluice.sub %c, %2 : (" + y + ", " + y + ") -> " + y,
                   "%d, %a : " + y + ", " + y, 7, t.aliases(20));
  expectRuns(kernel, tolerance);
  EXPECT_EQ(countDivisions(kernel), countDivisions(alone)) << kernel.text();
}

TEST_P(ContractionKernels, ConvolvesWithoutEpilogue) {
  std::string x = t.tensor("?x1x6x5"), w = t.tensor("20x1x3x3", "filter"), y = t.tensor("?x20x6x5", "nhwc");
  KernelRun kernel({x, w}, "%a = sluice.conv2d %0, %1 {" + window + "} : (" + x + ", " + w + ") -> " + y, "%a : " + y,
                   7, t.aliases(20));
  expectRuns(kernel, tolerance);
}

TEST_P(ContractionKernels, MakesInputGradients) {
  std::string dy = t.tensor("?x20x6x5", "nhwc"), w = t.tensor("20x3x3x3", "filter"), x = t.tensor("?x3x6x5", "nhwc");
  KernelRun kernel({dy, w, x},
                   "%a = sluice.conv2d_input_grad %0, %1 {size = array<i64: 6, 5>, " + window + "} : (" + dy + ", " +
                       w + ") -> " + x + "\n%b = sluice.mul %a, %2 : (" + x + ", " + x + ") -> " + x,
                   "%b : " + x, 7, t.aliases(20));
  expectRuns(kernel, tolerance);
}

// One channel is one lane, which has no contiguous dimension if the result is row-major.
TEST_P(ContractionKernels, StoreOneChannelInAnyLayout) {
  std::string dy = t.tensor("?x20x6x5", "nhwc"), w = t.tensor("20x1x3x3", "filter"), x = t.tensor("?x1x6x5");
  KernelRun gradient({dy, w, x},
                     "%a = sluice.conv2d_input_grad %0, %1 {size = array<i64: 6, 5>, " + window + "} : (" + dy + ", " +
                         w + ") -> " + x + "\n%b = sluice.mul %a, %2 : (" + x + ", " + x + ") -> " + x,
                     "%b : " + x, 7, t.aliases(20));
  expectRuns(gradient, tolerance);

  std::string image = t.tensor("?x3x6x5", "nhwc"), filter = t.tensor("1x3x3x3", "filter");
  KernelRun forward({image, filter},
                    "%a = sluice.conv2d %0, %1 {" + window + "} : (" + image + ", " + filter + ") -> " + x +
                        "\n%b = sluice.relu %a : (" + x + ") -> " + x,
                    "%b : " + x, 7, t.aliases(1));
  expectRuns(forward, tolerance);
}

TEST_P(ContractionKernels, UpdatesFiltersInTheEpilogue) {
  std::string x = t.tensor("?x3x6x5", "nhwc"), dy = t.tensor("?x20x6x5", "nhwc"), w = t.tensor("20x3x3x3", "filter");
  KernelRun kernel({x, dy, w, t.tensor("")},
                   "%a = sluice.conv2d_weight_grad %0, %1 {size = array<i64: 3, 3>, " + window + "} : (" + x + ", " +
                       dy + ") -> " + w +
                       "\n%lr = sluice.expand %3 {dims = array<i64>, shape = array<i64: 20, 3, 3, 3>} : (" +
                       t.tensor("") + ") -> " + w + "\n%s = sluice.mul %a, %lr : (" + w + ", " + w + ") -> " + w +
                       "\n%n = sluice.sub %2, %s : (" + w + ", " + w + ") -> " + w,
                   "%n, %a : " + w + ", " + w, 7, t.aliases(20));
  expectRuns(kernel, tolerance);
}

// A weight gradient computes its image from another image as it copies the pixels, with the bits of an image in memory.
// 70 channels are no multiple of the tiles and the vectors; with strides and padding, taps leave the image, where no
// pixel is read.
TEST_P(ContractionKernels, ComputesTheImageOfAWeightGradient) {
  if (isHalf)
    return;
  struct Case {
    std::string kernel, stride, padding, output;
  };
  for (const Case &one : {Case{"1", "1", "0", "9x7"}, Case{"3", "2", "1", "5x4"}}) {
    std::string x = t.tensor("?x70x9x7", "nhwc"), dy = t.tensor("?x72x" + one.output, "nhwc"), vector = t.tensor("70"),
                w = t.tensor("72x70x" + one.kernel + "x" + one.kernel, "filter");
    auto expand = [&](const std::string &name, const std::string &from) {
      return "%" + name + " = sluice.expand %" + from + " {dims = array<i64: 1>, shape = array<i64: ?, 70, 9, 7>} : (" +
             vector + ") -> " + x + "\n";
    };
    std::string types = " : (" + x + ", " + x + ") -> " + x + "\n";
    std::string image = expand("m", "2") + expand("f", "3") + "%s = sluice.sub %0, %m" + types +
                        "%t = sluice.mul %s, %f" + types + "%z = sluice.add %t, %m" + types +
                        "%y = sluice.relu %z : (" + x + ") -> " + x + "\n";
    auto gradientOf = [&](const std::string &image) {
      return "%a = sluice.conv2d_weight_grad %" + image + ", %1 {size = array<i64: " + one.kernel + ", " + one.kernel +
             ">, stride = array<i64: " + one.stride + ", " + one.stride +
             ">, dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: " + one.padding + ", " +
             one.padding + ", " + one.padding + ", " + one.padding + ">} : (" + x + ", " + dy + ") -> " + w;
    };
    KernelRun computed({x, dy, vector, vector}, image + gradientOf("y"), "%a : " + w, 7, t.aliases(72)),
        images({x, dy, vector, vector}, image, "%y : " + x, 7, t.aliases(72)),
        alone({x, dy}, gradientOf("0"), "%a : " + w, 7, t.aliases(72));
    ASSERT_TRUE(computed.lowered() && images.lowered() && alone.lowered()) << computed.diagnostics();
    expectRuns(computed, 4 * tolerance);
    images.inputs = computed.inputs;
    images.run(1);
    alone.inputs = {images.output(0), computed.inputs[1]};
    alone.run(1);
    computed.run(1);
    EXPECT_TRUE(computed.bytes(0) == alone.bytes(0)) << one.kernel << " stride " << one.stride;
  }
}

TEST_P(ContractionKernels, MultipliesByPanels) {
  for (std::string n : {"10", "100"}) {
    std::string x = t.tensor("?x33"), w = t.tensor(n + "x33", "panels"), y = t.tensor("?x" + n), bias = t.tensor(n);
    KernelRun kernel({x, w, bias},
                     "%a = sluice.einsum \"ab,cb->ac\" %0, %1 : (" + x + ", " + w + ") -> " + y +
                         "\n%b = sluice.expand %2 {dims = array<i64: 1>, shape = array<i64: ?, " + n + ">} : (" + bias +
                         ") -> " + y + "\n%c = sluice.add %a, %b : (" + y + ", " + y + ") -> " + y,
                     "%c : " + y, 7, t.aliases(std::stoi(n)));
    expectRuns(kernel, tolerance);
    KernelRun gradient({y, w}, "%a = sluice.einsum \"ab,bc->ac\" %0, %1 : (" + y + ", " + w + ") -> " + x, "%a : " + x,
                       7, t.aliases(std::stoi(n)));
    expectRuns(gradient, tolerance);
  }
}

TEST_P(ContractionKernels, MakesWeightGradientsInPanels) {
  for (std::string n : {"10", "70", "64"}) {
    std::string x = t.tensor("?x33"), dy = t.tensor("?x" + n), w = t.tensor(n + "x33", "panels");
    KernelRun kernel({dy, x, w},
                     "%a = sluice.einsum \"ab,ac->bc\" %0, %1 : (" + dy + ", " + x + ") -> " + w +
                         "\n%b = sluice.sub %2, %a : (" + w + ", " + w + ") -> " + w,
                     "%b, %a : " + w + ", " + w, 7, t.aliases(std::stoi(n)));
    expectRuns(kernel, tolerance);
    KernelRun plain({dy, x}, "%a = sluice.einsum \"ab,ac->bc\" %0, %1 : (" + dy + ", " + x + ") -> " + w, "%a : " + w,
                    7, t.aliases(std::stoi(n)));
    expectRuns(plain, tolerance);
  }
}

// A product and its input and weight gradients, with the weight [in, out] in panels along its second dimension.
TEST_P(ContractionKernels, MultipliesByPanelsOfColumns) {
  for (std::string n : {"10", "64", "100"}) {
    std::string x = t.tensor("?x33"), w = t.tensor("33x" + n, "columns"), y = t.tensor("?x" + n);
    KernelRun forward({x, w}, "%a = sluice.einsum \"ab,bc->ac\" %0, %1 : (" + x + ", " + w + ") -> " + y, "%a : " + y,
                      7, t.aliases(std::stoi(n)));
    expectRuns(forward, tolerance);
    KernelRun inputs({y, w}, "%a = sluice.einsum \"ab,cb->ac\" %0, %1 : (" + y + ", " + w + ") -> " + x, "%a : " + x, 7,
                     t.aliases(std::stoi(n)));
    expectRuns(inputs, tolerance);
    KernelRun weights({x, y, w},
                      "%a = sluice.einsum \"ab,ac->bc\" %0, %1 : (" + x + ", " + y + ") -> " + w +
                          "\n%b = sluice.sub %2, %a : (" + w + ", " + w + ") -> " + w,
                      "%b, %a : " + w + ", " + w, 7, t.aliases(std::stoi(n)));
    expectRuns(weights, tolerance);
  }
}

TEST_P(ContractionKernels, MultipliesRowMajorInAllTranspositions) {
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      std::string a = ta ? t.tensor("9x5") : t.tensor("5x9"), b = tb ? t.tensor("21x9") : t.tensor("9x21"),
                  y = t.tensor("5x21");
      std::string equation = ta ? (tb ? "ab,ca->bc" : "ab,ac->bc") : (tb ? "ab,cb->ac" : "ab,bc->ac");
      KernelRun kernel({a, b}, "%a = sluice.einsum \"" + equation + "\" %0, %1 : (" + a + ", " + b + ") -> " + y,
                       "%a : " + y, 7);
      expectRuns(kernel, tolerance);
    }
  std::string a = t.tensor("?x2x5x9"), b = t.tensor("?x2x9x21"), y = t.tensor("?x2x5x21");
  KernelRun batched({a, b},
                    "%a = sluice.einsum \"abcd,abde->abce\" %0, %1 : (" + a + ", " + b + ") -> " + y +
                        "\n%b = sluice.exp %a : (" + y + ") -> " + y,
                    "%b : " + y, 7);
  expectRuns(batched, isHalf ? 0x1p-5 : tolerance * 100);
}

INSTANTIATE_TEST_SUITE_P(Elements, ContractionKernels, ::testing::Values("f32", "f64", "f16", "bf16"),
                         [](const auto &info) { return std::string(info.param); });

// Tests products in f32 of operands in f16 and bf16. The product reads weights in panels in their stored type. A stage
// before it widens all other operands.
TEST(ContractionKernels, WidensOperands) {
  Types wide{"f32"};
  for (Types half : {Types{"f16"}, Types{"bf16"}})
    for (std::string layout : {"panels", "columns", ""}) {
      int64_t n = half.element == "f16" ? 10 : 100;
      bool isTransposed = layout == "panels";
      std::string columns = std::to_string(n), x = "?x33", w = isTransposed ? columns + "x33" : "33x" + columns;
      auto cast = [&](const std::string &name, const std::string &from, const std::string &type,
                      const std::string &layout) {
        return "%" + name + " = sluice.cast %" + from + " {to = f32} : (" + half.tensor(type, layout) + ") -> " +
               wide.tensor(type, layout) + "\n";
      };
      KernelRun kernel({half.tensor(x), half.tensor(w, layout)},
                       cast("x", "0", x, "") + cast("w", "1", w, layout) + "%a = sluice.einsum \"" +
                           (isTransposed ? "ab,cb->ac" : "ab,bc->ac") + "\" %x, %w : (" + wide.tensor(x) + ", " +
                           wide.tensor(w, layout) + ") -> " + wide.tensor("?x" + columns),
                       "%a : " + wide.tensor("?x" + columns), 7, wide.aliases(n));
      expectRuns(kernel, 2e-5);
      size_t widened = layout.empty() ? 2 : 1;
      EXPECT_EQ(kernel.result().stages.size(), widened + 1);
    }
}

TEST(ContractionKernelErrors, NamesWhatItCannotDo) {
  KernelRun computed(
      {"tensor<?x8xf32>", "tensor<8x8xf32>"},
      "%a = sluice.exp %0 : (tensor<?x8xf32>) -> tensor<?x8xf32>\n%b = sluice.einsum \"ab,bc->ac\" %a, %1 : "
      "(tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>",
      "%b : tensor<?x8xf32>", 7);
  EXPECT_FALSE(computed.lowered());
  EXPECT_NE(computed.diagnostics().find("operand 0 is computed in the same kernel"), std::string::npos)
      << computed.diagnostics();

  std::string nchw = "tensor<?x3x6x5xf32>", w = "tensor<8x3x3x3xf32>", y = "tensor<?x8x4x3xf32>";
  KernelRun layout({nchw, w},
                   "%a = sluice.conv2d %0, %1 {stride = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = "
                   "array<i64: 1, 1>, groups = 1 : i64} : (" +
                       nchw + ", " + w + ") -> " + y,
                   "%a : " + y, 7);
  EXPECT_FALSE(layout.lowered());
  EXPECT_NE(layout.diagnostics().find("not NHWC"), std::string::npos) << layout.diagnostics();
}

} // namespace
} // namespace sluice::cpu::testing
