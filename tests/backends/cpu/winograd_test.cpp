// Winograd's algorithm against plain loops in double precision.
//
// The tolerance is the bound of the roundings, element by element: with u = 2^-24 and at most n roundings between an
// operand and an output,
//   |error| <= n u / (1 - n u) * |A^T| [sum over channels of (|G| |g| |G^T|) * (|B^T| |d| |B|)] |A|.
#include "ConvolutionCase.h"
#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/tile/IndexMath.h"
#include "backends/cpu/compiler/product/window/WinogradWindow.h"
#include "contraction_runner.h"
#include "tests/Worse.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

namespace sluice::cpu::testing {
namespace {

using Case = ConvolutionCase;

Convolution::Axis axis(int64_t input, int64_t before, int64_t after) { return {input, 3, 1, 1, before, after}; }

using Square = std::vector<double>; // row by row

double absolute(double value) { return std::abs(value); }
double same(double value) { return value; }

// M x M^T, where `of` maps the elements of M.
Square transformed(const TransformMatrix &m, const Square &x, double (*of)(double)) {
  Square half(m.rows * m.columns), result(m.rows * m.rows);
  for (int64_t i = 0; i < m.rows; ++i)
    for (int64_t j = 0; j < m.columns; ++j)
      for (int64_t k = 0; k < m.columns; ++k)
        half[i * m.columns + j] += of(m.at(i, k)) * x[k * m.columns + j];
  for (int64_t i = 0; i < m.rows; ++i)
    for (int64_t j = 0; j < m.rows; ++j)
      for (int64_t k = 0; k < m.columns; ++k)
        result[i * m.rows + j] += half[i * m.columns + k] * of(m.at(j, k));
  return result;
}

// Tests that the matrices compute the outputs of a window.
TEST(WinogradTransforms, AreThoseOfAWindow) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int64_t m : {2, 4}) {
    const WinogradTransforms &its = winogradTransforms(m);
    Square d(its.positions()), g(9);
    for (Square *square : {&d, &g})
      for (double &value : *square)
        value = uniform(random);
    Square image = transformed(its.image, d, same), filter = transformed(its.filter, g, same);
    for (size_t i = 0; i < image.size(); ++i)
      image[i] *= filter[i];
    Square y = transformed(its.output, image, same);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < m; ++j) {
        double expected = 0;
        for (int64_t k = 0; k < 9; ++k)
          expected += d[(i + k / 3) * its.size() + j + k % 3] * g[k];
        EXPECT_NEAR(y[i * m + j], expected, 1e-14);
      }
  }
}

// The roundings between an operand and an output. Transforms have two passes. A pass adds at most 5 terms of the sums
// and 3 of the other operands, and rounds their factors.
double roundings(int64_t channels) { return double(2 * 5 + 2 * 4 + 2 * 4 + channels); }

struct Check {
  const Case &c;
  const Target &target;
  int64_t m;
  int64_t panel = panelWidth(c.o, 32, target);
  int64_t oh = c.h.output(), ow = c.w.output();

  int64_t x(int64_t n, int64_t i, int64_t j, int64_t ch) const {
    return ((n * c.h.input + i) * c.w.input + j) * c.c + ch;
  }
  int64_t y(int64_t n, int64_t i, int64_t j, int64_t ch) const { return ((n * oh + i) * ow + j) * c.o + ch; }
  int64_t w(int64_t o, int64_t tap, int64_t ch) const { return ((o / panel * 9 + tap) * c.c + ch) * panel + o % panel; }
  int64_t xCount() const { return c.rows * c.h.input * c.w.input * c.c; }
  int64_t yCount() const { return c.rows * oh * ow * c.o; }

  // The same weights for panels of any width.
  Array<float> weights() const {
    Array<float> random = randomArray<float>(c.o * 9 * c.c, 3);
    Array<float> array(llvm::divideCeil(c.o, panel) * panel * 9 * c.c, 0.0f);
    for (int64_t o = 0; o < c.o; ++o)
      for (int64_t tap = 0; tap < 9; ++tap)
        for (int64_t ch = 0; ch < c.c; ++ch)
          array[w(o, tap, ch)] = random[(o * 9 + tap) * c.c + ch];
    return array;
  }

