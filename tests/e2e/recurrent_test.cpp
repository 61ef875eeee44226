// Scans and recurrent layers: their results, gradients by finite differences, and the same bits for any number of
// threads and on an accelerator. The compiled code does not grow with the number of steps.
#include "sluice/sluice.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/TrainedAlike.h"
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace sluice::test;

namespace {

constexpr int64_t kRows = 6, kFeatures = 5, kHidden = 8, kSteps = 7;

/// A custom recurrence: a decaying sum in either direction. It has weights in a product, in a bias, in a factor of
/// rows, and in a factor of a value without rows.
std::string recurrence(bool reverse, int64_t steps = kSteps, bool recompute = false) {
  using namespace sluice;
  Graph g("recurrence");
  g.set_capacity(kRows);
  g.set_dtype(f64);
  Tensor x = g.input("x", f64, {Dim{"batch"}, steps, kHidden});
  nn::Module root{g};
  Tensor w = root.parameter("w", {kHidden, kHidden}, init::uniform(-0.5, 0.5)),
         b = root.parameter("b", {kHidden}, init::uniform(-0.5, 0.5)),
         decay = root.parameter("decay", {kHidden}, init::uniform(0.5, 0.9)),
         start = root.parameter("start", {kHidden}, init::uniform(-0.5, 0.5)),
         factor = root.parameter("factor", {kHidden}, init::uniform(0.5, 0.9));
  ScanStep all = scan({zeros_like(x.select(1, 0)) + start, zeros_like(x.select(1, 0)), start}, {x, tanh(x * b)}, 1,
                      [&](const std::vector<Tensor> &carried, const std::vector<Tensor> &slices) {
                        Tensor h = tanh(linear(carried[0], w, b) + slices[0] + slices[1] + carried[2]);
                        Tensor sum = carried[1] * decay + h * slices[1];
                        return ScanStep{{h, sum, carried[2] * factor}, {sum, softmax(h, 1)}};
                      },
                      {.reverse = reverse, .recompute = recompute});
  g.output("sum", all.carried[1]);
  g.output("sums", all.stacked[0]);
  Tensor scaled = all.stacked[0] * all.stacked[1];
  g.minimize(square(scaled).mean() + all.carried[0].mean(), optim::SGD{.lr = 0, .momentum = 0.9});
  return g.str();
}

/// A scan in each step of another scan, in the opposite direction. It runs along the features of a row and starts with
/// a value that the outer scan carries. The inner scan reads its weights in a product, as a factor, and as an initial
/// value.
std::string nested(sluice::DType dtype, const std::string &devices = "cpu") {
  using namespace sluice;
  Graph g("nested");
  g.set_devices(devices);
  g.set_capacity(kRows);
  g.set_dtype(dtype);
  Tensor x = g.input("x", dtype, {Dim{"batch"}, kSteps, kHidden});
  nn::Module root{g};
  Tensor w = root.parameter("w", {kHidden, kHidden}, init::uniform(-0.5, 0.5)),
         u = root.parameter("u", {3, 3}, init::uniform(-0.7, 0.7)),
         decay = root.parameter("decay", {3}, init::uniform(0.5, 0.9)),
         start = root.parameter("start", {3}, init::uniform(-0.5, 0.5));
  ScanStep all = scan(
      {zeros_like(x.select(1, 0))}, {x}, 1, [&](const std::vector<Tensor> &carried, const std::vector<Tensor> &slices) {
        Tensor h = tanh(linear(carried[0], w) + slices[0]);
        ScanStep inner = scan({zeros_like(h.slice(1, 0, 3)) + start}, {h}, 1,
                              [&](const std::vector<Tensor> &state, const std::vector<Tensor> &feature) {
                                Tensor s = tanh(linear(state[0], u) + feature[0].unsqueeze(1) * decay);
                                return ScanStep{{s}, {s.mean(1)}};
                              },
                              {.reverse = true});
        return ScanStep{{h + inner.stacked[0] * 0.5}, {inner.carried[0]}};
      });
  g.output("last", all.carried[0]);
  g.minimize(square(all.stacked[0]).mean() + all.carried[0].mean(), optim::SGD{.lr = 0.1, .momentum = 0.9});
  return g.str();
}

enum class Kind { RNN, LSTM, GRU };
constexpr Kind kKinds[] = {Kind::RNN, Kind::LSTM, Kind::GRU};

template <class Layer> std::string network(sluice::DType dtype, int64_t steps, const std::string &devices) {
  using namespace sluice;
  Graph g("recurrent");
  g.set_devices(devices);
  g.set_capacity(kRows);
  g.set_dtype(dtype);
  Tensor x = g.input("x", dtype, {Dim{"batch"}, steps, kFeatures}), label = g.input("label", i32, {Dim{"batch"}});
  nn::Module root{g};
  Layer layer{&root, "layer", kFeatures, kHidden, {.num_layers = 2, .batch_first = true}};
  nn::Linear fc{&root, "fc", kHidden, 3};
  Tensor y = layer(x), logits = fc(y).mean(1) + fc(layer.h_n.select(0, 1));
  g.output("logits", logits);
  g.minimize(cross_entropy(logits, label), optim::SGD{.lr = 0.1, .momentum = 0.9});
  return g.str();
}

std::string network(Kind kind, sluice::DType dtype, int64_t steps = kSteps, const std::string &devices = "cpu") {
  switch (kind) {
  case Kind::RNN:
    return network<sluice::nn::RNN>(dtype, steps, devices);
  case Kind::LSTM:
    return network<sluice::nn::LSTM>(dtype, steps, devices);
  case Kind::GRU:
    return network<sluice::nn::GRU>(dtype, steps, devices);
  }
}

/// A sum over the steps, whose parameters are not trained.
template <class Layer> std::string sums(int64_t steps, bool stateful) {
  using namespace sluice;
  Graph g("sums");
  g.set_capacity(kRows);
  g.set_dtype(f64);
  Tensor x = g.input("x", f64, {Dim{"batch"}, steps, kFeatures});
  nn::Module root{g};
  Layer layer{&root, "layer", kFeatures, kHidden, {.num_layers = 2, .batch_first = true, .stateful = stateful}};
  g.minimize(layer(x).exp().sum({1, 2}).mean(), optim::SGD{.lr = 0});
  return g.str();
}

std::string sums(Kind kind, int64_t steps, bool stateful) {
  return kind == Kind::RNN    ? sums<sluice::nn::RNN>(steps, stateful)
         : kind == Kind::LSTM ? sums<sluice::nn::LSTM>(steps, stateful)
                              : sums<sluice::nn::GRU>(steps, stateful);
}

Values batch(int64_t rows, int64_t width, int64_t steps = kSteps) {
  std::vector<float> x = portableUniform("x", size_t(rows * steps * width), -1, 1);
  std::vector<int64_t> label = portableIntegers("label", size_t(rows), 3);
  return {{"x", {x.begin(), x.end()}}, {"label", {label.begin(), label.end()}}};
}

Values unlabelled(int64_t rows, int64_t steps = kSteps) { return {{"x", batch(rows, kHidden, steps).at("x")}}; }

/// All states after several steps; the last step has a short batch.
std::vector<std::byte> trained(const std::string &text, const sluice::CompileOptions &options, const RunOptions &run) {
  Compiled model(text, options, run);
  model.init(7);
  for (int64_t rows : {kRows, kRows, int64_t(2)})
    model.run("train_step", batch(rows, kFeatures), rows);
  return model.stateBytes();
}

} // namespace

