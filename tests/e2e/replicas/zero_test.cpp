// Replicas with sharded optimizer states compared with replicas without sharding.
#include "tests/Worse.h"
#include "tests/e2e/devices/LeNetBatches.h"
#include "tests/e2e/replicas/BatchGraph.h"
#include "tests/e2e/replicas/Replicated.h"

#include <cstdlib>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace sluice::test {

static bool runsAll() { return std::getenv("SLUICE_TEST_FULL"); }

static std::string devicesFor(int64_t replicas) { return fmt::format("sim:0-{}", replicas - 1); }

static CompileOptions ofBatch(int64_t batch, bool promoteF64) {
  CompileOptions options;
  if (promoteF64)
    options.dtype = sluice::f64;
  options.capacity = batch;
  return options;
}

static std::string lenetWithMomentum() {
  return replaced(modelText("lenet"), "momentum = 0.000000e+00", "momentum = 9.000000e-01");
}

static std::vector<std::byte> bytesOf(runtime::Instance &program, const runtime::State &state, int64_t replica) {
  std::vector<std::byte> bytes(size_t(state.logicalBytes()));
  program.getState(state, bytes, replica);
  return bytes;
}

/// Unsharded states are bitwise equal on all replicas.
static void expectSameParameters(Compiled &several) {
  runtime::Instance &program = several.program();
  for (const runtime::State &state : several.plan().states)
    for (int64_t replica = 1; state.isKept() && replica < program.replicas(); ++replica)
      EXPECT_EQ(bytesOf(program, state, replica), bytesOf(program, state, 0)) << state.name << " of " << replica;
}

static double worstState(Compiled &some, Compiled &others) {
  double worst = 0;
  for (const runtime::State &state : others.plan().states) {
    if (!state.isKept())
      continue;
    std::vector<double> a = some.state(state.name), b = others.state(state.name);
    for (size_t i = 0; i < b.size(); ++i)
      worst = worse(worst, std::abs(a.at(i) - b[i]) / std::max(1.0, std::abs(b[i])));
  }
  return worst;
}

/// The number of collectives of a kind per step.
static int64_t countOf(const Compiled &model, runtime::Collective::Kind kind) {
  int64_t count = 0;
  for (auto [action, times] : model.plan().actionsOf(*model.plan().findEntry("train_step"), 1))
    count += action->collective() && action->collective()->kind == kind ? times : 0;
  return count;
}

/// The plan's prediction, the enqueued collectives and the backends' counts agree.
static void expectCounted(Compiled &several, int64_t steps) {
  runtime::CollectiveCounts predicted{};
  runtime::Instance &program = several.program();
  for (const runtime::Entry &entry : several.plan().entries)
    if (program.calls(entry) > 0)
      for (auto [action, times] : entry.allActions())
        if (const runtime::Collective *collective = action->collective())
          predicted[size_t(collective->kind)].add(program.calls(entry) * times,
                                                  {1, collective->bytesFor(program.replicas())});
  EXPECT_GE(predicted[size_t(runtime::Collective::Kind::reduceScatter)].exchanges, steps);
  EXPECT_GE(predicted[size_t(runtime::Collective::Kind::allGather)].exchanges, steps);
  for (const runtime::CollectiveReport &report : program.collectives()) {
    EXPECT_EQ(report.executed, predicted[size_t(report.kind)]);
    EXPECT_EQ(report.counted, report.executed);
  }
}

static int64_t slotBytes(const Compiled &model) {
  int64_t bytes = 0;
  for (const runtime::State &state : model.plan().states)
    bytes += state.kind == runtime::StateKind::slot ? (state.bytes + 63) / 64 * 64 : 0;
  return bytes;
}

static int64_t stateArena(const Compiled &model) {
  for (const runtime::Arena &arena : model.plan().arenas)
    if (arena.name == "state" && arena.device == 1)
      return arena.bytes;
  return 0;
}

class LeNetShards : public testing::TestWithParam<int64_t> {
protected:
  /// The largest difference from unsharded replicas after this many steps.
  double train(bool promoteF64, int steps = 20) {
    int64_t replicas = GetParam();
    std::string plain = onReplicas(lenetWithMomentum(), replicas, devicesFor(replicas));
    Compiled all(plain, ofBatch(16, promoteF64), {.sim = "devices=8,seed=5"});
    Compiled shards(withShards(plain), ofBatch(16, promoteF64), {.sim = "devices=8,seed=7"});
    all.init(3);
    shards.init(3);
    for (int step = 0; step < steps; ++step) {
      int64_t rows = step % 4 == 0 ? 16 : step % 4 == 1 ? 13 : step % 4 == 2 ? 1 : 5;
      Values batch = lenetBatch(step, rows);
      double loss = all.run("train_step", batch, rows).at("loss")[0];
      EXPECT_NEAR(shards.run("train_step", batch, rows).at("loss")[0], loss, 1e-5 * std::abs(loss));
    }
    expectSameParameters(shards);
    expectCounted(shards, steps);
    return worstState(shards, all);
  }
};

