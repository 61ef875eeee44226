// Tests values at the limits of their types. Cases: formulas of positions and masks in mixed precision, resizing and
// rotary embeddings in half and double precision, optimizers after a gradient whose square overflows, gradients through
// subnormal numbers.
#include "sluice/sluice.h"
#include "tests/Worse.h"
#include "tests/e2e/Harness.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace sluice::test;
using sluice::ir::Precision;

namespace {

sluice::CompileOptions in(Precision precision) {
  sluice::CompileOptions options;
  options.precision = dtypeOf(precision);
  return options;
}

/// The largest error of a result at a given precision.
double errorIn(Precision precision, const std::string &text, const Values &inputs, const std::vector<double> &wanted) {
  Compiled model(text, in(precision));
  return largestDifference(model.run("predict", inputs, 1).at("y"), wanted);
}

/// A line of alternating -1 and 1, which exposes wrong weights.
struct Line {
  explicit Line(int64_t from, int64_t to) : from(from), to(to) {
    for (int64_t i = 0; i < from; ++i)
      x.push_back(i % 2 ? 1 : -1);
  }

  /// An image of a type, resized.
  std::string image(sluice::DType dtype) const {
    using namespace sluice;
    Graph g("line");
    Tensor x = g.input("x", f32, {1, 1, 1, from}).to(dtype);
    g.output("y", interpolate_to(x, Size2(1, to), {.mode = Interpolation::bilinear}).to(f32));
    return g.str();
  }

  /// The product with a matrix of weights, a formula of positions.
  std::string product() const {
    using namespace sluice;
    Graph g("line");
    Tensor place = clip((g.arange(double(to), f32) + 0.5) * (double(from) / double(to)) - 0.5, 0.0, double(from - 1));
    Tensor distance = abs(g.arange(double(from), f32).unsqueeze(1) - place.unsqueeze(0));
    g.output("y", matmul(g.input("x", f32, {1, from}), relu(1.0 - distance)));
    return g.str();
  }

  std::vector<double> resized() const {
    std::vector<double> y;
    for (int64_t i = 0; i < to; ++i) {
      double place = std::clamp((double(i) + 0.5) * double(from) / double(to) - 0.5, 0.0, double(from - 1));
      size_t low = size_t(place), high = std::min(low + 1, size_t(from - 1));
      y.push_back(x[low] + (place - double(low)) * (x[high] - x[low]));
    }
    return y;
  }

  int64_t from, to;
  std::vector<double> x;
};

/// Sizes of lines before and after. bf16 holds integers up to 256, f16 up to 2048.
constexpr std::pair<int64_t, int64_t> kSizes[] = {{600, 1500}, {160, 320}};

} // namespace

// Weights are rounded once; positions are not rounded.
TEST(MixedPrecision, ResizesByPositionsInSinglePrecision) {
  for (auto [from, to] : kSizes) {
    Line line(from, to);
    Values inputs{{"x", line.x}};
    EXPECT_LE(errorIn(Precision::F32, line.product(), inputs, line.resized()), 2e-4);
    EXPECT_LE(errorIn(Precision::BF16, line.product(), inputs, line.resized()), 0.01);
    EXPECT_LE(errorIn(Precision::F16, line.product(), inputs, line.resized()), 0.001);
  }
}

// The result is rounded once.
TEST(Resize, OfHalvesHasPositionsInSinglePrecision) {
  for (auto [from, to] : kSizes) {
    Line line(from, to);
    Values inputs{{"x", line.x}};
    EXPECT_LE(errorIn(Precision::F32, line.image(sluice::f32), inputs, line.resized()), 2e-4);
    EXPECT_LE(errorIn(Precision::F32, line.image(sluice::bf16), inputs, line.resized()), 0.0022);
    EXPECT_LE(errorIn(Precision::F32, line.image(sluice::f16), inputs, line.resized()), 0.00045);
  }
}