// Plain loops over the model's own numbers.
TEST(Scan, IsALoopOverTheSlices) {
  for (bool reverse : {false, true}) {
    Compiled model(recurrence(reverse));
    model.init(3);
    Values inputs = unlabelled(kRows), actual = model.run("predict", inputs, kRows);
    const std::vector<double> &x = inputs.at("x");
    std::vector<double> w = model.state("w"), b = model.state("b"), decay = model.state("decay"),
                        start = model.state("start"), factor = model.state("factor"), sums(x.size()),
                        last(kRows * kHidden);
    for (int64_t row = 0; row < kRows; ++row) {
      std::vector<double> h = start, moving = start, sum(kHidden, 0.0);
      for (int64_t count = 0; count < kSteps; ++count) {
        int64_t step = reverse ? kSteps - 1 - count : count, at = (row * kSteps + step) * kHidden;
        std::vector<double> next(kHidden);
        for (int64_t i = 0; i < kHidden; ++i) {
          double product = b[i] + x[at + i] + std::tanh(x[at + i] * b[i]) + moving[i];
          for (int64_t j = 0; j < kHidden; ++j)
            product += h[j] * w[i * kHidden + j];
          next[i] = std::tanh(product);
          sum[i] = sum[i] * decay[i] + next[i] * std::tanh(x[at + i] * b[i]);
          sums[at + i] = sum[i];
          moving[i] *= factor[i];
        }
        h = next;
      }
      std::copy(sum.begin(), sum.end(), last.begin() + row * kHidden);
    }
    EXPECT_LT(largestDifference(actual.at("sums"), sums), 1e-13) << reverse;
    EXPECT_LT(largestDifference(actual.at("sum"), last), 1e-13) << reverse;
  }
}