TEST_P(LeNetShards, TrainAsAll) {
  if (GetParam() != 3 && !runsAll())
    GTEST_SKIP() << "other numbers of replicas train in f64 unless SLUICE_TEST_FULL is set";
  double worst = train(/*promoteF64=*/false);
  EXPECT_TRUE(worst <= 1e-6) << worst;
  RecordProperty("worst", fmt::format("{}", worst));
}

TEST_P(LeNetShards, TrainAsAllInDouble) {
  double worst = train(/*promoteF64=*/true);
  EXPECT_TRUE(worst <= 1e-12) << worst;
  RecordProperty("worst", fmt::format("{}", worst));
}

TEST_P(LeNetShards, KeepTheirPartOfTheOptimizer) {
  if (GetParam() == 2 && !runsAll())
    GTEST_SKIP() << "two replicas are measured if SLUICE_TEST_FULL is set";
  int64_t replicas = GetParam();
  std::string plain = onReplicas(lenetWithMomentum(), replicas, devicesFor(replicas));
  Compiled all(plain, ofBatch(16, false)), shards(withShards(plain), ofBatch(16, false));
  double ideal = double(slotBytes(all)) / double(replicas);
  EXPECT_LE(double(slotBytes(shards)), 1.05 * ideal);
  EXPECT_NEAR(double(stateArena(all) - stateArena(shards)), double(slotBytes(all) - slotBytes(shards)), 256);
  int64_t slots = 0;
  for (const runtime::State &state : shards.plan().states)
    slots += state.kind == runtime::StateKind::slot ? 1 : 0;
  CompileOptions each = ofBatch(16, false);
  each.buckets = "each";
  Compiled apart(withShards(plain), each);
  for (runtime::Collective::Kind kind :
       {runtime::Collective::Kind::reduceScatter, runtime::Collective::Kind::allGather}) {
    EXPECT_EQ(countOf(shards, kind), 1);
    EXPECT_EQ(countOf(apart, kind), slots);
  }
}

INSTANTIATE_TEST_SUITE_P(Replicas, LeNetShards, testing::Values(2, 3, 4));

TEST(Shards, GiveTheSameBitsAgain) {
  std::string model = withShards(onReplicas(lenetWithMomentum(), 3, devicesFor(3)));
  std::vector<std::byte> first;
  for (int seed = 0; seed < 3; ++seed) {
    Compiled shards(model, ofBatch(16, false), {.sim = fmt::format("seed={}", seed)});
    shards.init(1);
    for (int step = 0; step < 6; ++step)
      shards.run("train_step", lenetBatch(step, 16 - step), 16 - step);
    std::vector<std::byte> bytes = shards.stateBytes();
    first = seed == 0 ? bytes : first;
    EXPECT_EQ(bytes, first) << "of seed " << seed;
  }
}

/// The bits of all states of the first replica after several steps, with the shards' collectives in this many buckets;
/// 0: no buckets.
static std::vector<std::byte> bitsIn(int64_t buckets, const std::string &model, const std::string &sim = "devices=8") {
  passes::PipelineInputs inputs;
  inputs.shardBuckets = buckets;
  Compiled shards(model, ofBatch(16, false), {.sim = sim}, inputs);
  shards.init(1);
  for (int step = 0; step < 4; ++step)
    shards.run("train_step", lenetBatch(step, 16 - 5 * step), 16 - 5 * step);
  expectSameParameters(shards);
  if (buckets > 0)
    EXPECT_LE(countOf(shards, runtime::Collective::Kind::allGather), buckets);
  return shards.stateBytes();
}

TEST(Shards, HaveTheSameBitsInBuckets) {
  std::string model = lenetWithMomentum();
  for (const std::string &shards :
       {withShards(onReplicas(model, 3, devicesFor(3))), withShards(onReplicas(model, 4, "")),
        withShards(onWire(onReplicas(model, 2, devicesFor(2)), ir::Precision::BF16)),
        withShards(onReplicas(model, 3, devicesFor(3), /*syncBatchNorm=*/false, /*microbatches=*/2))}) {
    std::vector<std::byte> apart = bitsIn(0, shards);
    for (int64_t buckets : runsAll() ? std::vector<int64_t>{1, 2, 3, 100} : std::vector<int64_t>{2, 100})
      EXPECT_EQ(bitsIn(buckets, shards), apart) << buckets << " buckets of " << shards.substr(0, 200);
  }
}

