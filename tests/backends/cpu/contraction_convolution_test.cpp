// All three passes of convolutions against plain loops in double precision.
#include "ConvolutionCase.h"
#include "backends/cpu/compiler/product/window/WeightGradientPlan.h"
#include "contraction_runner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

namespace sluice::cpu::testing {
namespace {

using Case = ConvolutionCase;

Convolution::Axis axis(int64_t input, int64_t kernel, int64_t stride = 1, int64_t pad = 0, int64_t dilation = 1) {
  return {input, kernel, stride, dilation, pad, pad};
}

class ConvolutionTest : public ::testing::TestWithParam<Case> {};

enum class Pass { Forward, InputGradient, WeightGradient };

// One pass of one case for one element type and target.
template <typename T> struct Check {
  const Case &c;
  const Target &target;
  int64_t panel = panelWidth(c.o, sizeof(T) * 8, target);
  int64_t oh = c.h.output(), ow = c.w.output();
  int64_t xCount = c.rows * c.h.input * c.w.input * c.c;
  int64_t yCount = c.rows * oh * ow * c.o;
  int64_t wCount = (c.o + panel - 1) / panel * panel * c.h.kernel * c.w.kernel * c.c;

  int64_t x(int64_t n, int64_t i, int64_t j, int64_t ch) const {
    return ((n * c.h.input + i) * c.w.input + j) * c.c + ch;
  }
  int64_t y(int64_t n, int64_t i, int64_t j, int64_t ch) const { return ((n * oh + i) * ow + j) * c.o + ch; }
  int64_t w(int64_t o, int64_t i, int64_t j, int64_t ch) const {
    return (((o / panel * c.h.kernel + i) * c.w.kernel + j) * c.c + ch) * panel + o % panel;
  }

  // Calls f(place in x, in w, in y) for every product of the convolution.
  template <typename F> void everyProduct(F f) const {
    for (int64_t n = 0; n < c.call; ++n)
      for (int64_t i = 0; i < oh; ++i)
        for (int64_t j = 0; j < ow; ++j)
          for (int64_t ki = 0; ki < c.h.kernel; ++ki)
            for (int64_t kj = 0; kj < c.w.kernel; ++kj) {
              int64_t row = i * c.h.stride + ki * c.h.dilation - c.h.padBefore;
              int64_t column = j * c.w.stride + kj * c.w.dilation - c.w.padBefore;
              if (row < 0 || row >= c.h.input || column < 0 || column >= c.w.input)
                continue;
              for (int64_t ch = 0; ch < c.c; ++ch)
                for (int64_t o = 0; o < c.o; ++o)
                  f(x(n, row, column, ch), w(o, ki, kj, ch), y(n, i, j, o));
            }
  }

  Array<T> weights() const {
    Array<T> random = randomArray<T>(wCount, 3), array(wCount, T(0));
    for (int64_t o = 0; o < c.o; ++o)
      for (int64_t ki = 0; ki < c.h.kernel; ++ki)
        for (int64_t kj = 0; kj < c.w.kernel; ++kj)
          for (int64_t ch = 0; ch < c.c; ++ch)
            array[w(o, ki, kj, ch)] = random[w(o, ki, kj, ch)];
    return array;
  }

  void run(Pass pass) const {
    Program program(
        [&](mlir::ModuleOp module, mlir::Location loc, mlir::Type f32, mlir::Type f64) {
          Convolution op;
          op.element = sizeof(T) == 4 ? f32 : f64;
          op.rows = c.rows;
          op.inputChannels = c.c, op.outputChannels = c.o, op.panel = panel;
          op.height = c.h, op.width = c.w;
          op.input = {0, 0}, op.weights = {1, 0}, op.output = {2, 0}, op.workspace = {3, 0};
          EXPECT_EQ(unsupported(op), "");
          auto emit = pass == Pass::Forward         ? emitConvolution
                      : pass == Pass::InputGradient ? emitConvolutionInputGradient
                                                    : emitConvolutionWeightGradient;
          return emit(module, "convolution", loc, op, target);
        },
        target);

    Array<T> xs = randomArray<T>(xCount, 1), ws = weights(), ys = randomArray<T>(yCount, 2);
    int64_t size = pass == Pass::Forward ? yCount : pass == Pass::InputGradient ? xCount : wCount;
    std::vector<double> expected(size, 0.0), terms(size, 0.0);
    everyProduct([&](int64_t xi, int64_t wi, int64_t yi) {
      double a = pass == Pass::InputGradient ? ys[yi] : xs[xi];
      double b = pass == Pass::WeightGradient ? ys[yi] : ws[wi];
      int64_t to = pass == Pass::Forward ? yi : pass == Pass::InputGradient ? xi : wi;
      expected[to] += a * b;
      terms[to] += 1;
    });

    std::vector<T> first;
    for (Order order : {Order::AllAtOnce, Order::OneByOne, Order::Backwards}) {
      Array<T> out(size, T(777));
      Array<T> workspace(program.contraction.workspaceBytes / sizeof(T), T(std::nan("")));
      T *x = pass == Pass::InputGradient ? out.data() : xs.data();
      T *w = pass == Pass::WeightGradient ? out.data() : ws.data();
      T *y = pass == Pass::Forward ? out.data() : ys.data();
      program.run({x, w, y, workspace.data()}, c.call, order);
      std::vector<T> all(out.data(), out.data() + size);
      if (first.empty())
        first = all;
      ASSERT_EQ(std::memcmp(first.data(), all.data(), size * sizeof(T)), 0) << "the order of tasks changed the bits";
    }
    int64_t used = pass == Pass::Forward         ? c.call * oh * ow * c.o
                   : pass == Pass::InputGradient ? c.call * c.h.input * c.w.input * c.c
                                                 : size;
    for (int64_t i = 0; i < size; ++i) {
      bool exists = i < used && (pass != Pass::WeightGradient ||
                                 i % panel + i / (wCount / ((c.o + panel - 1) / panel)) * panel < c.o);
      if (!exists) {
        ASSERT_EQ(first[i], T(777)) << "place " << i << " is not part of the result";
        continue;
      }
      double tolerance = (sizeof(T) == 4 ? 1e-6 : 1e-14) * std::sqrt(terms[i] + 1) * 4;
      ASSERT_NEAR(first[i], expected[i], tolerance) << "at " << i << " with vectors of " << target.vectorBits;
    }
  }
};

static void checkAll(const Case &c, Pass pass) {
  std::vector<Target> targets = testTargets();
  if (c.l2)
    for (Target &target : targets)
      target.l2 = c.l2;
  for (size_t number = 0; number < 2 * targets.size() && !::testing::Test::HasFatalFailure(); ++number)
    if (isSampled(number, 2 * targets.size(), c.name + std::to_string(int(pass)))) {
      const Target &target = targets[number / 2];
      number % 2 ? Check<double>{c, target}.run(pass) : Check<float>{c, target}.run(pass);
    }
}

TEST_P(ConvolutionTest, Forward) { checkAll(GetParam(), Pass::Forward); }
TEST_P(ConvolutionTest, InputGradient) { checkAll(GetParam(), Pass::InputGradient); }
TEST_P(ConvolutionTest, WeightGradient) { checkAll(GetParam(), Pass::WeightGradient); }

const Case cases[] = {
    square("lenet_conv1", 6, 6, 1, 20, axis(28, 3)),
    square("lenet_conv2", 3, 3, 20, 50, axis(13, 5)),
    square("lenet_short_batch", 40, 3, 20, 50, axis(13, 5)),
    square("no_rows", 4, 0, 3, 5, axis(8, 3)),
    square("padded", 3, 2, 16, 64, axis(14, 3, 1, 1)),
    square("padded_one_channel", 3, 3, 1, 6, axis(28, 5, 1, 2)),
    square("padded_three_channels", 2, 2, 3, 17, axis(11, 3, 1, 1)),
    square("strided", 2, 2, 8, 24, axis(13, 3, 2, 1)),
    square("strided_even", 2, 2, 8, 24, axis(12, 2, 2)),
    square("stem", 1, 1, 3, 64, axis(30, 7, 2, 3)),
    square("stride_larger_than_kernel", 2, 2, 4, 20, axis(11, 2, 3)),
    square("pointwise", 3, 2, 24, 70, axis(5, 1)),
    square("pointwise_strided", 2, 2, 24, 40, axis(9, 1, 2)),
    square("pointwise_padded", 2, 2, 5, 8, axis(4, 1, 1, 1)),
    square("dilated", 2, 2, 6, 20, axis(15, 3, 1, 2, 2)),
    square("dilated_strided", 2, 2, 6, 20, axis(15, 3, 2, 2, 3)),
    square("seven_by_seven", 2, 2, 40, 130, axis(7, 3, 1, 1)),
    // Rows of few pixels share tiles: those of two images, of which one may remain, or of one image. The valid taps of two
    // rows of an image may be different ones.
    square("pairs_of_images", 5, 3, 64, 34, axis(7, 3, 1, 1)),
    square("pairs_of_images_strided", 4, 4, 20, 48, axis(14, 3, 2, 1)),
    square("pairs_of_images_long", 3, 3, 520, 16, axis(7, 3, 1, 1)),
    square("pairs_of_images_pointwise", 2, 1, 24, 40, axis(13, 1, 2)),
    square("pairs_of_rows", 1, 1, 64, 34, axis(7, 3, 1, 1)),
    square("pairs_of_rows_dilated", 1, 1, 20, 48, axis(7, 3, 1, 2, 2)),
    square("pairs_of_rows_strided", 1, 1, 20, 16, axis(13, 5, 2, 2)),
    {"pairs_of_rows_without_common_taps", 1, 1, 24, 16, {1, 5, 2, 1, 4, 4}, {7, 3, 1, 1, 1, 1}},
    square("few_channels", 2, 2, 40, 3, axis(9, 3, 1, 1)),
    square("few_channels_in_phases", 2, 2, 3, 40, axis(8, 2, 2)),
    square("long_sums", 1, 1, 200, 200, axis(9, 3, 1, 1)),
    square("alexnet_stem", 1, 1, 3, 96, axis(35, 11, 4, 2)),
    square("whole_image", 9, 8, 5, 30, axis(4, 4)),
    square("kernel_in_padding", 2, 2, 3, 9, axis(2, 3, 1, 3)),
    // Stride and dilation share a factor: outputs of the input gradient between the taps have none.
    square("stride_meets_dilation", 2, 2, 3, 9, axis(9, 3, 2, 1, 2)),
    square("stride_meets_dilation_pointwise", 2, 2, 3, 4, axis(8, 1, 2, 0, 2)),
    square("stride_meets_dilation_wide", 2, 2, 40, 130, axis(11, 2, 4, 3, 2)),
    square("stride_meets_dilation_narrow", 2, 2, 50, 20, axis(9, 3, 2, 0, 2)),
    square("all_taps_in_padding", 2, 2, 20, 9, axis(1, 1, 2, 1)),
    {"stride_meets_dilation_in_height", 2, 2, 20, 18, {9, 2, 2, 2, 1, 0}, {9, 3, 1, 1, 1, 1}},
    {"stride_meets_dilation_in_width", 2, 2, 20, 18, {9, 3, 1, 1, 1, 1}, {9, 2, 2, 2, 1, 0}},
    // Weight gradients copy pixels of many channels: some images or some rows at a time, with and without a last tile.
    square("copied_images", 9, 8, 66, 80, axis(5, 3, 1, 1)),
    square("copied_rows", 2, 2, 64, 80, axis(18, 3, 1, 1)),
    square("copied_rows_strided", 2, 1, 64, 64, axis(35, 3, 2, 1)),
    square("copied_pointwise", 2, 2, 70, 144, axis(15, 1)),
    square("copied_pointwise_strided", 3, 2, 64, 64, axis(33, 1, 2)),
    square("copied_dilated", 2, 2, 64, 64, axis(17, 3, 1, 2, 2)),
    {"copied_oblong", 2, 2, 65, 96, {9, 1, 2, 1, 0, 0}, {41, 5, 1, 1, 2, 1}},
    // The weights exceed the second-level cache: consecutive tasks share output channels.
    {"large_weights", 6, 5, 16, 70, axis(5, 3, 1, 1), axis(5, 3, 1, 1), 32 << 10},
    {"large_weights_none", 6, 0, 16, 70, axis(5, 3, 1, 1), axis(5, 3, 1, 1), 32 << 10},
    {"oblong", 2, 2, 7, 33, {9, 3, 2, 1, 0, 1}, {17, 5, 1, 1, 2, 1}},
    {"one_dimensional", 2, 2, 12, 20, {1, 1, 1, 1, 0, 0}, {40, 9, 1, 1, 4, 4}},
};

// Tests that a long row of pixels is not copied: copies are on the stack.
TEST(WeightGradientCopies, AreSmall) {
  auto copies = [](Convolution::Axis height, Convolution::Axis width) {
    mlir::MLIRContext context;
    Convolution op;
    op.element = mlir::Float32Type::get(&context);
    op.rows = 2, op.inputChannels = op.outputChannels = 64, op.height = height, op.width = width;
    return WeightGradientPlan(op, llvm::cantFail(Target::of("x86-64-v3"))).copies;
  };
  EXPECT_TRUE(copies(axis(7, 3, 1, 1), axis(7, 3, 1, 1)));
  EXPECT_TRUE(copies(axis(224, 3, 1, 1), axis(224, 3, 1, 1)));
  EXPECT_FALSE(copies(axis(1, 1), axis(16000, 9, 1, 4)));
  EXPECT_FALSE(copies(axis(100, 3, 1, 1), axis(2000, 3, 1, 1)));
}

// Tests that a task uses its copies of x for many output channels, but that there are tasks for several threads, and that
// the copies of dY are small, also those of a long row of pixels.
TEST(WeightGradientCopies, ServeManyChannels) {
  auto columnsOf = [](int64_t rows, int64_t outputs, Convolution::Axis height, Convolution::Axis width) {
    mlir::MLIRContext context;
    Convolution op;
    op.element = mlir::Float32Type::get(&context);
    op.rows = rows, op.inputChannels = 64, op.outputChannels = outputs, op.height = height, op.width = width;
    WeightGradientPlan plan(op, llvm::cantFail(Target::of("x86-64-v3")));
    EXPECT_TRUE(plan.copies);
    EXPECT_LE(plan.imagesAtOnce * plan.pixelRowsAtOnce * width.output() * plan.groupsPerTask * plan.groups.width * 4,
              512 << 10);
    return plan.groupsPerTask * plan.groups.width;
  };
  EXPECT_GE(columnsOf(16, 512, axis(14, 1), axis(14, 1)), 200);
  EXPECT_LE(columnsOf(1, 512, axis(14, 1), axis(14, 1)), 96);
  EXPECT_LE(columnsOf(16, 512, axis(3, 1), axis(1000, 1)), 128);
}

/// The contraction that `emit` makes of a convolution with `both` along its height and width.
template <class Emit>
static Contraction contractionOf(Emit emit, int64_t inputs, int64_t outputs, Convolution::Axis both,
                                 const char *cpu = "x86-64-v4") {
  Target target = llvm::cantFail(Target::of(cpu));
  Program program(
      [&](mlir::ModuleOp module, mlir::Location loc, mlir::Type f32, mlir::Type) {
        Convolution op;
        op.element = f32;
        op.inputChannels = inputs, op.outputChannels = outputs, op.panel = panelWidth(outputs, 32, target);
        op.height = op.width = both;
        op.input = {0, 0}, op.weights = {1, 0}, op.output = {2, 0}, op.workspace = {3, 0};
        return emit(module, "convolution", loc, op, target);
      },
      target);
  return program.contraction;
}

// Tests that one image is cut into tasks for several threads, whose work is not too small.
TEST(ConvolutionTasks, OneImageIsSeveralTasks) {
  auto tasksOf = [](int64_t inputs, int64_t outputs, Convolution::Axis both) {
    return contractionOf(emitConvolution, inputs, outputs, both).stages.back().tasks;
  };
  EXPECT_GE(tasksOf(96, 32, axis(28, 1)), 8);
  EXPECT_GE(tasksOf(32, 32, axis(28, 3, 1, 1)), 8);
  EXPECT_GE(tasksOf(64, 2048, axis(28, 1)), 2 * 2048 / 64); // threads share its rows, not only its columns
  EXPECT_EQ(tasksOf(16, 32, axis(7, 1)), 1);
  EXPECT_EQ(tasksOf(16, 32, axis(7, 3, 1, 1)), 1);
}

// Tests that rows of seven pixels share tiles: alone, they have tiles of six and eight sums, which wait for each other.
TEST(ConvolutionTiles, ShortRowsArePaired) {
  auto tileOf = [](int64_t size) {
    return contractionOf(emitConvolution, 64, 64, axis(size, 3, 1, 1), "znver3").stages.back().tile;
  };
  EXPECT_EQ(tileOf(7), "2 x 3 x 16");
  EXPECT_EQ(tileOf(56), "6 x 16");
}

// Tests that three channels do not take the time of a vector of channels.
TEST(ConvolutionLanes, ThreeChannelsAreSummedAlongTheTerms) {
  auto lanesOf = [](auto emit, int64_t inputs, int64_t outputs, Convolution::Axis both) {
    return contractionOf(emit, inputs, outputs, both).lanes;
  };
  EXPECT_GT(lanesOf(emitConvolution, 64, 3, axis(9, 3, 1, 1)), 0.9);
  EXPECT_GT(lanesOf(emitConvolutionInputGradient, 3, 64, axis(8, 2, 2)), 0.9);
}

// Tests that 50 and 20 channels, three vectors and a remainder, leave no lanes idle in any pass.
TEST(ConvolutionLanes, FewLastChannelsWasteNone) {
  Target target = llvm::cantFail(Target::of("x86-64-v4"));
  for (auto emit : {emitConvolution, emitConvolutionInputGradient, emitConvolutionWeightGradient}) {
    Program program(
        [&](mlir::ModuleOp module, mlir::Location loc, mlir::Type f32, mlir::Type) {
          Convolution op;
          op.element = f32;
          op.rows = 4;
          op.inputChannels = 20, op.outputChannels = 50, op.panel = panelWidth(50, 32, target);
          op.height = op.width = axis(13, 5);
          op.input = {0, 0}, op.weights = {1, 0}, op.output = {2, 0}, op.workspace = {3, 0};
          return emit(module, "convolution", loc, op, target);
        },
        target);
    EXPECT_GT(program.contraction.lanes, 0.97);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ConvolutionTest, ::testing::ValuesIn(cases),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
} // namespace sluice::cpu::testing
