// Calls in parts, with a hand-written plan: each microbatch sums and squares its rows; a part that runs once per call
// computes the mean.
#include "FileContents.h"
#include "PlanJson.h"
#include "runtime/base/Status.h"
#include "runtime/instance/Instance.h"
#include "runtime/plan/RowBlocks.h"
#include "runtime/plan/WritePlan.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

using namespace sluice;
using namespace sluice::runtime;
using test::buffer;
using test::Json;
using test::place;
using test::value;

namespace {

constexpr int capacity = 4, microbatches = 3, rowBytes = 8, allBytes = capacity * microbatches * rowBytes;
// Offsets in the arenas.
constexpr int sumAt = 0, mostAt = 64, allRowsAt = 128, firstAt = 192;                            // states
constexpr int xAt = 0, yAt = 64, totalAt = 128, largestAt = 192, wholeXAt = 256, wholeYAt = 384; // transients

template <typename T> T &scalar(void *buffer) { return *static_cast<T *>(buffer); }

/// y = x * x + 1000 * the number of the first row; updates the running sum and maximum.
void addRows(void *const *buffers, int64_t rows, int64_t, int64_t) {
  const auto *x = static_cast<const double *>(buffers[0]);
  for (int64_t i = 0; i < rows; ++i) {
    scalar<double>(buffers[1]) += x[i];
    scalar<double>(buffers[2]) = std::max(scalar<double>(buffers[2]), x[i]);
    static_cast<double *>(buffers[4])[i] = x[i] * x[i] + 1000 * static_cast<double>(scalar<int64_t>(buffers[3]));
  }
}

/// The mean over all rows and the maximum; resets both accumulators.
void takeSum(void *const *buffers, int64_t, int64_t, int64_t) {
  scalar<double>(buffers[3]) = scalar<double>(buffers[0]) / static_cast<double>(scalar<int64_t>(buffers[2]));
  scalar<double>(buffers[4]) = scalar<double>(buffers[1]);
  scalar<double>(buffers[0]) = 0;
  scalar<double>(buffers[1]) = -INFINITY;
}

Json valueOfRows(const char *name, int at, int bytes) {
  return value(name, "f64", Json::array({capacity}), 0, place(1, at), bytes);
}

Json summerPlan() {
  Json plan = test::cpuPlan("summer", /*stateBytes=*/256, /*transientBytes=*/512);
  plan["batch"] = 11;
  plan["capacity"] = capacity;
  plan["microbatches"] = microbatches;
  plan["in_flight"] = 1;
  Json most = test::state("accumulator 2", "accumulator", "f64", place(0, mostAt), 8);
  most["reduction"] = "max";
  plan["states"] = {test::state("accumulator 1", "accumulator", "f64", place(0, sumAt), 8), most,
                    test::state("global_rows", "share", "i64", place(0, allRowsAt), 8),
                    test::state("first_row", "share", "i64", place(0, firstAt), 8)};
  plan["kernels"] = {test::kernel("add", 0, 0, 1), test::kernel("take", 0, 1, 0)};
  Json x = valueOfRows("x", xAt, 32), y = valueOfRows("y", yAt, 32),
       mean = test::scalarValue("mean", place(1, totalAt)), largest = test::scalarValue("largest", place(1, largestAt));
  Json sum = place(0, sumAt), max = place(0, mostAt), first = place(0, firstAt), all = place(0, allRowsAt);
  Json add = test::launchAction(0,
                                {buffer(place(1, xAt), 32, "r"), buffer(sum, 8, "rw"), buffer(max, 8, "rw"),
                                 buffer(first, 8, "r"), buffer(place(1, yAt), 32, "w")},
                                0, {});
  Json take = test::launchAction(1,
                                 {buffer(sum, 8, "rw"), buffer(max, 8, "rw"), buffer(all, 8, "r"),
                                  buffer(place(1, totalAt), 8, "w"), buffer(place(1, largestAt), 8, "w")},
                                 0, {});
  Json whole = test::entry("step", {valueOfRows("x", wholeXAt, allBytes)},
                           {mean, valueOfRows("y", wholeYAt, allBytes), largest}, {});
  whole["parts"] = Json::array({Json::array({1, "each"}), Json::array({2, "once"})});
  plan["entries"] = {whole, test::entry("step.0", {x}, {y}, {add}), test::entry("step.1", {}, {mean, largest}, {take})};
  return plan;
}

sluice_artifact summer(const std::string &plan) {
  static const sluice_stage_fn stages[] = {addRows, takeSum};
  return test::artifactOf(plan, stages);
}

/// A loaded plan.
struct Summer {
  std::string text = summerPlan().dump();
  sluice_artifact artifact = summer(text);
  Instance instance{artifact, std::make_shared<DevicePool>(), {.threads = 1}};
  const Entry &step = instance.entry("step");

