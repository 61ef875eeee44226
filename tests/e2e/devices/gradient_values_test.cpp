// Gradients as values, and their uses in a graph, compared with finite differences, formulas and plain loops in double
// precision. They run on the host, on virtual accelerators and on both.
#include "tests/Worse.h"
#include <cmath>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <sluice/compile.h>
#include <sluice/sluice.h>

using namespace sluice;
using sluice::test::worse;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

using Doubles = std::vector<double>;
using Inputs = std::map<std::string, Doubles>;

/// A target, and the devices of values.
struct Place {
  const char *devices;
  Device first, second;
};

const Place kPlaces[] = {
    {"cpu", cpu(), cpu()}, {"sim:0", gpu(0), gpu(0)}, {"sim:0-1", gpu(0), gpu(1)}, {"cpu,sim:0", cpu(), gpu(0)}};

Doubles wave(size_t count, double from = 0) {
  Doubles values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = std::sin(from + 1.7 * double(i));
  return values;
}

double largestDifference(const Doubles &a, const Doubles &b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    worst = worse(worst, std::abs(a[i] - b[i]));
  return worst;
}

/// The outputs of `predict` of a graph in double precision, with given parameters.
class Function {
public:
  Function(const Graph &g, const Inputs &inputs, const Inputs &states)
      : program(compile(g, {.dtype = f64})), inputs(inputs) {
    program.seed(1);
    program.run("init", 1);
    for (const auto &[name, value] : states)
      program.set_state(name, value);
  }

  Doubles operator()(const std::string &output) {
    for (const auto &[name, value] : inputs)
      program.set_input(name, value);
    program.run("predict", 1);
    return program.output<double>(output);
  }

  /// The largest error of the output "d NAME", the gradient of a scalar output with respect to an input.
  double errorOf(const std::string &name, const std::string &loss) {
    Doubles gradient = (*this)("d_" + name), value = inputs.at(name);
    EXPECT_EQ(gradient.size(), value.size());
    double worst = 0, step = 1e-5;
    for (size_t i = 0; i < value.size(); ++i) {
      inputs[name][i] = value[i] + step;
      double above = (*this)(loss)[0];
      inputs[name][i] = value[i] - step;
      double below = (*this)(loss)[0];
      inputs[name] = value;
      worst = worse(worst, std::abs((above - below) / (2 * step) - gradient[i]));
    }
    return worst;
  }

private:
  Program program;
  Inputs inputs;
};

} // namespace

// Gradients with respect to an input, an intermediate value, its copy on another device, and the logits. The
// differences use inputs that are added to these values.
TEST(Gradient, AgreesWithFiniteDifferences) {
  for (const Place &place : kPlaces) {
    Graph g{"net"};
    g.set_devices(place.devices);
    Inputs inputs{{"x", wave(12)}, {"hidden", wave(20, 1)}, {"copy", wave(20, 2)}, {"logits", wave(25, 3)}};
    nn::Module root{g};
    Tensor w = root.parameter("w", {3, 5}, init::zeros());
    root.to(place.first);
    Tensor x = g.input("x", f32, {4, 3}).to(place.first);
    Tensor hidden = tanh(matmul(x, w)) + g.input("hidden", f32, {4, 5}).to(place.first);
    Tensor copy = hidden.copy_to(place.second) + g.input("copy", f32, {4, 5}).to(place.second);
    Tensor logits = matmul(copy.t(), sigmoid(copy)) + g.input("logits", f32, {5, 5}).to(place.second);
    Tensor loss = mean(logsumexp(logits, 1)) + mean(square(hidden)).to(place.second);
    g.output("loss", loss);
    std::vector<Tensor> gradients = grad(loss, {x, hidden, copy, logits});
    EXPECT_EQ(gradients[1].device(), place.first);
    EXPECT_EQ(gradients[2].device(), place.second);
    g.output("d_x", gradients[0]);
    g.output("d_hidden", gradients[1]);
    g.output("d_copy", gradients[2]);
    g.output("d_logits", gradients[3]);
    Function f(g, inputs, {{"w", wave(15, 4)}});
    for (const char *name : {"x", "hidden", "copy", "logits"})
      EXPECT_LE(f.errorOf(name, "loss"), 1e-8) << name << " on " << place.devices;
  }
}

