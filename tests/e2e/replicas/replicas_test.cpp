// Compiled programs on several replicas compared with the same program on one device.
#include "tests/Worse.h"
#include "tests/e2e/devices/LeNetBatches.h"
#include "tests/e2e/devices/SmallResNet.h"
#include "tests/e2e/replicas/BatchGraph.h"
#include "tests/e2e/replicas/Replicated.h"

#include <bit>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <sluice/sluice.h>

namespace sluice::test {

static const std::vector<double> kMeans = {1e4, -3e3, 0, 5};

static double greatestDifference(const std::vector<double> &a, const std::vector<double> &b) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    worst = worse(worst, std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i])));
  return worst;
}

static std::string devicesOf(int64_t replicas) { return fmt::format("sim:0-{}", replicas - 1); }

static void expectSameStates(Compiled &several) {
  runtime::Instance &program = several.program();
  for (const runtime::State &state : several.plan().states) {
    if (!state.isKept())
      continue;
    std::vector<std::byte> first(size_t(state.logicalBytes())), other = first;
    program.getState(state, first);
    for (int64_t replica = 1; replica < program.replicas(); ++replica) {
      program.getState(state, other, replica);
      EXPECT_EQ(other, first) << state.name << " of replica " << replica;
    }
  }
}

/// Trains both from the same seed on batches of all sizes, one of them smaller than the number of replicas. Returns the
/// largest difference of losses and states.
static double trainBoth(Compiled &one, Compiled &several, const std::vector<int64_t> &rows) {
  one.init(3);
  several.init(3);
  for (const runtime::State &state : one.plan().states)
    EXPECT_EQ(several.state(state.name), one.state(state.name)) << "initial values are one device's";
  double worst = 0;
  for (size_t step = 0; step < rows.size(); ++step) {
    Values batch = lenetBatch(int(step), rows[step]);
    Values expected = one.run("train_step", batch, rows[step]), actual = several.run("train_step", batch, rows[step]);
    worst = worse(worst, greatestDifference(actual.at("loss"), expected.at("loss")));
    worst = worse(worst, greatestDifference(actual.at("accuracy"), expected.at("accuracy")));
    if (step % 5 == 0)
      expectSameStates(several);
  }
  for (const runtime::State &state : one.plan().states)
    if (!state.isDerived())
      worst = worse(worst, greatestDifference(several.state(state.name), one.state(state.name)));
  expectSameStates(several);
  return worst;
}

static sluice::CompileOptions inDouble(int64_t batch) {
  sluice::CompileOptions options;
  options.dtype = sluice::f64;
  options.capacity = batch;
  return options;
}

static std::vector<int64_t> unevenRows() {
  std::vector<int64_t> rows;
  for (int step = 0; step < 20; ++step)
    rows.push_back(step % 4 == 0 ? 16 : step % 4 == 1 ? 13 : step % 4 == 2 ? 1 : 5);
  return rows;
}

class LeNetReplicas : public testing::TestWithParam<int64_t> {};