  void run(const std::vector<double> &rows) {
    auto count = static_cast<int64_t>(rows.size());
    instance.checkRows(step, count);
    instance.setInput(step.inputs[0], std::as_bytes(std::span(rows)), count);
    instance.run(step, count);
  }
  std::vector<double> output(const char *name, size_t count) {
    std::vector<double> values(count);
    int64_t rows = count > 1 ? static_cast<int64_t>(count) : 1;
    instance.getOutput(*step.findOutput(name), std::as_writable_bytes(std::span(values)), rows);
    return values;
  }
};

struct BadMicrobatchPlan {
  const char *name, *place, *value, *message;
};

class BadMicrobatches : public testing::TestWithParam<BadMicrobatchPlan> {};

Plan parsed(const Json &plan) {
  std::string text = plan.dump();
  return readPlan(summer(text));
}

std::vector<double> firstNumbers(size_t count, double from) {
  std::vector<double> numbers(count);
  std::iota(numbers.begin(), numbers.end(), from);
  return numbers;
}

} // namespace

TEST(Microbatches, AreConsecutiveInAShare) {
  RowShare share{10, 3, 20};
  EXPECT_EQ(microbatchOf(share, 0, 4).rows, 4);
  EXPECT_EQ(microbatchOf(share, 1, 4).first, 7);
  EXPECT_EQ(microbatchOf(share, 2, 4).rows, 2);
  EXPECT_EQ(microbatchOf(share, 3, 4).rows, 0);
  EXPECT_EQ(microbatchOf(share, 3, 4).first, 13);
  EXPECT_EQ(microbatchOf(share, 3, 4).all, 20);
}

/// The rows of all microbatches of all replicas, with 8 logical shards.
static std::vector<std::pair<int64_t, int64_t>> shardsOf(int64_t rows, int64_t replicas) {
  Plan plan;
  plan.logicalShards = 8;
  plan.replicas = replicas;
  plan.microbatches = plan.logicalShards / replicas;
  std::vector<std::pair<int64_t, int64_t>> shards;
  for (int64_t replica = 0; replica < replicas; ++replica) {
    RowShare share = shareOf(plan, rows, replica);
    int64_t end = share.first;
    for (int64_t number = 0; number < plan.microbatches; ++number) {
      RowShare its = microbatchOf(plan, share, replica, number);
      EXPECT_EQ(its.first, end);
      end += its.rows;
      shards.emplace_back(its.first, its.rows);
    }
    EXPECT_EQ(end, share.first + share.rows) << "of replica " << replica;
  }
  return shards;
}

TEST(LogicalShards, AreTheSameForAnyNumberOfReplicas) {
  for (int64_t rows : {1, 5, 8, 10, 16, 23}) {
    std::vector<std::pair<int64_t, int64_t>> expected;
    for (int64_t shard = 0; shard < 8; ++shard)
      expected.emplace_back(shareOf(rows, 8, shard).first, shareOf(rows, 8, shard).rows);
    for (int64_t replicas : {1, 2, 4, 8})
      EXPECT_EQ(shardsOf(rows, replicas), expected) << rows << " rows of " << replicas << " replicas";
  }
}