  WindowSum sum(mlir::Type f32) const {
    WindowSum sum;
    sum.element = f32;
    sum.rows = c.rows;
    sum.inputChannels = c.c, sum.outputChannels = c.o, sum.panel = panel;
    sum.phases.push_back({forwardAxis(c.h), forwardAxis(c.w)});
    sum.input = {0, 0}, sum.weights = {1, 0};
    sum.epilogue.store = [*this](StageFunction &stage, mlir::OpBuilder &b, mlir::Location loc,
                                 llvm::ArrayRef<mlir::Value> index, mlir::Value sums) {
      IndexMath math{b, loc};
      mlir::Value at = math.add(math.mul(math.add(math.mul(index[0], oh), index[2]), ow), index[3]);
      at = math.add(math.mul(at, c.o), index[1]);
      storeVector(b, loc, sums, elementAddress(b, loc, b.getF32Type(), stage.buffer(2), at));
    };
    return sum;
  }

  std::vector<float> run(const Program &program, Array<float> &xs, Order order) const {
    Array<float> ws = weights(), out(yCount(), 777.0f);
    Array<float> workspace(program.contraction.workspaceBytes / 4, std::nanf(""));
    program.run({xs.data(), ws.data(), out.data(), workspace.data()}, c.call, order);
    return {out.data(), out.data() + yCount()};
  }

  // The tiles of the images of the call.
  template <typename F> void everyTile(F f) const {
    for (int64_t n = 0; n < c.call; ++n)
      for (int64_t i = 0; i < oh; i += m)
        for (int64_t j = 0; j < ow; j += m)
          f(n, i, j);
  }

  // The inputs of a tile and channel.
  Square patch(Array<float> &xs, int64_t n, int64_t i, int64_t j, int64_t ch) const {
    int64_t size = m + 2;
    Square d(size * size);
    for (int64_t k = 0; k < size * size; ++k) {
      int64_t row = i + k / size - c.h.padBefore, column = j + k % size - c.w.padBefore;
      if (row >= 0 && row < c.h.input && column >= 0 && column < c.w.input)
        d[k] = xs[x(n, row, column, ch)];
    }
    return d;
  }

  // The outputs in double precision, and their tolerances.
  struct Expected {
    std::vector<double> outputs, tolerances;
  };

  Expected expected(Array<float> &xs) const {
    const WinogradTransforms &its = winogradTransforms(m);
    Array<float> ws = weights();
    Expected all{std::vector<double>(yCount()), std::vector<double>(yCount())};
    std::vector<Square> filters, magnitudes;
    for (int64_t o = 0; o < c.o; ++o)
      for (int64_t ch = 0; ch < c.c; ++ch) {
        Square g(9), size(9);
        for (int64_t tap = 0; tap < 9; ++tap)
          size[tap] = std::abs(g[tap] = ws[w(o, tap, ch)]);
        filters.push_back(g);
        magnitudes.push_back(transformed(its.filter, size, absolute));
      }
    everyTile([&](int64_t n, int64_t i, int64_t j) {
      std::vector<Square> patches, sizes;
      for (int64_t ch = 0; ch < c.c; ++ch) {
        patches.push_back(patch(xs, n, i, j, ch));
        Square size = patches.back();
        for (double &value : size)
          value = std::abs(value);
        sizes.push_back(transformed(its.image, size, absolute));
      }
      for (int64_t o = 0; o < c.o; ++o)
        finish(all, n, i, j, o, patches, sizes, &filters[o * c.c], &magnitudes[o * c.c]);
    });
    return all;
  }

  void finish(Expected &all, int64_t n, int64_t i, int64_t j, int64_t o, const std::vector<Square> &patches,
              const std::vector<Square> &sizes, const Square *filters, const Square *magnitudes) const {
    const WinogradTransforms &its = winogradTransforms(m);
    Square products(its.positions());
    for (int64_t ch = 0; ch < c.c; ++ch)
      for (size_t k = 0; k < products.size(); ++k)
        products[k] += sizes[ch][k] * magnitudes[ch][k];
    Square magnitude = transformed(its.output, products, absolute);
    double share = roundings(c.c) * 0x1p-24;
    for (int64_t k = 0; k < m * m; ++k) {
      int64_t row = k / m, column = k % m;
      if (i + row >= oh || j + column >= ow)
        continue;
      double value = 0;
      for (int64_t ch = 0; ch < c.c; ++ch)
        for (int64_t tap = 0; tap < 9; ++tap)
          value += patches[ch][(row + tap / 3) * its.size() + column + tap % 3] * filters[ch][tap];
      int64_t at = y(n, i + row, j + column, o);
      all.outputs[at] = value;
      all.tolerances[at] = share / (1 - share) * magnitude[k];
    }
  }