/// A recurrence in this type that carries two values and sums one value over the rows in f32.
static std::string summedRecurrence(const std::string &type) {
  std::string text = R"(module {
  sluice.model "m" format 2 phase "model" capacity 512
  sluice.graph ["x"] (%x: tensor<?x5x256xf32>) {
    %in = sluice.cast %x {to = TYPE} : (tensor<?x5x256xf32>) -> tensor<?x5x256xTYPE>
    %zeros = sluice.full {value = 0.0 : f64, type = tensor<?x256xTYPE>} : () -> tensor<?x256xTYPE>
    %ones = sluice.full {value = 1.0 : f64, type = tensor<?x256xTYPE>} : () -> tensor<?x256xTYPE>
    %none = sluice.full {value = 0.0 : f64, type = tensor<256xf32>} : () -> tensor<256xf32>
    %r:4 = sluice.scan 5 steps
        (%h = %zeros : tensor<?x256xTYPE>,
         %last = %ones : tensor<?x256xTYPE>,
         %total = %none : tensor<256xf32>,
         %s = %in : tensor<?x5x256xTYPE> along 1)
        stack 1 {
      %next = sluice.add %h, %s : (tensor<?x256xTYPE>, tensor<?x256xTYPE>) -> tensor<?x256xTYPE>
      %product = sluice.mul %last, %next : (tensor<?x256xTYPE>, tensor<?x256xTYPE>) -> tensor<?x256xTYPE>
      %wide = sluice.cast %next {to = f32} : (tensor<?x256xTYPE>) -> tensor<?x256xf32>
      %sum = sluice.sum %wide {axes = array<i64: 0>} : (tensor<?x256xf32>) -> tensor<256xf32>
      %all = sluice.add %total, %sum : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
      sluice.step %product, %next, %all : tensor<?x256xTYPE>, tensor<?x256xTYPE>, tensor<256xf32>
          stack %last : tensor<?x256xTYPE>
    }
    %end = sluice.cast %r#0 {to = f32} : (tensor<?x256xTYPE>) -> tensor<?x256xf32>
    %lasts = sluice.cast %r#3 {to = f32} : (tensor<?x5x256xTYPE>) -> tensor<?x5x256xf32>
    sluice.output "h", %end : tensor<?x256xf32>
    sluice.output "total", %r#2 : tensor<256xf32>
    sluice.output "lasts", %lasts : tensor<?x5x256xf32>
  }
})";
  for (size_t at; (at = text.find("TYPE")) != std::string::npos;)
    text.replace(at, 4, type);
  return text;
}

// Tests that carried values are read before the next values overwrite them. The readers of `h` and `last` stack and
// multiply, and come after the sum over many rows. The loop of this sum stores `next`, directly or through the widened
// value for the sum. All numbers are small integers, and exact in either type.
TEST(Scan, ReplacesNothingThatIsStillRead) {
  constexpr int64_t rows = 512, width = 256, steps = 5;
  std::vector<float> x = portableUniform("x", rows * steps * width, -1.5, 1.5);
  for (float &value : x)
    value = std::round(value);
  std::vector<double> h(rows * width, 0.0), last(rows * width, 1.0), total(width), lasts(x.size());
  for (int64_t step = 0; step < steps; ++step)
    for (int64_t i = 0; i < rows * width; ++i) {
      int64_t at = (i / width * steps + step) * width + i % width;
      double next = h[size_t(i)] + double(x[size_t(at)]);
      lasts[size_t(at)] = last[size_t(i)];
      h[size_t(i)] = last[size_t(i)] * next;
      last[size_t(i)] = next;
      total[size_t(i % width)] += next;
    }
  for (const char *type : {"f32", "bf16"}) {
    Compiled model(summedRecurrence(type));
    Values actual = model.run("predict", {{"x", {x.begin(), x.end()}}}, rows);
    EXPECT_EQ(actual.at("h"), h) << type;
    EXPECT_EQ(actual.at("total"), total) << type;
    EXPECT_EQ(actual.at("lasts"), lasts) << type;
  }
}

TEST(Scan, HasTheGradientOfDifferences) {
  for (bool reverse : {false, true})
    expectGradientsOfDifferences(recurrence(reverse), unlabelled(4), 4, {"w", "b", "decay", "start", "factor"});
}