// A product absorbs the transposition of an operand, which still has a gradient, x^T c; the parameter's gradient is its
// transpose.
TEST(Gradient, IsByWhatAProductTakesIn) {
  Graph g{"product"};
  Tensor x = g.input("x", f32, {2, 3});
  Tensor w = g.input("w", f32, {2, 3});
  Tensor turned = w.t();
  Tensor loss = sum(matmul(x, turned) * g.input("c", f32, {2, 2}));
  std::vector<Tensor> gradients = grad(loss, {turned, w});
  g.output("loss", loss);
  g.output("d_turned", gradients[0]);
  g.output("d_w", gradients[1]);
  Function f(g, {{"x", {1, 2, 3, 4, 5, 6}}, {"w", wave(6)}, {"c", {1, 10, 100, 1000}}}, {});
  EXPECT_THAT(f("d_turned"), ElementsAre(401, 4010, 502, 5020, 603, 6030));
  EXPECT_THAT(f("d_w"), ElementsAre(401, 502, 603, 4010, 5020, 6030));
}

// log_softmax and the selection of the label's element become one op, unless the gradient with respect to the value
// between them is requested.
TEST(Gradient, IsByLogProbabilities) {
  Graph g{"loss"};
  Tensor probabilities = log_softmax(g.input("x", f32, {2, 3}), 1);
  Tensor loss = nll_loss(probabilities, g.input("label", i32, {2}));
  g.output("d", grad(loss, {probabilities})[0]);
  g.output("loss", loss);
  Program program = compile(g);
  program.set_input("x", std::vector<float>{1, 2, 3, 4, 5, 6});
  program.set_input("label", std::vector<std::int32_t>{2, 0});
  program.run("predict", 1);
  EXPECT_THAT(program.output<float>("d"), ElementsAre(0, 0, -0.5F, -0.5F, 0, 0));
}

TEST(Gradient, OfGradientsAgreesWithFiniteDifferences) {
  Graph g{"twice"};
  Tensor x = g.input("x", f32, {4, 3}), w = g.input("w", f32, {3, 5});
  Tensor loss = sum(tanh(matmul(x, w)) * sum(x * x));
  Tensor penalty = sum(square(grad(loss, {x})[0]));
  g.output("penalty", penalty);
  std::vector<Tensor> second = grad(penalty, {x, w});
  g.output("d_x", second[0]);
  g.output("d_w", second[1]);
  Function f(g, {{"x", wave(12)}, {"w", wave(15, 1)}}, {});
  for (const char *name : {"x", "w"})
    EXPECT_LE(f.errorOf(name, "penalty"), 1e-5) << name; // for values of several hundred
}

// A step of plain SGD with rate 1 subtracts the gradient of the whole loss, which contains gradients.
TEST(Gradient, MayBePartOfWhatIsMinimized) {
  Graph g{"penalty"};
  nn::Module root{g};
  Tensor w = root.parameter("w", {3}, init::zeros()), x = g.input("x", f32, {4, 3});
  Tensor loss = mean(tanh(sum(x * w, 1)));
  g.minimize(loss + sum(square(grad(loss, {x})[0])), optim::SGD{.lr = 1});
  Program program = compile(g, {.dtype = f64});
  program.seed(1);
  program.run("init", 1);
  Doubles begin = wave(3, 1);
  auto lossAt = [&](size_t i, double moved) {
    Doubles value = begin;
    value[i] += moved;
    program.set_state("w", value);
    program.set_input("x", wave(12));
    program.run("eval_step", 1);
    return program.output<double>("loss")[0];
  };
  Doubles expected = begin;
  for (size_t i = 0; i < 3; ++i)
    expected[i] -= (lossAt(i, 1e-5) - lossAt(i, -1e-5)) / 2e-5;
  program.set_state("w", begin);
  program.set_input("x", wave(12));
  program.run("train_step", 1);
  EXPECT_LE(largestDifference(program.state<double>("w"), expected), 1e-9);
}

// Gradient penalties through layers whose gradients are separate kernels.
struct Layer {
  const char *name;
  Tensor (*apply)(const Tensor &x);
};