  Program program() const {
    return Program(
        [&](mlir::ModuleOp module, mlir::Location loc, mlir::Type f32, mlir::Type) {
          WindowSum op = sum(f32);
          std::optional<WinogradPlan> plan = planWinograd(op, m, target);
          Contraction result;
          EXPECT_TRUE(plan.has_value());
          if (plan)
            emitWinograd(module, "convolution", loc, op, *plan, {3, 0}, target, result);
          return result;
        },
        target);
  }

  Program directProgram() const {
    return Program(
        [&](mlir::ModuleOp module, mlir::Location loc, mlir::Type f32, mlir::Type) {
          Contraction result;
          result.stages.push_back(emitWindowSum(module, "direct", loc, sum(f32), target));
          return result;
        },
        target);
  }

  void run() const {
    Program compiled = program();
    Array<float> xs = randomArray<float>(xCount(), 1);
    std::vector<float> all = run(compiled, xs, Order::AllAtOnce);
    for (Order order : {Order::OneByOne, Order::Backwards})
      ASSERT_EQ(std::memcmp(all.data(), run(compiled, xs, order).data(), all.size() * sizeof(float)), 0)
          << "the order of tasks changed the bits";
    Expected want = expected(xs);
    int64_t used = c.call * oh * ow * c.o;
    for (int64_t i = 0; i < yCount(); ++i)
      if (i < used)
        ASSERT_NEAR(all[i], want.outputs[i], want.tolerances[i])
            << "at " << i << " of F(" << m << "x" << m << ") with vectors of " << target.vectorBits;
      else
        ASSERT_EQ(all[i], 777.0f) << "place " << i << " is not part of the result";
  }
};

class WinogradTest : public ::testing::TestWithParam<Case> {};

TEST_P(WinogradTest, IsWithinTheBoundOfItsRoundings) {
  std::vector<Target> targets = testTargets();
  for (size_t number = 0; number < 2 * targets.size() && !HasFatalFailure(); ++number)
    if (isSampled(number / 2, targets.size(), GetParam().name))
      Check{GetParam(), targets[number / 2], number % 2 ? 4 : 2}.run();
}

const Case cases[] = {
    square("five_by_five", 3, 3, 17, 16, axis(5, 1, 1)),
    square("unpadded", 2, 2, 16, 24, axis(13, 0, 0)),
    square("wide_padding", 2, 2, 16, 17, axis(7, 2, 2)),
    square("padding_beyond_the_window", 1, 1, 16, 16, axis(6, 4, 5)),
    {"oblong", 3, 2, 17, 40, axis(7, 1, 1), axis(9, 1, 1)},
    {"asymmetric", 2, 2, 18, 33, axis(9, 0, 1), axis(8, 2, 0)},
    square("many_images", 16, 11, 16, 16, axis(8, 1, 1)),
    square("no_rows", 4, 0, 16, 16, axis(8, 1, 1)),
    square("thirteen", 1, 1, 16, 96, axis(13, 1, 1)),
    square("resnet_last", 1, 1, 64, 130, axis(14, 1, 1)),
    square("few_tiles_of_some_images", 3, 2, 96, 64, axis(6, 1, 1)),
    square("filters_in_parts", 1, 1, 576, 128, axis(6, 1, 1)),
    square("long_sums", 1, 1, 600, 32, axis(14, 1, 1)),
    square("resnet56", 3, 3, 17, 17, axis(28, 1, 1)),
    square("large_image", 1, 1, 16, 16, axis(56, 1, 1)),
    {"one_row", 2, 2, 16, 16, axis(1, 1, 1), axis(20, 1, 1)},
};

INSTANTIATE_TEST_SUITE_P(Shapes, WinogradTest, ::testing::ValuesIn(cases),
                         [](const auto &info) { return std::string(info.param.name); });