// The penalty for a distance is rounded once. Its operands are not rounded, because bf16 cannot count that far.
TEST(MixedPrecision, BiasesByDistancesInSinglePrecision) {
  using namespace sluice;
  constexpr int64_t size = 700;
  Graph g("distances");
  Tensor q = g.input("q", f32, {size, 1}), k = g.input("k", f32, {1, size}), place = g.arange(double(size), f32);
  g.output("y", matmul(q, k) + (place.unsqueeze(0) - place.unsqueeze(1)) * 0.25);
  std::vector<double> wanted;
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j < size; ++j)
      wanted.push_back(double(j - i) * 0.25);
  Values inputs{{"q", std::vector<double>(size)}, {"k", std::vector<double>(size)}};
  EXPECT_LE(errorIn(Precision::BF16, g.str(), inputs, wanted), 0.5) << "half a unit of bf16 between 128 and 256";
  EXPECT_LE(errorIn(Precision::F16, g.str(), inputs, wanted), 0.0625);
}

// f16 cannot represent -1e9, and 0 times the infinity in its place is NaN. A fully masked row has equal probabilities.
TEST(MixedPrecision, AddsMasksThatTheNarrowTypeDoesNotHold) {
  using namespace sluice;
  Graph g("masked");
  Tensor q = g.input("q", f32, {3, 4}), k = g.input("k", f32, {4, 3});
  Tensor mask = (1.0 - tril(g.ones({3, 3}), -1)) * -1e9;
  g.output("y", softmax(matmul(q, k) + mask, 1));
  Values inputs{{"q", std::vector<double>(12, 0.5)}, {"k", std::vector<double>(12, 0.5)}};
  std::vector<double> third(3, 1.0 / 3), wanted{third[0], third[1], third[2], 1, 0, 0, 0.5, 0.5, 0};
  for (Precision precision : {Precision::F32, Precision::BF16, Precision::F16})
    EXPECT_LE(errorIn(precision, g.str(), inputs, wanted), 1e-6) << stringifyPrecision(precision).str();
}

// 1e-8 is 0 in f16.
TEST(MixedPrecision, AddsAnEpsilonThatTheNarrowTypeDoesNotHold) {
  using namespace sluice;
  Graph g("epsilon");
  Tensor a = g.input("a", f32, {1, 2}), b = g.input("b", f32, {2, 1});
  g.output("y", log(relu(matmul(a, b)) + 1e-8));
  for (Precision precision : {Precision::F32, Precision::BF16, Precision::F16})
    EXPECT_LE(errorIn(precision, g.str(), {{"a", {0, 0}}, {"b", {1, 1}}}, {std::log(1e-8)}), 0.01)
        << stringifyPrecision(precision).str();
}