/// The last carried value of a loop, and all its stacked values.
static Tensor products(const Tensor &x) {
  Tensor rows = x.reshape({4, 8});
  ScanStep all = scan({rows.mean(0)}, {rows}, 0, [](auto &carried, auto &slices) {
    Tensor next = tanh(carried[0]) * slices[0];
    return ScanStep{{next}, {next}};
  });
  return all.carried[0] + all.stacked[0].sum(0);
}

class Penalty : public testing::TestWithParam<Layer> {};

TEST_P(Penalty, HasTheGradientOfDifferences) {
  Graph g{"penalty"};
  Tensor x = g.input("x", f32, {1, 2, 4, 4}), weight = g.arange(0.5, 2.5, 0.5, f32);
  Tensor loss = sum(square(GetParam().apply(x))) + sum(x * weight) * sum(GetParam().apply(x * x));
  Tensor penalty = sum(square(grad(loss, {x})[0]));
  g.output("penalty", penalty);
  g.output("d_x", grad(penalty, {x})[0]);
  Function f(g, {{"x", wave(32, 0.3)}}, {});
  double scale = 1;
  for (double each : f("d_x"))
    scale = std::max(scale, std::abs(each));
  EXPECT_LE(f.errorOf("x", "penalty"), 1e-6 * scale);
}

INSTANTIATE_TEST_SUITE_P(
    Layers, Penalty,
    testing::Values(
        Layer{"layer_norm", [](const Tensor &x) { return layer_norm(x, {4}, {}, {}, 0.1); }},
        Layer{"max_pool2d", [](const Tensor &x) { return max_pool2d(x, 3, {.stride = 2, .padding = 1}); }},
        Layer{"attention", [](const Tensor &x) { return scaled_dot_product_attention(x, x, x, {.is_causal = true}); }},
        Layer{"interpolate", [](const Tensor &x) { return interpolate_to(x, 5, {.mode = Interpolation::bilinear}); }},
        Layer{"scan", products}),
    [](const auto &layer) { return std::string(layer.param.name); });

/// A function of images 0 1; 2 3, its values, and the gradient of their sum weighted by 1, 2, ...
struct Windowed {
  std::function<Tensor(Tensor x, Tensor w)> apply; ///< w is 1 2; 3 4
  Doubles values, gradient;
};

// Results of PyTorch 2.15 on images padded and results cropped by F.pad.
TEST(Gradient, OfWindowsPaddedOnOneSide) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  Size2 right(2, 0);
  const Windowed cases[] = {
      {[&](Tensor x, Tensor) { return max_pool2d(x, 3, {.stride = {1, 2}, .padding = {0, 2}, .padding_end = right}); },
       {2, 2},
       {0, 0, 3, 0}},
      {[](Tensor x, Tensor) {
         return max_pool2d(x, {2, 1}, {.stride = 1, .padding = {2, 0}, .dilation = {4, 1}, .padding_end = Size2(3, 0)});
       },
       {-inf, -inf, -inf, -inf, 0, 1}, // the first two windows have no element
       {5, 6, 0, 0}},
      {[&](Tensor x, Tensor) {
         return avg_pool2d(x, 3,
                           {.stride = {1, 2}, .padding = {0, 2}, .count_include_pad = false, .padding_end = right});
       },
       {1, 2},
       {0.5, 0, 2.5, 0}},
      {[&](Tensor x, Tensor) { return avg_pool2d(x, 3, {.stride = {1, 2}, .padding = {0, 2}, .padding_end = right}); },
       {2.0 / 9, 2.0 / 9},
       {1.0 / 9, 0, 3.0 / 9, 0}},
      {[&](Tensor x, Tensor w) {
         return conv2d(x, w, {}, {.stride = {2, 1}, .padding = {0, 1}, .padding_end = right});
       },
       {8, 20, 0, 0},
       {4, 4, 10, 8}},
      {[](Tensor x, Tensor w) {
         return conv_transpose2d(x, w, {}, {.stride = 2, .padding = {0, 1}, .padding_end = Size2(1, 0)});
       },
       {0, 1, 2, 0, 3, 4, 4, 3, 6},
       {18, 47, 14, 26}},
      {[&](Tensor x, Tensor w) {
         return conv_transpose2d(x, w, {}, {.stride = 2, .output_padding = {3, 1}, .padding_end = Size2(2, 1)});
       },
       {0, 0, 1, 2, 0, 0, 3, 4, 2, 4, 3, 6, 6, 8, 9, 12, 0, 0, 0, 0},
       {44, 64, 124, 144}}};
  Graph g{"windows"};
  Tensor x = g.input("x", f32, {1, 1, 2, 2}), w = g.arange(1, 5, 1, f32).reshape({1, 1, 2, 2});
  for (size_t i = 0; i < std::size(cases); ++i) {
    Tensor y = cases[i].apply(x, w).flatten(0);
    Tensor factors = g.arange(1, double(cases[i].values.size() + 1), 1, f32);
    g.output("y" + std::to_string(i), y);
    g.output("d" + std::to_string(i), grad(sum(y * factors), {x})[0]);
  }
  Function f(g, {{"x", {0, 1, 2, 3}}}, {});
  for (size_t i = 0; i < std::size(cases); ++i) {
    SCOPED_TRACE(i);
    EXPECT_THAT(f("y" + std::to_string(i)), testing::Pointwise(testing::DoubleNear(1e-15), cases[i].values));
    EXPECT_THAT(f("d" + std::to_string(i)), testing::Pointwise(testing::DoubleNear(1e-15), cases[i].gradient));
  }
}

