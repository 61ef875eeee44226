// Programs with logical shards: the number of replicas does not change any bit.
#include "tests/Worse.h"
#include "tests/e2e/devices/LeNetBatches.h"
#include "tests/e2e/devices/SmallResNet.h"
#include "tests/e2e/replicas/BatchGraph.h"
#include "tests/e2e/replicas/Replicated.h"

#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace sluice::test {

static constexpr int64_t kShards = 8, kBatch = 20;
static constexpr int64_t kReplicas[] = {1, 2, 4, 8};

/// Row counts that give all shards the same number of rows, some shards more, some shards none, and only the first
/// shard a row.
static constexpr int64_t kRows[] = {16, 13, 5, 1, 20, 11};

static double differenceOf(const std::vector<double> &a, const std::vector<double> &b) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    worst = worse(worst, std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i])));
  return worst;
}

static double differenceOf(const Values &a, const Values &b) {
  double worst = 0;
  for (const auto &[name, values] : b)
    worst = worse(worst, differenceOf(a.at(name), values));
  return worst;
}

/// Bitwise equality: includes NaN and signed zeros.
static bool isSame(const std::vector<double> &a, const std::vector<double> &b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

//===- compiled programs ------------------------------------------------------------------------------------------===//

namespace {

/// The results after each call and at the end.
struct Trace {
  std::vector<Values> outputs;
  std::map<std::string, std::vector<double>> states;
};

/// A model, its inputs per step, and its compilation.
struct Case {
  std::string text;
  Values (*batch)(int step, int64_t rows);
  sluice::CompileOptions options;
};

/// The devices of replicas.
enum class Place { Host, Accelerators };

} // namespace

static std::string devicesOf(Place place, int64_t replicas) {
  return place == Place::Host ? "" : fmt::format("sim:0-{}", replicas - 1);
}

static Trace traceOf(Compiled &program, const Case &model) {
  program.init(3);
  Trace trace;
  for (int step = 0; step < int(std::size(kRows)); ++step) {
    Values batch = model.batch(step, kRows[step]);
    trace.outputs.push_back(program.run("train_step", batch, kRows[step]));
    trace.outputs.push_back(program.run("predict", batch, kRows[step]));
  }
  for (const runtime::State &state : program.plan().states)
    if (state.isKept())
      trace.states[state.name] = program.state(state.name);
  return trace;
}

static Trace traceOf(const Case &model, Place place, int64_t replicas, int seed, int threads = 2) {
  std::string text = onReplicas(model.text, replicas, devicesOf(place, replicas), /*syncBatchNorm=*/false,
                                /*microbatches=*/1, kShards);
  Compiled program(text, model.options, {.threads = threads, .sim = fmt::format("devices=8,seed={}", seed)});
  EXPECT_EQ(program.plan().capacity, (kBatch + kShards - 1) / kShards) << "of a logical shard, for any number";
  return traceOf(program, model);
}

static void expectSame(const Trace &actual, const Trace &expected, const std::string &whose) {
  for (size_t call = 0; call < expected.outputs.size(); ++call)
    for (const auto &[name, values] : expected.outputs[call])
      EXPECT_TRUE(isSame(actual.outputs[call].at(name), values)) << name << " of call " << call << " of " << whose;
  for (const auto &[name, values] : expected.states)
    EXPECT_TRUE(isSame(actual.states.at(name), values)) << name << " of " << whose;
}

static void expectSameForAnyNumber(const Case &model, Place place) {
  Trace one = traceOf(model, place, 1, /*seed=*/1);
  for (int64_t replicas : kReplicas)
    expectSame(traceOf(model, place, replicas, /*seed=*/int(replicas) + 1, /*threads=*/replicas == 2 ? 3 : 1), one,
               fmt::format("{} replicas", replicas));
}

static sluice::CompileOptions optionsOf(bool promoteF64, const std::string &buckets = "auto") {
  sluice::CompileOptions options;
  options.capacity = kBatch;
  if (promoteF64)
    options.dtype = sluice::f64;
  options.buckets = buckets;
  return options;
}

static Case lenet(sluice::CompileOptions options = optionsOf(false)) {
  return {modelText("lenet"), lenetBatch, options};
}

static Values resNetBatch(int step, int64_t rows) {
  std::string key = "deterministic/step" + std::to_string(step);
  std::vector<float> pixels =
      portableUniform(key, size_t(rows * kSmallResNetChannels * kSmallResNetSide * kSmallResNetSide));
  std::vector<int64_t> labels = portableIntegers(key + "/label", size_t(rows), kSmallResNetClasses);
  return {{"image", {pixels.begin(), pixels.end()}}, {"label", {labels.begin(), labels.end()}}};
}

class DeterministicReplicas : public testing::TestWithParam<Place> {};

TEST_P(DeterministicReplicas, LeaveTheSameBitsOfLeNet) { expectSameForAnyNumber(lenet(), GetParam()); }

TEST_P(DeterministicReplicas, LeaveTheSameBitsOfTheMlp) {
  expectSameForAnyNumber({modelText("mlp"), lenetBatch, optionsOf(false)}, GetParam());
}

/// With per-shard statistics; the running statistics are those of the first shard.
TEST_P(DeterministicReplicas, LeaveTheSameBitsOfNorms) {
  std::string devices = GetParam() == Place::Host ? "cpu" : "sim:0";
  expectSameForAnyNumber({smallResNet(devices, kBatch), resNetBatch, optionsOf(false)}, GetParam());
}

TEST_P(DeterministicReplicas, LeaveTheSameBitsOfRandomGraphs) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    BatchGraph graph(seed, kBatch);
    SCOPED_TRACE(graph.text);
    auto batch = [](int step, int64_t rows) { return BatchGraph::batch(uint64_t(step), rows); };
    expectSameForAnyNumber({graph.text, batch, optionsOf(seed % 2 == 1)}, GetParam());
  }
}