namespace {

/// A formula of products z and the value that protects its result.
struct Protected {
  const char *text;
  sluice::Tensor (*formula)(const sluice::Tensor &z);
  double z, result;
};

#define SLUICE_PROTECTED(...) #__VA_ARGS__, [](const sluice::Tensor &z) -> sluice::Tensor { return __VA_ARGS__; }

/// f16 has no number between 0 and 6e-8, and 1 - 1e-7 is 1 in both types.
const Protected kProtected[] = {
    {SLUICE_PROTECTED(reciprocal(abs(z) + 1e-8)), 0, 1e8},
    {SLUICE_PROTECTED(reciprocal(z + 1e-7)), 0, 1e7},
    {SLUICE_PROTECTED(1.0 / maximum(z, 1e-8)), 0, 1e8},
    {SLUICE_PROTECTED(1.0 / where(z > 0.0, z, 1e-8)), 0, 1e8},
    {SLUICE_PROTECTED(rsqrt(square(z) + 1e-12)), 0, 1e6},
    {SLUICE_PROTECTED(1.0 / sqrt(z + 1e-10)), 0, 1e5},
    {SLUICE_PROTECTED(log(clip(z, 1e-8))), 0, std::log(1e-8)},
    {SLUICE_PROTECTED(log(clip(z, 3e-8, 1.0))), 0, std::log(3e-8)},
    {SLUICE_PROTECTED(log(1.0 - clip(z, 1e-7, 1 - 1e-7))), 1, std::log(double(1 - float(1 - 1e-7)))},
    {SLUICE_PROTECTED(log(pad(z, {1, 0}, 1e-8).slice(1, 0, 1))), 1, std::log(1e-8)},
    {SLUICE_PROTECTED(exp(pad(z, {1, 0}, -1e9).slice(1, 0, 1) * 1e-9)), 1, std::exp(-1)},
    {SLUICE_PROTECTED(z / (sluice::std(sluice::cat({z, z}, 1), {1}, 0, true) + 1e-8)), 1e-2, 1e6},
    {SLUICE_PROTECTED(normalize(z, 2, 1)), 0, 0},
    {SLUICE_PROTECTED(layer_norm(z, {1}, {}, {}, 1e-12)), 0, 0},
    {SLUICE_PROTECTED(rms_norm(z, {1}, {}, 1e-12)), 0, 0},
    {SLUICE_PROTECTED(layer_norm(sluice::cat({z, -z}, 1), {2}, {}, {}, 1e-5).slice(1, 0, 1)), 1e-4, 0.0316070},
    {SLUICE_PROTECTED(layer_norm(sluice::cat({z, -z}, 1), {2}, {}, {}, 1e-8).slice(1, 0, 1)), 1e-4, 0.7071068},
    {SLUICE_PROTECTED(layer_norm(sluice::cat({z, -z}, 1), {2}, {}, {}, 1e-12).slice(1, 0, 1)), 1e-4, 0.9999500},
    {SLUICE_PROTECTED(group_norm(sluice::cat({z, -z}, 1), 1, {}, {}, 1e-5).slice(1, 0, 1)), 1e-4, 0.0316070},
    {SLUICE_PROTECTED(group_norm(sluice::cat({z, -z}, 1), 1, {}, {}, 1e-8).slice(1, 0, 1)), 1e-4, 0.7071068},
    {SLUICE_PROTECTED(group_norm(sluice::cat({z, -z}, 1), 1, {}, {}, 1e-12).slice(1, 0, 1)), 1e-4, 0.9999500},
    {SLUICE_PROTECTED(instance_norm(sluice::cat({z, -z}, 1).unsqueeze(1), {}, {}, 1e-5).slice(2, 0, 1)), 1e-4,
     0.0316070},
    {SLUICE_PROTECTED(instance_norm(sluice::cat({z, -z}, 1).unsqueeze(1), {}, {}, 1e-8).slice(2, 0, 1)), 1e-4,
     0.7071068},
    {SLUICE_PROTECTED(instance_norm(sluice::cat({z, -z}, 1).unsqueeze(1), {}, {}, 1e-12).slice(2, 0, 1)), 1e-4,
     0.9999500},
    {SLUICE_PROTECTED(rms_norm(z, {1}, {}, 1e-5)), 1e-4, 0.0316070},
    {SLUICE_PROTECTED(rms_norm(z, {1}, {}, 1e-8)), 1e-4, 0.7071068},
    {SLUICE_PROTECTED(rms_norm(z, {1}, {}, 1e-12)), 1e-4, 0.9999500},
    {SLUICE_PROTECTED(normalize(z, 2, 1, 1e-3)), 1e-4, 0.1},
    {SLUICE_PROTECTED(normalize(z, 2, 1, 1e-12)), 1e-4, 1},
    {SLUICE_PROTECTED(normalize(z, 2, 1, 1e-5) * normalize(-z, 2, 1, 1e-5)), 1e-4, -1},
    {SLUICE_PROTECTED(square(z) / clip(norm(z) * norm(z), 1e-12)), 1e-4, 1},
    {SLUICE_PROTECTED(sqrt(z + 1e-12)), 0, 1e-6},
    {SLUICE_PROTECTED(rsqrt(z + 1e-5)), 0, 316.227766},
    {SLUICE_PROTECTED(rsqrt(z + 1e-12)), 0, 1e6},
    {SLUICE_PROTECTED(-(0.5 * log(z + 1e-12) + 0.5 * log(1.0 - z + 1e-12))), 1, -0.5 * std::log(1e-12)},
};

} // namespace