// Per-replica batch statistics have no formula over all rows.
TEST(Gradient, OfWhatHasNoneIsRefusedWhereItIsAskedFor) {
  Graph g{"penalty"};
  g.set_capacity(8);
  nn::Module root{g};
  nn::BatchNorm2d norm{&root, "norm", 3};
  Tensor x = g.input("x", f32, {Dim{"batch"}, 3});
  Tensor y = norm(x * x), first = grad(square(y).sum(1).mean(), {x})[0];
  int line = __LINE__ + 1;
  g.minimize(square(first).sum(1).mean(), optim::SGD{.lr = 1});
  compile(g);
  std::string message;
  try {
    compile(g, {.replicas = 2});
  } catch (const Error &error) {
    message = error.what();
  }
  EXPECT_THAT(message, HasSubstr("cannot differentiate: 'sluice.batch_norm_grad' of"));
  EXPECT_THAT(message, HasSubstr("gradient_values_test.cpp:" + std::to_string(line) + ":"));
  EXPECT_THAT(message, testing::Not(HasSubstr("see current operation")));
}

// A differentiated scan is replaced by one that keeps more values.
TEST(Gradient, IsByWhatAScanLeaves) {
  Graph g{"scan"};
  Tensor x = g.input("x", f32, {4, 3});
  ScanStep all = scan({g.input("first", f32, {3})}, {x}, 0, [](auto &carried, auto &slices) {
    Tensor next = carried[0] * slices[0];
    return ScanStep{{next}, {next}};
  });
  Tensor loss = sum(square(all.carried[0])) + sum(all.stacked[0]);
  std::vector<Tensor> gradients = grad(loss, {all.carried[0], all.stacked[0], x});
  g.output("loss", loss);
  g.output("last", all.carried[0]);
  g.output("d_last", gradients[0]);
  g.output("d_stack", gradients[1]);
  g.output("d_x", gradients[2]);
  Function f(g, {{"x", wave(12)}, {"first", {1, 2, 3}}}, {});
  Doubles twice = f("last");
  for (double &each : twice)
    each *= 2;
  EXPECT_LE(largestDifference(f("d_last"), twice), 1e-15);
  EXPECT_THAT(f("d_stack"), Each(1.0));
  EXPECT_LE(f.errorOf("x", "loss"), 1e-8);
}

