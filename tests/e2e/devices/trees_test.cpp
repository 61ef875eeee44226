// Plans with trees of actions: a loop over two accelerators, and exchanges between them.
#include "ir/text/ParseGuard.h"
#include "passes/artifact/BuildPlan.h"
#include "runtime/plan/WritePlan.h"
#include "tests/e2e/devices/WaitDeletion.h"
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr int64_t kRows = 3;
constexpr int kCalls = 5, kSeeds = 200;

std::string textOf(const std::string &name) {
  std::stringstream text;
  text << std::ifstream(SLUICE_TREES "/" + name + ".mlir").rdbuf();
  return text.str();
}

passes::PipelineInputs from(const std::string &phase) {
  passes::PipelineInputs inputs;
  inputs.compileFrom = phase;
  return inputs;
}

/// Small integers that differ per call: `count` integers from `first` on.
std::vector<double> integers(int call, int first, int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i)
    values.push_back((7 * i + 3 * call + first) % 11 - 5);
  return values;
}

Values loopInputs(int call) { return {{"x", integers(call, 1, 24)}}; }

Values exchangeInputs(int call) { return {{"x", integers(call, 1, int(kRows) * 6)}, {"v", integers(call, 2, 12)}}; }

struct Tree {
  const char *name;
  Values (*inputs)(int call);
};
constexpr Tree kTrees[] = {{"loop", loopInputs}, {"exchange", exchangeInputs}};

class Trees : public testing::TestWithParam<Tree> {};

} // namespace

// Under adverse orders, and without races.
TEST_P(Trees, GiveTheBitsOfTheReference) {
  std::string text = textOf(GetParam().name);
  Interpreted reference(text, "fused", {}, from("fused"));
  std::vector<Values> expected;
  for (int call = 0; call < kCalls; ++call)
    expected.push_back(reference.run("step", GetParam().inputs(call), kRows));
  Compiled model(text, {}, {}, from("fused"));
  for (int seed = 0; seed < kSeeds; ++seed) {
    model.restart({.threads = 1, .sim = "seed=" + std::to_string(seed) + ",races=report"});
    for (int call = 0; call < kCalls; ++call) {
      model.submit("step", GetParam().inputs(call), kRows);
      if (call % 2 == seed % 2 || call == kCalls - 1) { // otherwise the next call follows without reading this one's
                                                        // outputs
        ASSERT_EQ(model.outputs("step", kRows), expected[size_t(call)]) << "seed " << seed << ", call " << call;
      }
    }
    for (const auto &[name, value] : reference.states)
      ASSERT_EQ(model.state(name), value.data) << "seed " << seed;
  }
}

TEST_P(Trees, MeanTheSameInEveryPhase) {
  std::string text = textOf(GetParam().name);
  Interpreted fused(text, "fused", {}, from("fused")), planned(text, "planned", {}, from("fused"));
  for (int call = 0; call < 2; ++call)
    EXPECT_EQ(planned.run("step", GetParam().inputs(call), kRows), fused.run("step", GetParam().inputs(call), kRows));
}

// Ops in loops that have no kernels yet.
TEST(OpsInLoops, MeanTheSameInEveryPhaseAndInMachineCode) {
  std::string text = textOf("ops");
  Values inputs = {{"x", integers(/*call=*/0, 1, int(kRows) * 4)}};
  Interpreted reference(text, "train", {}, from("train"));
  reference.setState("w", integers(/*call=*/1, 1, 16));
  Values expected = reference.run("step", inputs, kRows);
  for (const char *phase : {"placed", "copied", "fused", "planned"}) {
    Interpreted later(text, phase, {}, from("train"));
    later.setState("w", integers(/*call=*/1, 1, 16));
    EXPECT_EQ(later.run("step", inputs, kRows), expected) << phase;
    EXPECT_EQ(later.state("w"), reference.state("w")) << phase;
  }
  for (bool fuse : {false, true}) {
    CompileOptions options;
    options.fuse = fuse;
    Compiled model(text, options, {}, from("train"));
    model.setState("w", integers(/*call=*/1, 1, 16));
    EXPECT_EQ(model.run("step", inputs, kRows), expected);
    EXPECT_EQ(model.state("w"), reference.state("w"));
  }
}