TEST(MixedPrecision, KeepsWhatProtectsADivisionOrALogarithm) {
  using namespace sluice;
  for (const Protected &one : kProtected)
    for (Precision precision : {Precision::F32, Precision::BF16, Precision::F16}) {
      Graph g("protected");
      Tensor a = g.input("a", f32, {1, 1}), b = g.input("b", f32, {1, 1});
      g.output("y", one.formula(matmul(a, b)));
      double error = errorIn(precision, g.str(), {{"a", {one.z}}, {"b", {1}}}, {one.result});
      EXPECT_TRUE(error <= 0.01 * std::abs(one.result))
          << one.text << " at " << one.z << " in " << stringifyPrecision(precision).str() << " is off by " << error;
    }
}

/// The sum of a batch of two after batch norm, in a training step, with their signs. The variance is 1e-8.
static double normalizedInTraining(sluice::DType dtype, Precision precision, double eps) {
  using namespace sluice;
  Graph g("small");
  g.set_capacity(2);
  g.set_dtype(dtype);
  nn::Module root{g};
  nn::BatchNorm2d bn{&root, "bn", 1, {.eps = eps}};
  Tensor a = g.input("a", dtype, {Dim{"batch"}, 1}), b = g.input("b", dtype, {1, 1}),
         sign = g.input("sign", dtype, {Dim{"batch"}, 1});
  g.minimize((bn(matmul(a, b)) * sign).sum(), optim::SGD{.lr = 0});
  Compiled model(g.str(), in(precision));
  model.init(1);
  return model.run("train_step", {{"a", {1e-4, -1e-4}}, {"b", {1}}, {"sign", {1, -1}}}, 2).at("loss")[0];
}

TEST(BatchNorm, HasItsEpsilonInHalves) {
  constexpr std::pair<sluice::DType, Precision> types[] = {{sluice::f32, Precision::F32},
                                                           {sluice::f32, Precision::BF16},
                                                           {sluice::f32, Precision::F16},
                                                           {sluice::bf16, Precision::F32},
                                                           {sluice::f16, Precision::F32}};
  for (auto [dtype, precision] : types)
    for (double eps : {1e-5, 1e-8, 1e-12}) {
      double wanted = 2 * 1e-4 / std::sqrt(1e-8 + eps), sum = normalizedInTraining(dtype, precision, eps);
      EXPECT_TRUE(std::abs(sum - wanted) <= 0.01 * wanted)
          << sum << " with " << eps << " in " << to_string(dtype) << " and " << stringifyPrecision(precision).str();
    }
}

namespace {

constexpr int64_t kPositions = 600, kElements = 8;

/// The result of rotating pairs of ones.
std::vector<double> turnedOnes() {
  std::vector<double> y;
  for (int64_t position = 0; position < kPositions; ++position)
    for (int64_t i = 0; i < kElements; ++i) {
      int64_t pair = i % (kElements / 2);
      double angle = double(position) * std::pow(10000.0, -2.0 * double(pair) / double(kElements));
      y.push_back(std::cos(angle) + (i < kElements / 2 ? -std::sin(angle) : std::sin(angle)));
    }
  return y;
}

std::string turned(sluice::DType dtype) {
  using namespace sluice;
  Graph g("turned");
  Tensor x = g.input("x", f32, {1, kPositions, kElements});
  g.output("y", rope(x.to(dtype)).to(f32));
  return g.str();
}

const Values kOnes{{"x", std::vector<double>(kPositions *kElements, 1)}};

} // namespace

TEST(Rope, OfHalvesRoundsOnce) {
  EXPECT_LE(errorIn(Precision::F32, turned(sluice::f32), kOnes, turnedOnes()), 1e-4);
  EXPECT_LE(errorIn(Precision::F32, turned(sluice::bf16), kOnes, turnedOnes()), 0.0041);
  EXPECT_LE(errorIn(Precision::F32, turned(sluice::f16), kOnes, turnedOnes()), 0.0006);
}

TEST(Rope, InDoublePrecisionHasAllDigits) {
  sluice::CompileOptions options;
  options.dtype = sluice::f64;
  Compiled model(turned(sluice::f32), options);
  EXPECT_LE(largestDifference(model.run("predict", kOnes, 1).at("y"), turnedOnes()), 1e-12);
}