TEST(Scan, KeepsLessWhereItComputesAgain) {
  constexpr int64_t steps = 64;
  auto trained = [](bool reverse, bool recompute) {
    Compiled model(recurrence(reverse, steps, recompute));
    model.init(5);
    model.run("train_step", unlabelled(kRows, steps), kRows);
    int64_t bytes = 0;
    for (const sluice::runtime::Arena &arena : model.plan().arenas)
      bytes += arena.bytes;
    return std::pair(model.stateBytes(), bytes);
  };
  for (bool reverse : {false, true}) {
    auto [kept, bytes] = trained(reverse, false);
    auto [again, fewer] = trained(reverse, true);
    EXPECT_EQ(again, kept) << reverse;
    EXPECT_LE(fewer, bytes - kRows * kHidden * steps * int64_t(sizeof(double))) << "at least a value of each step";
  }
}

TEST(Scan, TrainsAsTheInterpreter) {
  for (const std::string &text : {recurrence(false), recurrence(true)}) {
    Compiled model(text);
    Interpreted reference(text);
    model.init(3);
    for (auto &[name, value] : reference.states)
      value.data = model.state(name);
    Values actual = model.run("train_step", unlabelled(5), 5), expected = reference.run("train_step", unlabelled(5), 5);
    EXPECT_LT(largestDifference(actual.at("loss"), expected.at("loss")), 1e-12);
    for (auto &[name, value] : reference.states)
      EXPECT_LT(largestDifference(model.state(name), value.data), 1e-12) << name;
  }
}

TEST(Recurrent, TrainsAsTheInterpreter) {
  for (Kind kind : kKinds) {
    std::string text = network(kind, sluice::f64);
    Compiled model(text);
    Interpreted reference(text);
    model.init(3);
    for (auto &[name, value] : reference.states)
      value.data = model.state(name);
    for (int64_t rows : {kRows, int64_t(3)}) {
      Values inputs = batch(rows, kFeatures);
      EXPECT_LT(largestDifference(model.run("train_step", inputs, rows).at("loss"),
                                  reference.run("train_step", inputs, rows).at("loss")),
                1e-12);
    }
    for (auto &[name, value] : reference.states)
      EXPECT_LT(largestDifference(model.state(name), value.data), 1e-11) << name;
  }
}

TEST(Recurrent, HasTheSameBitsOnAnyNumberOfThreadsAndOnAnAccelerator) {
  for (Kind kind : kKinds) {
    std::string text = network(kind, sluice::f32);
    std::vector<std::byte> one = trained(text, {}, {.threads = 1});
    EXPECT_EQ(one, trained(text, {}, {.threads = 2}));
    EXPECT_EQ(one, trained(text, {}, {.threads = 4}));
    EXPECT_EQ(one, trained(network(kind, sluice::f32, kSteps, "sim:0"), {}, {.sim = "seed=3"}));
    sluice::CompileOptions unfused;
    unfused.fuse = false;
    EXPECT_EQ(one, trained(text, unfused, {}));
  }
}

TEST(Recurrent, IsEqualOnReplicasAndInMicrobatches) {
  for (Kind kind : kKinds)
    for (auto [shares, microbatches] :
         {std::pair<std::vector<int64_t>, int64_t>({4, 2}, 1), {{1, 2, 3}, 1}, {{kRows}, 2}, {{4, 2}, 2}})
      expectAsOneDevice(network(kind, sluice::f64), batch(kRows, kFeatures), shares, microbatches, /*steps=*/2);
}