TEST_P(Trees, NeedEveryWait) {
  Compiled model(textOf(GetParam().name), {}, {}, from("fused"));
  EXPECT_GT(expectEveryWaitIsNeeded({model, GetParam().inputs, kRows}).races, 0);
}

// The counts of the executor, of the copy engines and of the forecast are equal.
TEST_P(Trees, CopyWhatIsForecast) {
  Compiled model(textOf(GetParam().name), {}, {.threads = 1}, from("fused"));
  for (int call = 0; call < kCalls; ++call)
    model.run("step", GetParam().inputs(call), kRows);
  runtime::Executor &executor = model.program().executor();
  EXPECT_EQ(executor.executedCopies(), executor.forecast().counts());
  EXPECT_EQ(byPair(executor.engineCopies()), byPair(executor.forecast().counts()));
}

TEST_P(Trees, ArePlannedAgainFromTheirText) {
  auto planOf = [](mlir::ModuleOp module) {
    sluice_target_info host{};
    host.struct_size = sizeof host;
    host.cpu = "any";
    return runtime::writePlan(passes::buildPlan(module, {*ir::Target::of(module), host, "", "", {}, {}}).plan);
  };
  Interpreted model(textOf(GetParam().name), "planned", {}, from("fused"));
  std::string text;
  llvm::raw_string_ostream out(text);
  model.module()->print(out, mlir::OpPrintingFlags().enableDebugInfo());
  mlir::MLIRContext context;
  context.loadDialect<ir::SluiceDialect>();
  auto again = ir::parseModuleText(text, "planned.mlir", context);
  ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError()) << text;
  EXPECT_EQ(planOf(model.module()), planOf(**again));
}

INSTANTIATE_TEST_SUITE_P(, Trees, testing::ValuesIn(kTrees),
                         [](const auto &info) { return std::string(info.param.name); });

// Two calls with separate buffers are in flight. For each, the first iteration runs directly and the second is
// captured.
TEST(SegmentsInLoops, AreReplayedInEveryIteration) {
  Compiled model(textOf("products"), {}, {}, from("train"));
  std::vector<Values> found[2];
  for (bool replays : {false, true}) {
    model.restart({.threads = 1, .sim = "seed=5,races=report", .replays = replays});
    model.setState("w", {0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, -1, 1, 0, 0, 0});
    for (int call = 0; call < kCalls; ++call)
      found[replays].push_back(model.run("step", {{"x", integers(call, 1, int(kRows) * 4)}}, kRows));
    runtime::ReplayCount count = model.program().executor().replayCount();
    EXPECT_EQ(count.replays, replays ? 6 * kCalls - 2 : 0);
    EXPECT_EQ(count.kept, replays ? 2u : 0u);
  }
  EXPECT_EQ(found[true], found[false]);
}

TEST(LoopPlan, CountsEveryIteration) {
  Compiled model(textOf("loop"), {}, {.threads = 1}, from("fused"));
  model.run("step", loopInputs(0), kRows);
  auto counts = byPair(model.program().executor().forecast().counts());
  EXPECT_EQ((counts[{1, 2}]), (runtime::CopyCount{5, 5 * 96}));
  EXPECT_EQ((counts[{2, 1}]), (runtime::CopyCount{5, 5 * 96}));
}

TEST(ExchangePlan, MovesTheRowsThereAreBothWays) {
  Compiled model(textOf("exchange"), {}, {.threads = 1}, from("fused"));
  model.run("step", exchangeInputs(0), kRows);
  auto counts = byPair(model.program().executor().forecast().counts());
  EXPECT_EQ((counts[{1, 2}]), (runtime::CopyCount{4, 4 * 24 * kRows}));
  EXPECT_EQ((counts[{2, 1}]), (runtime::CopyCount{4, 48 + 3 * 24 * kRows}));
}