// The gradient of e^x is subnormal, and the reciprocal of log's operand is large. A float can represent both.
TEST(Subnormals, HaveGradients) {
  using namespace sluice;
  Graph g("subnormals");
  Tensor x = g.input("x", f32, {3});
  g.output("y", grad(log(exp(x)).sum(), {x})[0]);
  std::vector<double> got = Compiled(g.str()).run("predict", {{"x", {-80, -87, -88.5}}}, 1).at("y");
  EXPECT_LE(largestDifference(got, {1, 1, 1}), 1e-5);
}

namespace {

/// The values of a weight, initially 1, after each step with these gradients.
template <class Optimizer>
std::vector<double> weightsAfter(Optimizer optimizer, const std::vector<double> &gradients,
                                 sluice::DType dtype = sluice::f32, Precision precision = Precision::F32) {
  using namespace sluice;
  Graph g("weight");
  g.set_capacity(1);
  g.set_dtype(dtype);
  Tensor x = g.input("x", dtype, {Dim{"batch"}, 1});
  nn::Module root{g};
  Tensor w = root.parameter("w", {1, 1}, init::ones());
  optim::Options options;
  if (precision == Precision::F16)
    options.loss_scale = optim::LossScale{.init_scale = 16}; // the scale 65536 is infinite as an f16 gradient
  g.minimize(matmul(x, w).mean(), optimizer, options);
  Compiled model(g.str(), in(precision));
  model.init(1);
  std::vector<double> weights;
  for (double gradient : gradients) {
    model.run("train_step", {{"x", {gradient}}}, 1);
    weights.push_back(model.state("w")[0]);
  }
  return weights;
}

} // namespace

// The square of 1e20 is infinite in f32, but a thousandth or a hundredth of it is finite. The expected values are those
// of PyTorch 1.13.
TEST(Optimizers, GoOnAfterAGradientWhoseSquareOverflows) {
  const std::vector<double> gradients{1e20, 1, 1};
  EXPECT_LE(largestDifference(weightsAfter(sluice::optim::Adam{.lr = 0.1}, gradients), {0.9, 0.832994223, 0.781198502}),
            1e-6);
  EXPECT_LE(largestDifference(weightsAfter(sluice::optim::Adam{.lr = 0.1, .amsgrad = true}, gradients),
                              {0.9, 0.833027720, 0.781283796}),
            1e-6);
  EXPECT_LE(largestDifference(weightsAfter(sluice::optim::RMSprop{.lr = 0.01, .alpha = 0.999}, gradients),
                              {0.683772266, 0.683772266, 0.683772266}),
            1e-6);
}

// For larger gradients, the second moment is infinite and the weight does not change.
TEST(Optimizers, StopAfterAGradientThatIsTooLarge) {
  std::vector<double> weights = weightsAfter(sluice::optim::Adam{.lr = 0.1}, {1e25, 1, 1});
  EXPECT_EQ(weights, std::vector<double>(3, 1));
}

// The square of 1e-6, its root's epsilon of 1e-8 and the update are computed in f32, whatever the weight is stored in.
TEST(Optimizers, HaveTheirEpsilonInHalves) {
  constexpr std::pair<sluice::DType, Precision> types[] = {{sluice::f32, Precision::F32},
                                                           {sluice::f32, Precision::BF16},
                                                           {sluice::f32, Precision::F16},
                                                           {sluice::bf16, Precision::F32},
                                                           {sluice::f16, Precision::F32}};
  for (auto [dtype, precision] : types)
    for (double eps : {1e-5, 1e-8, 1e-12}) {
      double moved = 0.5 * 1e-6 / (1e-6 + eps),
             adam = 1 - weightsAfter(sluice::optim::Adam{.lr = 0.5, .eps = eps}, {1e-6}, dtype, precision)[0],
             rms = 1 - weightsAfter(sluice::optim::RMSprop{.lr = 0.05, .eps = eps}, {1e-5}, dtype, precision)[0];
      std::string where = std::string(to_string(dtype)) + " and " + stringifyPrecision(precision).str();
      EXPECT_TRUE(std::abs(adam - moved) <= 0.02 * moved + 0.004) << adam << " with " << eps << " in " << where;
      moved = 0.05 * 1e-5 / (1e-6 + eps);
      EXPECT_TRUE(std::abs(rms - moved) <= 0.02 * moved + 0.004) << rms << " with " << eps << " in " << where;
    }
}