TEST(LogicalShards, AreAllDoneInEveryCall) {
  Json json = summerPlan();
  json["logical_shards"] = json["microbatches"];
  Plan plan = parsed(json);
  std::string text = writePlan(plan);
  EXPECT_EQ(readPlan(summer(text)), plan);
  EXPECT_EQ(plan.microbatchesFor(plan.entries[0], 1), microbatches);
}

TEST(Microbatches, AddUpAndPutRowsTogether) {
  Summer summer;
  for (size_t rows : {11, 4, 1, 5, 11}) {
    std::vector<double> x = firstNumbers(rows, -3);
    summer.run(x);
    double sum = std::accumulate(x.begin(), x.end(), 0.0);
    EXPECT_EQ(summer.output("mean", 1)[0], sum / static_cast<double>(rows)) << rows;
    EXPECT_EQ(summer.output("largest", 1)[0], x.back()) << "which may be negative";
    std::vector<double> y = summer.output("y", rows);
    for (size_t row = 0; row < rows; ++row)
      EXPECT_EQ(y[row], x[row] * x[row] + 1000 * static_cast<double>(row / capacity * capacity)) << row;
  }
  EXPECT_EQ(summer.instance.calls(summer.step), 5);
  EXPECT_EQ(summer.instance.calls(summer.instance.plan().entries[1]), 3 + 1 + 1 + 2 + 3);
  EXPECT_EQ(summer.instance.calls(summer.instance.plan().entries[2]), 5);
}

TEST(Microbatches, KeepTheOutputsOfWholeCalls) {
  Summer summer;
  summer.instance.keepOutputs(summer.step, {summer.step.findOutput("mean")});
  summer.run({1, 2, 3, 4, 5, 6});
  summer.run({5});
  EXPECT_EQ(summer.instance.takeOutputs(summer.step), (std::vector<double>{3.5, 5}));
}

TEST(Microbatches, HaveNoMoreRowsThanTheBatch) {
  Summer summer;
  Status status = guarded([&] { summer.run(firstNumbers(12, 0)); });
  EXPECT_EQ(status.code, ExitCode::usage);
  EXPECT_NE(status.message.find("a call of 'step' has 12 rows, outside [1, 11]"), std::string::npos) << status.message;
}

TEST(Microbatches, CheckIndicesOfAllRowsBeforeAnythingRuns) {
  Summer summer;
  Json plan = summerPlan();
  plan["entries"][0]["inputs"][0]["dtype"] = plan["entries"][1]["inputs"][0]["dtype"] = "i64";
  plan["entries"][0]["inputs"][0]["below"] = 5;
  std::string text = plan.dump();
  sluice_artifact artifact = ::summer(text);
  Instance instance(artifact, std::make_shared<DevicePool>(), {.threads = 1});
  const Entry &step = instance.entry("step");
  std::vector<int64_t> x = {0, 1, 2, 3, 4, 0, 1, 2, 9};
  instance.setInput(step.inputs[0], std::as_bytes(std::span(x)), 9);
  Status status = guarded([&] { instance.run(step, 9); });
  EXPECT_EQ(status.message, "input 'x', row 8: 9 is none of the 5 classes 0 to 4");
  EXPECT_EQ(instance.calls(instance.plan().entries[1]), 0);
}

TEST(Microbatches, AreNoEntryPointsAndKeepNothing) {
  Summer summer;
  EXPECT_EQ(summer.instance.plan().entryNames(), std::vector<std::string>{"step"});
  EXPECT_EQ(summer.instance.plan().findEntry("step.0"), nullptr);
  Plan plan = parsed(summerPlan()), other = plan;
  other.states.erase(other.states.begin());
  EXPECT_EQ(other.stateHash(), plan.stateHash());
  const State &sum = summer.instance.state("accumulator 1");
  std::vector<std::byte> zero(8);
  Status status = guarded([&] { summer.instance.setState(sum, zero); });
  EXPECT_EQ(status.message, "the state 'accumulator 1' cannot be set: it passes values between the parts of a call");
}