TEST_P(LeNetReplicas, TrainAsOneDevice) {
  std::string model = modelText("lenet");
  Compiled one(onReplicas(model, 1, "sim:0"), inDouble(16));
  Compiled several(onReplicas(model, GetParam(), devicesOf(GetParam())), inDouble(16), {.sim = "devices=8,seed=5"});
  double worst = trainBoth(one, several, unevenRows());
  EXPECT_TRUE(worst <= 1e-12) << worst;
  RecordProperty("worst", fmt::format("{}", worst));
  Values batch = lenetBatch(99, 7);
  EXPECT_TRUE(greatestDifference(several.run("predict", batch, 7).at("logits"),
                                 one.run("predict", batch, 7).at("logits")) <= 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Replicas, LeNetReplicas, testing::Values(1, 2, 3, 4, 8));

/// Replicas, and their microbatches.
class LeNetMicrobatches : public testing::TestWithParam<std::pair<int64_t, int64_t>> {};

TEST_P(LeNetMicrobatches, TrainAsOneDevice) {
  auto [replicas, microbatches] = GetParam();
  std::string model = modelText("lenet");
  Compiled one(onReplicas(model, 1, "sim:0"), inDouble(16));
  Compiled several(onReplicas(model, replicas, devicesOf(replicas), /*syncBatchNorm=*/false, microbatches),
                   inDouble(16), {.sim = "devices=8,seed=6"});
  double worst = trainBoth(one, several, unevenRows());
  EXPECT_TRUE(worst <= 1e-12) << worst;
  RecordProperty("worst", fmt::format("{}", worst));
  Values batch = lenetBatch(99, 7);
  EXPECT_TRUE(greatestDifference(several.run("predict", batch, 7).at("logits"),
                                 one.run("predict", batch, 7).at("logits")) <= 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Replicas, LeNetMicrobatches,
                         testing::Values(std::pair<int64_t, int64_t>(1, 4), std::pair<int64_t, int64_t>(1, 16),
                                         std::pair<int64_t, int64_t>(2, 3), std::pair<int64_t, int64_t>(3, 4)));

class HostMicrobatches : public testing::TestWithParam<int64_t> {};

/// In f32, where sums over microbatches have another order.
TEST_P(HostMicrobatches, TrainAsOne) {
  sluice::CompileOptions options;
  options.capacity = 16;
  std::string model = modelText("lenet");
  Compiled one(model, options);
  Compiled several(onReplicas(model, GetParam(), "", /*syncBatchNorm=*/false, /*microbatches=*/4), options);
  double worst = trainBoth(one, several, unevenRows());
  EXPECT_TRUE(worst <= 1e-5) << worst;
  RecordProperty("worst", fmt::format("{}", worst));
}

INSTANTIATE_TEST_SUITE_P(Replicas, HostMicrobatches, testing::Values(1, 3));

TEST(Microbatches, CopyWhatThePlanPredicts) {
  Compiled several(onReplicas(modelText("lenet"), 1, "sim:0", /*syncBatchNorm=*/false, /*microbatches=*/4),
                   inDouble(16));
  several.init(3);
  for (int64_t rows : {16, 7, 1, 16})
    several.run("train_step", lenetBatch(int(rows), rows), rows);
  several.run("predict", lenetBatch(5, 9), 9);
  runtime::Executor &executor = several.program().executor();
  EXPECT_EQ(runtime::byPair(executor.executedCopies()), runtime::byPair(executor.forecast().counts()));
  EXPECT_EQ(runtime::byPair(executor.executedCopies()), runtime::byPair(executor.engineCopies()));
}

/// Activations have the size of a microbatch instead of the whole call.
TEST(Microbatches, NeedLessMemory) {
  constexpr int64_t batch = 64;
  Compiled one(smallResNet("sim:0", batch), inDouble(batch));
  Compiled several(onReplicas(smallResNet("sim:0", batch), 1, "sim:0", /*syncBatchNorm=*/false, /*microbatches=*/4),
                   inDouble(batch));
  auto peak = [](const Compiled &model) { return double(model.plan().findEntry("train_step")->peakBytes[1]); };
  EXPECT_LT(peak(several), 0.4 * peak(one));
  RecordProperty("ratio", fmt::format("{}", peak(several) / peak(one)));
}

static float toBf16(double value) {
  auto bits = std::bit_cast<uint32_t>(float(value));
  bits += 0x7fff + (bits >> 16 & 1); // to nearest, ties to even
  return std::bit_cast<float>(bits & 0xffff0000u);
}

/// Each of two replicas has half of the rows. Half of the update of a step on these rows alone is the replica's
/// contribution to the sum.
TEST(Replicas, ReduceGradientsInTheWireType) {
  constexpr int64_t kRows = 8;
  std::string model = modelText("lenet");
  Compiled one(onReplicas(model, 1, "sim:0"), inDouble(kRows));
  Compiled several(onWire(onReplicas(model, 2, devicesOf(2)), ir::Precision::BF16), inDouble(kRows), {.sim = "seed=8"});
  Values batch = lenetBatch(0, kRows);
  std::map<std::string, std::vector<double>> parts[2];
  for (int half = 0; half < 2; ++half) {
    Values rows;
    for (const auto &[name, values] : batch) {
      auto size = std::ptrdiff_t(values.size() / 2);
      rows[name].assign(values.begin() + half * size, values.begin() + (half + 1) * size);
    }
    one.init(3);
    one.run("train_step", rows, kRows / 2);
    for (const runtime::State &state : one.plan().states)
      if (state.kind == runtime::StateKind::parameter)
        parts[half][state.name] = one.state(state.name);
  }
  one.init(3);
  several.init(3);
  several.run("train_step", batch, kRows);
  expectSameStates(several);
  size_t compared = 0;
  for (const auto &[name, first] : parts[0]) {
    std::vector<double> before = one.state(name), after = several.state(name), second = parts[1][name];
    for (size_t i = 0; i < before.size(); ++i, ++compared) {
      float sum = toBf16(before[i] - first[i]) / 2 + toBf16(before[i] - second[i]) / 2; // updates include the learning
                                                                                        // rate
      ASSERT_NEAR(after[i], before[i] - double(toBf16(sum)), 1e-14) << name << "[" << i << "]";
    }
  }
  EXPECT_EQ(compared, 129068u);
}

static Values resNetBatch(int step, int64_t rows) {
  std::string key = "replicas/step" + std::to_string(step);
  std::vector<float> pixels =
      portableUniform(key, size_t(rows * kSmallResNetChannels * kSmallResNetSide * kSmallResNetSide));
  std::vector<int64_t> labels = portableIntegers(key + "/label", size_t(rows), kSmallResNetClasses);
  return {{"image", {pixels.begin(), pixels.end()}}, {"label", {labels.begin(), labels.end()}}};
}

/// The accelerators per replica, and the number of replicas.
class ResNetReplicas : public testing::TestWithParam<std::pair<int64_t, int64_t>> {};

TEST_P(ResNetReplicas, TrainAsOneDeviceWithSynchronisedNorms) {
  auto [accelerators, replicas] = GetParam();
  Compiled one(smallResNet("sim:0", 12), inDouble(12));
  std::string model = smallResNet(accelerators == 1 ? "sim:0" : "sim:0,sim:1", 12);
  Compiled several(onReplicas(model, replicas, devicesOf(accelerators * replicas), /*syncBatchNorm=*/true),
                   inDouble(12), {.sim = "devices=8,seed=2"});
  one.init(5);
  several.init(5);
  for (int step = 0; step < 6; ++step) {
    int64_t rows = step % 3 == 0 ? 12 : 12 - 5 * (step % 3);
    Values batch = resNetBatch(step, rows);
    Values expected = one.run("train_step", batch, rows), actual = several.run("train_step", batch, rows);
    EXPECT_TRUE(greatestDifference(actual.at("loss"), expected.at("loss")) <= 1e-10) << "step " << step;
  }
  for (const runtime::State &state : one.plan().states)
    if (!state.isDerived())
      EXPECT_TRUE(greatestDifference(several.state(state.name), one.state(state.name)) <= 1e-9) << state.name;
  expectSameStates(several);
}

INSTANTIATE_TEST_SUITE_P(Replicas, ResNetReplicas,
                         testing::Values(std::pair<int64_t, int64_t>(1, 3), std::pair<int64_t, int64_t>(2, 2),
                                         std::pair<int64_t, int64_t>(2, 4)));

/// A norm of channels whose means are large compared with their deviations, in f32.
static std::string normOfLargeMeans() {
  Graph graph("large_means");
  graph.set_capacity(64);
  nn::Module root{graph};
  nn::BatchNorm2d norm{&root, "bn", int64_t(kMeans.size())};
  Tensor y = norm(graph.input("x", f32, {Dim{"batch"}, int64_t(kMeans.size())}));
  graph.minimize(mean(y * y * y), optim::SGD{.lr = 0.1});
  return graph.str();
}

static Values largeMeans(int64_t rows) {
  std::vector<float> noise = portableUniform("large means", size_t(rows) * kMeans.size(), -2, 2);
  std::vector<double> x;
  for (size_t i = 0; i < noise.size(); ++i)
    x.push_back(double(float(kMeans[i % kMeans.size()] + double(noise[i]))));
  return {{"x", x}};
}

/// The largest error of the running variances after the first step, relative to the variance of the rows.
static double errorOfVariances(Compiled &program, const Values &batch, int64_t rows) {
  double worst = 0;
  std::vector<double> running = program.state("bn.running_var");
  const std::vector<double> &x = batch.at("x");
  for (size_t channel = 0; channel < kMeans.size(); ++channel) {
    double mean = 0, var = 0;
    for (size_t i = channel; i < x.size(); i += kMeans.size())
      mean += x[i] / double(rows);
    for (size_t i = channel; i < x.size(); i += kMeans.size())
      var += (x[i] - mean) * (x[i] - mean) / double(rows - 1);
    worst = worse(worst, std::abs((running[channel] - 0.9) / 0.1 - var) / var);
  }
  return worst;
}

class SynchronisedNorms : public testing::TestWithParam<std::pair<int64_t, int64_t>> {};

/// As accurate as one device, which sums squared deviations from the mean. Includes batches so small that replicas have
/// no rows.
TEST_P(SynchronisedNorms, HaveTheMomentsOfAllRows) {
  auto [replicas, microbatches] = GetParam();
  std::string model = normOfLargeMeans();
  Compiled one(model);
  Compiled several(onReplicas(model, replicas, devicesOf(replicas), /*syncBatchNorm=*/true, microbatches), {},
                   {.sim = "devices=8"});
  for (int64_t rows : {64, 37, 2}) {
    Values batch = largeMeans(rows);
    one.init(1);
    several.init(1);
    Values expected = one.run("train_step", batch, rows), actual = several.run("train_step", batch, rows);
    double error = errorOfVariances(several, batch, rows), ofOne = errorOfVariances(one, batch, rows);
    EXPECT_TRUE(error <= std::max(ofOne, 2e-6)) << error << ", of one device " << ofOne << ", with " << rows;
    EXPECT_TRUE(greatestDifference(actual.at("loss"), expected.at("loss")) <= 1e-3) << rows;
    EXPECT_TRUE(greatestDifference(several.state("bn.running_mean"), one.state("bn.running_mean")) <= 1e-6) << rows;
    expectSameStates(several);
  }
}

INSTANTIATE_TEST_SUITE_P(Replicas, SynchronisedNorms,
                         testing::Values(std::pair<int64_t, int64_t>(2, 1), std::pair<int64_t, int64_t>(3, 1),
                                         std::pair<int64_t, int64_t>(1, 4), std::pair<int64_t, int64_t>(2, 3)));

/// Forward: mean and variance. Backward: the sums for the gradients.
TEST(SynchronisedNorms, ExchangeOnceInEachDirection) {
  sluice::CompileOptions options;
  options.capacity = 12;
  Compiled several(onReplicas(smallResNet("sim:0", 12), 2, devicesOf(2), /*syncBatchNorm=*/true), options);
  std::map<runtime::DType, size_t> counts;
  for (const runtime::ListedAction &listed : several.plan().findEntry("train_step")->allActions())
    if (const runtime::Collective *collective = listed.action->collective())
      ++counts[collective->dtype];
  constexpr size_t norms = 5;
  EXPECT_EQ(counts[runtime::DType::f64], norms);
  EXPECT_LE(counts[runtime::DType::f32], norms + 2) << "the others are of all other gradients and the loss";
}

TEST(Replicas, HaveTheFirstOnesStatistics) {
  Compiled several(onReplicas(smallResNet("sim:0", 12), 3, devicesOf(3)), inDouble(12), {.sim = "seed=4"});
  Compiled first(smallResNet("sim:0", 12), inDouble(12));
  several.init(5);
  first.init(5);
  Values batch = resNetBatch(0, 12), share = batch; // the first replica has the first four rows
  share.at("image").resize(batch.at("image").size() / 3);
  share.at("label").resize(4);
  several.run("train_step", batch, 12);
  first.run("train_step", share, 4);
  expectSameStates(several);
  size_t statistics = 0;
  for (const runtime::State &state : first.plan().states)
    if (state.kind == runtime::StateKind::statistic) {
      ++statistics;
      EXPECT_TRUE(greatestDifference(several.state(state.name), first.state(state.name)) <= 1e-12) << state.name;
    }
  EXPECT_EQ(statistics, 10u);
}

TEST(Replicas, GiveTheSameBitsAgain) {
  std::string model = onReplicas(modelText("lenet"), 3, devicesOf(3));
  sluice::CompileOptions options;
  options.capacity = 16;
  std::vector<std::byte> first;
  for (int seed = 0; seed < 4; ++seed) {
    Compiled several(model, options, {.sim = fmt::format("seed={}", seed)});
    several.init(1);
    for (int step = 0; step < 6; ++step)
      several.run("train_step", lenetBatch(step, 16 - step), 16 - step);
    std::vector<std::byte> bytes = several.stateBytes();
    first = seed == 0 ? bytes : first;
    EXPECT_EQ(bytes, first) << "of seed " << seed;
  }
}

class CompiledBatchGraphs : public testing::TestWithParam<uint64_t> {
protected:
  void expectEqual(int64_t replicas, int64_t microbatches);
};

void CompiledBatchGraphs::expectEqual(int64_t replicas, int64_t microbatches) {
  constexpr int64_t capacity = 12;
  BatchGraph graph(GetParam(), capacity);
  SCOPED_TRACE(graph.text);
  Compiled one(graph.text, inDouble(capacity));
  Compiled several(onReplicas(graph.text, replicas, devicesOf(replicas), /*syncBatchNorm=*/true, microbatches),
                   inDouble(capacity), {.sim = fmt::format("devices=8,seed={}", GetParam())});
  one.init(GetParam());
  several.init(GetParam());
  for (uint64_t step = 0; step < 5; ++step) {
    int64_t rows = step == 0 ? 1 : int64_t(step * 7 % capacity) + 1;
    Values batch = BatchGraph::batch(step, rows);
    for (const char *entry : {"predict", "eval_step", "train_step"}) {
      Values expected = one.run(entry, batch, rows), actual = several.run(entry, batch, rows);
      for (const auto &[name, values] : expected)
        EXPECT_TRUE(greatestDifference(actual.at(name), values) <= 1e-10)
            << entry << " " << name << " with " << rows << " rows";
    }
    for (const std::string &state : graph.states)
      EXPECT_TRUE(greatestDifference(several.state(state), one.state(state)) <= 1e-10) << state;
    expectSameStates(several);
  }
}

TEST_P(CompiledBatchGraphs, AreEqualOnReplicas) { expectEqual(2 + int64_t(GetParam() % 4), /*microbatches=*/1); }

TEST_P(CompiledBatchGraphs, AreEqualInMicrobatches) {
  int64_t replicas = 1 + int64_t(GetParam() % 3), microbatches = 2 + int64_t(GetParam() % 4);
  expectEqual(replicas, microbatches);
}

INSTANTIATE_TEST_SUITE_P(Replicas, CompiledBatchGraphs, testing::Range<uint64_t>(0, 10));

} // namespace sluice::test