// A sum over all steps equals the sum over its parts, if each row continues from its state in the last batch that
// contained it.
TEST(Recurrent, GoesOnWhereTheRowLeftOffWhereItIsStateful) {
  for (Kind kind : kKinds) {
    Compiled parts(sums(kind, kSteps, /*stateful=*/true)), once(sums(kind, 2 * kSteps, /*stateful=*/false)),
        thrice(sums(kind, 3 * kSteps, /*stateful=*/false));
    for (Compiled *model : {&parts, &once, &thrice})
      model->init(5);
    auto lossOf = [](Compiled &model, const std::string &entry, const std::vector<double> &x, int64_t rows) {
      return double(rows) * model.run(entry, {{"x", x}}, rows).at("loss")[0];
    };
    constexpr int64_t few = 2, part = kSteps * kFeatures;
    std::vector<double> first = batch(kRows, kFeatures).at("x"), second(first.rbegin(), first.rbegin() + few * part),
                        third(first.rbegin(), first.rend()), longer, longest;
    for (int64_t row = 0; row < kRows; ++row) {
      std::vector<double> &to = row < few ? longest : longer;
      for (const std::vector<double> *of : {&first, &second, &third})
        if (of != &second || row < few)
          to.insert(to.end(), of->begin() + row * part, of->begin() + (row + 1) * part);
    }
    double expected = lossOf(thrice, "train_step", longest, few) + lossOf(once, "train_step", longer, kRows - few);
    double begin = lossOf(parts, "train_step", first, kRows);
    EXPECT_NEAR(lossOf(parts, "eval_step", first, kRows), begin, 1e-12) << "evaluation begins with zeros";
    double sum = begin + lossOf(parts, "train_step", second, few) + lossOf(parts, "train_step", third, kRows);
    EXPECT_NEAR(sum, expected, 1e-11);
    EXPECT_NEAR(lossOf(parts, "eval_step", first, kRows), begin, 1e-12);
    parts.init(5);
    EXPECT_NEAR(lossOf(parts, "train_step", first, kRows), begin, 1e-12) << "a model that begins anew";
  }
}

TEST(Recurrent, HasAPlanThatDoesNotGrowWithTheSteps) {
  auto sizes = [](int64_t steps) {
    Compiled model(network(Kind::LSTM, sluice::f32, steps));
    std::string plan = model.planText();
    return std::pair(model.plan().kernels.size(), std::count(plan.begin(), plan.end(), '\n'));
  };
  EXPECT_EQ(sizes(32), sizes(1024));
}

TEST(NestedScan, HasTheGradientOfDifferences) {
  expectGradientsOfDifferences(nested(sluice::f64), unlabelled(4), 4, {"w", "u", "decay", "start"});
}

TEST(NestedScan, TrainsAsTheInterpreter) { expectTrainsAsTheInterpreter(nested(sluice::f64), unlabelled(5), 5); }

TEST(NestedScan, HasTheSameBitsOnAnyNumberOfThreadsAndOnAnAccelerator) {
  expectSameBits(nested(sluice::f32), nested(sluice::f32, "sim:0"), unlabelled(kRows), kRows);
}

TEST(NestedScan, IsEqualOnReplicas) {
  expectSameOnReplicas(nested(sluice::f64), unlabelled(kRows), {{4, 2}, {1, 0, 5}});
}

namespace {

/// The parameters after several steps with a short last step, in a given precision.
std::map<std::string, std::vector<double>> parametersIn(sluice::ir::Precision precision, const std::string &text,
                                                        const Values &inputs, double lr) {
  sluice::CompileOptions options;
  options.precision = dtypeOf(precision);
  Compiled model(text, options);
  model.init(3);
  model.setState("lr", {lr});
  for (int64_t rows : {kRows, kRows, int64_t(2)})
    model.run("train_step", firstRows(inputs, kRows, rows), rows);
  std::map<std::string, std::vector<double>> parameters;
  for (const sluice::runtime::State &state : model.plan().states)
    if (state.kind == sluice::runtime::StateKind::parameter)
      parameters[state.name] = model.state(state.name);
  return parameters;
}

} // namespace

// Step products are in bf16, sums over steps in f32. Training's updates of the parameters differ by roundings to 8 bits
// of their own size, independently of the number of steps.
TEST(Recurrent, TrainsInBf16AsInF32) {
  using sluice::ir::Precision;
  constexpr int64_t steps = 64;
  for (const std::string &text :
       {network(Kind::LSTM, sluice::f32, steps), network(Kind::GRU, sluice::f32, steps), nested(sluice::f32)}) {
    bool isNested = text.find("@nested") != std::string::npos;
    Values inputs = isNested ? unlabelled(kRows) : batch(kRows, kFeatures, steps);
    auto before = parametersIn(Precision::F32, text, inputs, 0), wide = parametersIn(Precision::F32, text, inputs, 0.1),
         narrow = parametersIn(Precision::BF16, text, inputs, 0.1);
    EXPECT_NE(wide, narrow);
    for (auto &[name, value] : wide) {
      std::vector<double> moved = value, movedNarrow = narrow.at(name);
      for (size_t i = 0; i < value.size(); ++i) {
        moved[i] -= before.at(name)[i];
        movedNarrow[i] -= before.at(name)[i];
      }
      EXPECT_LT(relativeError(movedNarrow, moved), 0.05) << name;
    }
  }
}