TEST(MicrobatchPlan, IsWrittenAndReadBack) {
  Plan plan = parsed(summerPlan());
  std::string text = writePlan(plan);
  EXPECT_EQ(readPlan(summer(text)), plan);
  EXPECT_EQ(plan.microbatches, microbatches);
  EXPECT_EQ(plan.entries[0].parts, (std::vector<CallPart>{{1, CallPart::When::each}, {2, CallPart::When::once}}));
  EXPECT_TRUE(plan.entries[1].isPart);
  EXPECT_EQ(plan.findState("accumulator 2")->reduction, Reduction::max);
  EXPECT_EQ(plan.microbatchesFor(plan.entries[0], 9), 3);
  EXPECT_EQ(plan.microbatchesFor(plan.entries[0], 8), 2);
  EXPECT_EQ(plan.roomOf(plan.entries[0].inputs[0]), 12);
  EXPECT_EQ(plan.roomOf(plan.entries[1].inputs[0]), 4);
}

TEST_P(BadMicrobatches, AreRefusedWithTheirPlace) {
  Json plan = summerPlan();
  plan[Json::json_pointer(GetParam().place)] = Json::parse(GetParam().value);
  test::expectInvalid(guarded([&] { parsed(plan); }), GetParam().message);
}

static const BadMicrobatchPlan badMicrobatchPlans[] = {
    {"None", "/microbatches", "0", "plan.microbatches: is 0, outside [1, 1024]"},
    {"BeyondTheBatch", "/batch", "13",
     "plan.batch: is 13: one of 1 replicas would have 13 rows, and the capacity is 3 microbatches of 4"},
    {"NoSuchEntry", "/entries/0/parts/1/0", "3", "parts[1]: is entry 3 of 3"},
    {"Itself", "/entries/0/parts/1/0", "0", "parts[1]: is 'step', which is a part already or has parts"},
    {"Twice", "/entries/0/parts/1/0", "1", "parts[1]: is 'step.0', which is a part already"},
    {"UnknownWord", "/entries/0/parts/0/1", "\"often\"", "is 'often', not 'each' or 'once'"},
    {"OneField", "/entries/0/parts/0", "[1]", "has 1 fields, not 2"},
    {"RowsOnce", "/entries/0/parts/0/1", "\"once\"", "is done once a call and has rows of 'x'"},
    {"OneValueForEach", "/entries/0/parts/1/1", "\"each\"", "gives 'mean', which only the last part may give"},
    {"AnotherInput", "/entries/1/inputs/0/name", "\"z\"", "has 'z' of type f64[4], which its entry lacks"},
    {"AnotherType", "/entries/1/inputs/0/dtype", "\"i64\"", "has 'x' of type i64[4], which its entry lacks"},
    {"NobodyGives", "/entries/1/outputs", "[]", "outputs[1]: is given by no part"},
    {"LittleRoom", "/entries/0/inputs/0/bytes", "64", "bytes: is 64, less than 3 microbatches need"},
    {"ActionsBeside", "/entries/0/actions/0", R"({"launch": {"kernel": 1, "buffers": []}, "queues": [0]})",
     "are not those of its parts alone"},
    {"NoParts", "/entries/0/parts", "[]", "has rows and no parts, and a call may have 3 microbatches"},
    {"OtherNumberOfShards", "/logical_shards", "5", "plan.logical_shards: is 5, and all replicas have 3 microbatches"},
    {"TreeOfAState", "/states/1/reduction", "\"tree_sum\"", "is 'tree_sum', not 'sum' or 'max'"},
    {"UnknownReduction", "/states/1/reduction", "\"mean\"", "is 'mean', not 'sum' or 'max'"},
};

INSTANTIATE_TEST_SUITE_P(Cases, BadMicrobatches, testing::ValuesIn(badMicrobatchPlans),
                         [](const auto &info) { return std::string(info.param.name); });