/// Only the states are transferred, as by a checkpoint, to another number of replicas and back.
TEST(Shards, GoOnFromTheStatesOfOthers) {
  std::string model = lenetWithMomentum();
  auto on = [&](int64_t replicas) { return onReplicas(model, replicas, devicesFor(replicas)); };
  Compiled alone(model, ofBatch(16, true));
  Compiled four(withShards(on(4)), ofBatch(16, true)), three(withShards(on(3)), ofBatch(16, true)),
      two(on(2), ofBatch(16, true));
  alone.init(3);
  four.init(3);
  int step = 0;
  auto train = [&](Compiled &program) {
    for (int i = 0; i < 3; ++i, ++step) {
      Values batch = lenetBatch(step, 11);
      program.run("train_step", batch, 11);
      alone.run("train_step", batch, 11);
    }
    double worst = worstState(program, alone);
    EXPECT_TRUE(worst <= 1e-12) << worst << " at step " << step;
  };
  auto move = [](Compiled &from, Compiled &to) {
    for (const runtime::State &state : from.plan().states)
      if (state.isKept())
        to.program().setState(to.program().state(state.name), bytesOf(from.program(), state, 0));
  };
  EXPECT_EQ(four.plan().stateHash(), two.plan().stateHash());
  train(four);
  move(four, three);
  train(three);
  move(three, two);
  train(two);
  move(two, four);
  train(four);
}

TEST(Shards, TrainInMicrobatches) {
  std::string model = lenetWithMomentum();
  Compiled alone(model, ofBatch(16, true));
  Compiled shards(withShards(onReplicas(model, 3, devicesFor(3), /*syncBatchNorm=*/false, /*microbatches=*/2)),
                  ofBatch(16, true));
  alone.init(3);
  shards.init(3);
  for (int step = 0; step < 8; ++step) {
    Values batch = lenetBatch(step, 16 - 2 * step);
    alone.run("train_step", batch, 16 - 2 * step);
    shards.run("train_step", batch, 16 - 2 * step);
  }
  expectSameParameters(shards);
  double worst = worstState(shards, alone);
  EXPECT_TRUE(worst <= 1e-12) << worst;
}

/// The semantics of sharding in the reference interpreter.
TEST(Shards, MeanWhatOneMeans) {
  constexpr int64_t capacity = 12;
  for (size_t replicas : {2, 3, 5}) {
    BatchGraph graph(replicas, capacity);
    SCOPED_TRACE(graph.text);
    Interpreted one(graph.text);
    Replicated shards(withShards(onReplicas(graph.text, int64_t(replicas), "")), replicas, /*syncBatchNorm=*/true);
    one.init(7);
    shards.run("init", {{"key", {0, 7}}}, std::vector<int64_t>(replicas, 1));
    for (uint64_t step = 0; step < 4; ++step) {
      Values batch = BatchGraph::batch(step, capacity);
      std::vector<int64_t> shares(replicas, 1);
      shares.back() = capacity + 1 - int64_t(replicas);
      one.run("train_step", batch, capacity);
      shards.run("train_step", batch, shares);
    }
    for (const ir::StateMap &states : shards.states)
      for (const std::string &name : graph.states) {
        std::vector<double> expected = one.state(name), actual = states.at(name).data;
        for (size_t i = 0; i < expected.size(); ++i)
          EXPECT_NEAR(actual.at(i), expected[i], 1e-11 * std::max(1.0, std::abs(expected[i]))) << name;
        EXPECT_EQ(actual, shards.states.front().at(name).data) << name;
      }
  }
}

/// Parameters of all sizes, including fewer elements than replicas; also on the host.
class ShardsOfBatchGraphs : public testing::TestWithParam<uint64_t> {};

TEST_P(ShardsOfBatchGraphs, TrainAsOne) {
  constexpr int64_t capacity = 12;
  int64_t replicas = 2 + int64_t(GetParam() % 4);
  BatchGraph graph(GetParam(), capacity);
  SCOPED_TRACE(graph.text);
  std::string devices = GetParam() % 2 == 0 ? devicesFor(replicas) : "";
  Compiled one(graph.text, ofBatch(capacity, true));
  Compiled shards(withShards(onReplicas(graph.text, replicas, devices, /*syncBatchNorm=*/true)),
                  ofBatch(capacity, true), {.sim = fmt::format("devices=8,seed={}", GetParam())});
  one.init(GetParam());
  shards.init(GetParam());
  for (uint64_t step = 0; step < 5; ++step) {
    int64_t rows = step == 0 ? 1 : int64_t(step * 7 % capacity) + 1;
    Values batch = BatchGraph::batch(step, rows);
    one.run("train_step", batch, rows);
    shards.run("train_step", batch, rows);
  }
  expectSameParameters(shards);
  double worst = worstState(shards, one);
  EXPECT_TRUE(worst <= 1e-10) << worst;
}

INSTANTIATE_TEST_SUITE_P(Replicas, ShardsOfBatchGraphs, testing::Range<uint64_t>(0, 8));

} // namespace sluice::test