// With products in bf16, whose results are rounded, the gradient is with respect to a value between them.
TEST(Gradient, IsByWhatProductsInHalvesGive) {
  Graph g{"mixed"};
  Tensor x = g.input("x", f32, {2, 2}), w = g.input("w", f32, {2, 2});
  Tensor hidden = matmul(x, w), positive = relu(hidden);
  Tensor loss = sum(matmul(positive, w));
  std::vector<Tensor> gradients = grad(loss, {hidden, positive, w});
  for (size_t i = 0; i < 3; ++i)
    g.output("d" + std::to_string(i), gradients[i]);
  Program program = compile(g, {.precision = bf16});
  program.set_input("x", std::vector<float>{1, 2, 3, 4});
  program.set_input("w", std::vector<float>{1, 0, -1, 2});
  program.run("predict", 1); // hidden is [[-1, 4], [-1, 8]]
  EXPECT_THAT(program.output<float>("d0"), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(program.output<float>("d1"), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(program.output<float>("d2"), ElementsAre(0, 4, 12, 18));
}

// In training, dropout applies to the gradient; elsewhere it does not.
TEST(Gradient, IsOfTheModeItIsIn) {
  Graph g{"dropped"};
  nn::Module root{g};
  Tensor p = root.parameter("p", {64}, init::ones()), kept = root.buffer("kept", {64}, init::zeros());
  Tensor y = dropout(p);
  Tensor dp = grad(sum(y), {p})[0];
  g.output("dp", dp);
  kept.copy_(y);
  p.copy_(dp);
  Program program = compile(g);
  program.seed(3);
  program.run("init", 1);
  program.run("predict", 1);
  EXPECT_THAT(program.output<float>("dp"), Each(1.0F));
  program.run("train_step", 1);
  std::vector<float> mask = program.state<float>("kept");
  EXPECT_THAT(mask, testing::Contains(0.0F));
  EXPECT_THAT(mask, testing::Contains(2.0F));
  EXPECT_EQ(program.state<float>("p"), mask);
  program.run("train_step", 1);
  EXPECT_NE(program.state<float>("p"), mask) << "the key of the next step is another";
}

// Evaluation removes dropout, and with it the requested intermediate value: other uses of x do not contribute to its
// gradient.
TEST(Gradient, IsByAValueThatEvaluationLeavesAsItIs) {
  Graph g{"left"};
  Tensor x = g.input("x", f32, {3}), y = dropout(x);
  Tensor loss = sum(y * y + 100 * x * x);
  std::vector<Tensor> gradients = grad(loss, {y, x});
  g.output("dy", gradients[0]);
  g.output("dx", gradients[1]);
  Program program = compile(g);
  program.seed(1);
  program.run("init", 1);
  program.set_input("x", std::vector<float>{1, 2, 3});
  program.run("predict", 1);
  EXPECT_THAT(program.output<float>("dy"), ElementsAre(2, 4, 6));
  EXPECT_THAT(program.output<float>("dx"), ElementsAre(202, 404, 606));
}

// --- training without an optimizer

namespace {

constexpr size_t kRows = 5, kWidth = 3;

/// Linear regression with 5 rows. Gradients are summed over devices and divided by the number of all rows, as in the
/// notebook.
Graph regression(const char *targets, const std::vector<Device> &devices) {
  Graph g{"regression"};
  g.set_devices(targets);
  nn::Module root{g};
  Tensor host = root.parameter("w", {std::int64_t(kWidth)}, init::normal(0.0, 1.0));
  root.to(cpu());
  Tensor lr = g.hyper("lr", 0.5);
  auto [xs, ys] = split_batch(g.input("x", f32, {5, 3}), g.input("y", f32, {5}), devices, {.even_split = false});
  std::vector<Tensor> params, gradients, losses;
  for (size_t i = 0; i < devices.size(); ++i) {
    params.push_back(get_params({host}, devices[i]).front());
    losses.push_back(sum(square(sum(xs[i] * params[i], 1) - ys[i])));
    gradients.push_back(grad(losses[i], {params[i]}).front());
  }
  gradients = allreduce(gradients);
  for (size_t i = 0; i < devices.size(); ++i)
    params[i].copy_(params[i] - lr * gradients[i] / double(kRows));
  g.metric("loss", allreduce(losses).front() / double(kRows));
  return g;
}

/// The same in a plain loop; returns the loss before the step.
double regress(Doubles &w, const Doubles &x, const Doubles &y, double lr) {
  Doubles gradient(kWidth);
  double loss = 0;
  for (size_t row = 0; row < kRows; ++row) {
    double error = -y[row];
    for (size_t i = 0; i < kWidth; ++i)
      error += x[row * kWidth + i] * w[i];
    loss += error * error / double(kRows);
    for (size_t i = 0; i < kWidth; ++i)
      gradient[i] += 2 * error * x[row * kWidth + i];
  }
  for (size_t i = 0; i < kWidth; ++i)
    w[i] -= lr * gradient[i] / double(kRows);
  return loss;
}

} // namespace

TEST(TrainingWithoutAnOptimizer, IsThatOfAPlainLoop) {
  struct Case {
    const char *targets;
    std::vector<Device> devices;
    std::vector<std::string> names;
  };
  const Case cases[] = {{"cpu", {cpu()}, {"w.cpu"}},
                        {"sim:0-1", {gpu(0), gpu(1)}, {"w.gpu0", "w.gpu1"}},
                        {"cpu,sim:0-1", {cpu(), gpu(1), gpu(0)}, {"w.cpu", "w.gpu1", "w.gpu0"}}};
  for (const auto &[targets, devices, names] : cases) {
    Program program = compile(regression(targets, devices), {.dtype = f64});
    program.seed(5);
    program.run("init", 1);
    Doubles w = program.state<double>("w"), begin = w;
    for (int step = 0; step < 5; ++step) {
      double lr = step < 3 ? 0.5 : 0.1;
      if (step == 3)
        program.set_state("lr", Doubles{lr});
      Doubles x = wave(kRows * kWidth, step), y = wave(kRows, 2.0 * step);
      for (const char *entry : {"eval_step", "train_step"}) {
        program.set_input("x", x);
        program.set_input("y", y);
        program.run(entry, 1);
      }
      EXPECT_NEAR(program.output<double>("loss")[0], regress(w, x, y, lr), 1e-12) << targets << ", step " << step;
      for (const std::string &name : names)
        EXPECT_LE(largestDifference(program.state<double>(name), w), 1e-13) << name << " of " << targets;
      for (const std::string &name : names)
        EXPECT_EQ(program.state<double>(name), program.state<double>(names.front())) << name << ": other bits";
    }
    EXPECT_EQ(program.state<double>("w"), begin) << "what was copied stays";
  }
}

namespace {

/// One weight, updated by the gradient of a mean over rows.
Graph rowwise() {
  Graph g{"rows"};
  nn::Module root{g};
  Tensor w = root.parameter("w", {std::int64_t(kWidth)}, init::ones());
  Tensor loss = mean(square(sum(g.input("x", f32, {Dim{"batch"}, 3}) * w, 1) - g.input("y", f32, {Dim{"batch"}})));
  w.copy_(w - g.hyper("lr", 0.5) * grad(loss, {w})[0]);
  g.metric("loss", loss);
  return g;
}

} // namespace

// Gradients of replicas and microbatches are summed before use, as for an optimizer.
TEST(TrainingWithoutAnOptimizer, IsOfAllRowsOfReplicasAndMicrobatches) {
  const CompileOptions ways[] = {{.dtype = f64},
                                 {.dtype = f64, .replicas = 2},
                                 {.dtype = f64, .devices = "sim:0-2", .replicas = 3},
                                 {.dtype = f64, .accumulate = 2},
                                 {.dtype = f64, .replicas = 2, .deterministic = 4}};
  for (const CompileOptions &way : ways) {
    Program program = compile(rowwise(), way);
    program.seed(1);
    program.run("init", 1);
    Doubles w(kWidth, 1.0);
    for (int step = 0; step < 3; ++step) {
      Doubles x = wave(kRows * kWidth, step), y = wave(kRows, 2.0 * step);
      program.set_input("x", x);
      program.set_input("y", y);
      program.run("train_step", kRows);
      EXPECT_NEAR(program.output<double>("loss")[0], regress(w, x, y, 0.5), 1e-12);
    }
    EXPECT_LE(largestDifference(program.state<double>("w"), w), 1e-13)
        << way.replicas.value_or(1) << " replicas, " << way.accumulate.value_or(1) << " microbatches";
  }
}