// Tests both orders of work.
TEST(WinogradPlan, TransformsTheSmallerOperandFirst) {
  Target target = Target::host();
  auto stagesOf = [&](const Case &c) { return Check{c, target, 4}.program().contraction.stages; };
  std::vector<std::string> few, many;
  for (const Stage &stage : stagesOf(square("few", 1, 1, 64, 128, axis(14, 1, 1))))
    few.push_back(stage.function);
  for (const Stage &stage : stagesOf(square("many", 16, 16, 32, 32, axis(14, 1, 1))))
    many.push_back(stage.function);
  EXPECT_EQ(few, (std::vector<std::string>{"convolution_images", "convolution_winograd"}));
  EXPECT_EQ(many, (std::vector<std::string>{"convolution_filters", "convolution_winograd"}));
}

// Tests that a NaN reaches the outputs of its window, at most those of the tiles that read it, and no others.
TEST(WinogradWindow, NaNsStayInTheirTiles) {
  Case c = square("nan", 2, 2, 16, 16, axis(13, 1, 1));
  constexpr int64_t image = 1, row = 4, column = 7;
  for (int64_t m : {2, 4}) {
    Target target = Target::host();
    Check check{c, target, m};
    Program program = check.program();
    Array<float> xs = randomArray<float>(check.xCount(), 1);
    std::vector<float> clean = check.run(program, xs, Order::AllAtOnce);
    xs[check.x(image, row, column, 3)] = std::nanf("");
    std::vector<float> all = check.run(program, xs, Order::AllAtOnce);
    auto reads = [&](int64_t first, int64_t size, int64_t place) {
      return first - 1 <= place && place < first - 1 + size;
    };
    for (int64_t n = 0; n < c.call; ++n)
      for (int64_t i = 0; i < check.oh; ++i)
        for (int64_t j = 0; j < check.ow; ++j)
          for (int64_t o = 0; o < c.o; ++o) {
            int64_t at = check.y(n, i, j, o);
            bool ofTile = n == image && reads(i / m * m, m + 2, row) && reads(j / m * m, m + 2, column);
            bool ofWindow = n == image && reads(i, 3, row) && reads(j, 3, column);
            if (ofWindow)
              EXPECT_TRUE(std::isnan(all[at])) << at;
            if (!ofTile)
              EXPECT_EQ(all[at], clean[at]) << at;
          }
  }
}

// ---- The table of errors ----

struct Errors {
  double largest, rms; // in units of 1e-7
};

// The errors relative to the root mean square of the exact outputs.
Errors errorsOf(const std::vector<float> &outputs, const std::vector<double> &exact) {
  double largest = 0, errors = 0, squares = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    double error = std::abs(outputs[i] - exact[i]);
    largest = test::worse(largest, error);
    errors += error * error;
    squares += exact[i] * exact[i];
  }
  double unit = std::sqrt(squares / double(exact.size())) * 1e-7;
  return {largest / unit, std::sqrt(errors / double(exact.size())) / unit};
}

// The rows of the table: channels, then the largest and the rms error of the direct sum, F(2x2) and F(4x4).
std::map<int64_t, std::array<double, 6>> tabledErrors() {
  std::map<int64_t, std::array<double, 6>> table;
  std::ifstream file(ACCURACY_TABLE);
  std::string line;
  while (std::getline(file, line)) {
    int channels;
    std::array<double, 6> its;
    if (std::sscanf(line.c_str(), "| %d channels | %lf | %lf | %lf | %lf | %lf | %lf |", &channels, &its[0], &its[1],
                    &its[2], &its[3], &its[4], &its[5]) == 7)
      table[channels] = its;
  }
  return table;
}