TEST_P(DeterministicReplicas, LeaveTheSameBitsWhateverIsReducedTogether) {
  Trace expected = traceOf(lenet(), GetParam(), 1, /*seed=*/1);
  for (const char *buckets : {"fewest", "each"})
    expectSame(traceOf(lenet(optionsOf(false, buckets)), GetParam(), 4, /*seed=*/2), expected, buckets);
}

TEST_P(DeterministicReplicas, TrainAsOneDevice) {
  for (bool promoteF64 : {false, true}) {
    Case model = lenet(optionsOf(promoteF64));
    Compiled plain(onReplicas(model.text, 1, devicesOf(GetParam(), 1)), model.options);
    Trace expected = traceOf(plain, model), actual = traceOf(model, GetParam(), 4, /*seed=*/1);
    double worst = differenceOf(actual.states, expected.states);
    for (size_t call = 0; call < expected.outputs.size(); ++call)
      worst = worse(worst, differenceOf(actual.outputs[call], expected.outputs[call]));
    EXPECT_TRUE(worst <= (promoteF64 ? 1e-12 : 1e-5)) << worst;
    RecordProperty(promoteF64 ? "f64" : "f32", fmt::format("{}", worst));
  }
}

INSTANTIATE_TEST_SUITE_P(Replicas, DeterministicReplicas, testing::Values(Place::Host, Place::Accelerators),
                         [](const testing::TestParamInfo<Place> &place) {
                           return place.param == Place::Host ? "Host" : "Accelerators";
                         });

/// A replica on two accelerators distributes its shards over both.
TEST(LogicalShards, LeaveTheSameBitsOnTwoAcceleratorsEach) {
  std::optional<Trace> one;
  for (int64_t replicas : {1, 4}) {
    Case model{smallResNet("sim:0,sim:1", kBatch), resNetBatch, optionsOf(false)};
    Compiled program(onReplicas(model.text, replicas, fmt::format("sim:0-{}", 2 * replicas - 1),
                                /*syncBatchNorm=*/false, /*microbatches=*/1, kShards),
                     model.options, {.sim = "devices=8"});
    Trace trace = traceOf(program, model);
    one = one ? one : trace;
    expectSame(trace, *one, fmt::format("{} replicas", replicas));
  }
}

TEST(LogicalShards, CopyWhatThePlanPredicts) {
  std::string text = onReplicas(modelText("lenet"), 2, "sim:0-1", /*syncBatchNorm=*/false, /*microbatches=*/1, kShards);
  Compiled program(text, optionsOf(false));
  program.init(3);
  for (int64_t rows : kRows)
    program.run("train_step", lenetBatch(int(rows), rows), rows);
  for (int64_t replica = 0; replica < 2; ++replica) {
    runtime::Executor &executor = program.program().executor(replica);
    EXPECT_EQ(runtime::byPair(executor.executedCopies()), runtime::byPair(executor.forecast().counts()));
    EXPECT_EQ(runtime::byPair(executor.executedCopies()), runtime::byPair(executor.engineCopies()));
  }
}

//===- interpreted programs ---------------------------------------------------------------------------------------===//

class DeterministicBatchGraphs : public testing::TestWithParam<uint64_t> {
protected:
  /// In double precision, where another summation order also changes bits. All replicas have the same states.
  Trace traceOf(const BatchGraph &graph, size_t replicas, bool syncBatchNorm) {
    Replicated program(graph.text, replicas, syncBatchNorm, {}, "parallel", /*microbatches=*/1, kShards);
    program.run("init", {{"key", {0, 7}}}, std::vector<int64_t>(replicas, 1));
    for (ir::StateMap &states : program.states)
      states.at("lr").data = {0.05};
    Trace trace;
    for (int64_t rows : kRows) {
      Values batch = BatchGraph::batch(uint64_t(rows), rows);
      std::vector<int64_t> shares(replicas);
      shares[0] = rows;
      for (const char *entry : {"predict", "train_step"})
        trace.outputs.push_back(program.run(entry, batch, shares, /*replica=*/replicas - 1));
    }
    for (const std::string &state : graph.states)
      trace.states[state] = program.states.back().at(state).data;
    return trace;
  }
};

TEST_P(DeterministicBatchGraphs, LeaveTheSameBits) {
  BatchGraph graph(GetParam(), kBatch);
  SCOPED_TRACE(graph.text);
  for (bool syncBatchNorm : {false, true}) {
    Trace one = traceOf(graph, 1, syncBatchNorm);
    for (int64_t replicas : kReplicas)
      expectSame(traceOf(graph, size_t(replicas), syncBatchNorm), one, fmt::format("{} replicas", replicas));
  }
}

INSTANTIATE_TEST_SUITE_P(Replicas, DeterministicBatchGraphs, testing::Range<uint64_t>(0, 20));

} // namespace sluice::test