// The table has the errors of AVX2, which all machines have. With AVX-512, the sums may have another order.
TEST(WinogradAccuracy, IsThatOfTheTable) {
  auto table = tabledErrors();
  ASSERT_EQ(table.size(), 6u);
  std::vector<Target> targets = {llvm::cantFail(Target::of("x86-64-v3"))};
  if (Target::host().vectorBits > targets[0].vectorBits)
    targets.push_back(Target::host());
  for (auto [channels, tabled] : table)
    for (const Target &target : targets) {
      Case c = square("accuracy", 1, 1, channels, 32, axis(14, 1, 1));
      Check two{c, target, 2}, four{c, target, 4};
      Array<float> xs = randomArray<float>(two.xCount(), 1);
      std::vector<double> exact = two.expected(xs).outputs, found;
      for (const Program &program : {two.directProgram(), two.program(), four.program()}) {
        Errors errors = errorsOf(two.run(program, xs, Order::AllAtOnce), exact);
        found.insert(found.end(), {errors.largest, errors.rms});
      }
      std::printf("%d bits | %d channels | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", int(target.vectorBits),
                  int(channels), found[0], found[1], found[2], found[3], found[4], found[5]);
      for (size_t i = 0; i < found.size(); ++i)
        if (target.vectorBits == targets[0].vectorBits)
          EXPECT_NEAR(found[i], tabled[i], 0.06) << channels << " channels, column " << i + 1;
        else
          EXPECT_LE(found[i], 2 * tabled[i]) << channels << " channels, column " << i + 1;
    }
}

// ---- The choice of the algorithm ----

// The stages of a pass of a convolution.
template <class Emit>
std::vector<std::string> stagesOf(Emit emit, const Case &c, bool fastMath, bool isDouble = false, int64_t groups = 1) {
  Target target = llvm::cantFail(Target::of("x86-64-v4"));
  target.fastMath = fastMath;
  Program program(
      [&](mlir::ModuleOp module, mlir::Location loc, mlir::Type f32, mlir::Type f64) {
        Convolution op;
        op.element = isDouble ? f64 : f32;
        op.rows = c.rows;
        op.inputChannels = c.c, op.outputChannels = c.o, op.panel = panelWidth(c.o, isDouble ? 64 : 32, target);
        op.groups = groups;
        op.height = c.h, op.width = c.w;
        op.input = {0, 0}, op.weights = {1, 0}, op.output = {2, 0}, op.workspace = {3, 0};
        return emit(module, "y", loc, op, target);
      },
      target);
  std::vector<std::string> names;
  for (const Stage &stage : program.contraction.stages)
    names.push_back(stage.function);
  return names;
}

using Names = std::vector<std::string>;

TEST(WinogradChoice, LargeConvolutionsUnderFastMath) {
  Case large = square("large", 16, 16, 32, 32, axis(28, 1, 1));
  EXPECT_EQ(stagesOf(emitConvolution, large, true), (Names{"y_filters", "y_winograd"}));
  EXPECT_EQ(stagesOf(emitConvolutionInputGradient, large, true), (Names{"y_pack", "y_filters", "y_winograd"}));
  EXPECT_EQ(stagesOf(emitConvolution, large, false), (Names{"y_windows"}));
  EXPECT_EQ(stagesOf(emitConvolutionInputGradient, large, false), (Names{"y_pack", "y_windows"}));
}

TEST(WinogradChoice, OtherConvolutionsStayDirect) {
  auto isDirect = [](const Case &c, bool isDouble = false, int64_t groups = 1) {
    return stagesOf(emitConvolution, c, true, isDouble, groups).back() != "y_winograd";
  };
  EXPECT_TRUE(isDirect(square("strided", 4, 4, 64, 64, {28, 3, 2, 1, 1, 1})));
  EXPECT_TRUE(isDirect(square("dilated", 4, 4, 64, 64, {28, 3, 1, 2, 2, 2})));
  EXPECT_TRUE(isDirect(square("five", 4, 4, 64, 64, {28, 5, 1, 1, 2, 2})));
  EXPECT_TRUE(isDirect(square("three_channels", 4, 4, 3, 64, axis(28, 1, 1))));
  EXPECT_TRUE(isDirect(square("to_three_channels", 4, 4, 64, 3, axis(28, 1, 1))));
  EXPECT_TRUE(isDirect(square("small", 1, 1, 16, 16, axis(32, 1, 1))));
  EXPECT_TRUE(isDirect(square("doubles", 4, 4, 64, 64, axis(28, 1, 1)), true));
  EXPECT_TRUE(isDirect(square("depthwise", 4, 4, 64, 64, axis(28, 1, 1)), false, 64));
}

} // namespace
} // namespace sluice::cpu::testing
