// Plans with trees of actions: rejected plans, copy forecasts, and predictions.
#include "FileContents.h"
#include "Scaler.h"
#include "runtime/base/Status.h"
#include "runtime/plan/CopyForecast.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/ScheduleModel.h"
#include "runtime/plan/WritePlan.h"

#include <gtest/gtest.h>

using namespace sluice;
using namespace sluice::runtime;
using Json = nlohmann::ordered_json;

namespace {

Json copyBetween(int from, int to) {
  return {{"value", "v"},
          {"from", {{"arena", from}, {"offset", 512}}},
          {"to", {{"arena", to}, {"offset", 128}}},
          {"bytes", 64},
          {"bytes_per_row", 0},
          {"capacity_bytes", 64},
          {"when", "step"},
          {"reason", "placement"}};
}

/// The scaler with a second accelerator. The first accelerator's copies, launch and count (actions 0 to 4) form a loop
/// of three iterations, with adapted waits. Then both accelerators exchange 64 bytes.
Json treePlan() {
  Json plan = test::scalerPlan();
  plan["devices"].push_back({{"name", "acc1"}, {"backend", "sim"}, {"compiled_for", 1}});
  plan["arenas"].push_back({{"name", "transient"}, {"device", 2}, {"bytes", 4096}});
  plan["queues"].push_back({{"name", "acc1.in"}, {"device", 2}, {"kind", "copy"}});
  for (Json &entry : plan["entries"])
    entry["peak_bytes"].push_back(4096);
  Json &step = plan["entries"][1];
  Json actions = step["actions"];
  Json launch = actions[test::scale], bring = actions[test::bringX];
  bring["waits"] = Json::array({Json::array({1, 1})});
  launch["waits"] = Json::array({Json::array({0, 0})});
  Json loop = {{"loop", {{"name", "again"}, {"source", "a.cpp:1:1"}, {"count", 3}, {"actions", {bring, launch}}}},
               {"queues", {2, 1}}};
  Json exchange = {{"exchange", {{"copies", {copyBetween(3, 4), copyBetween(4, 3)}}}},
                   {"queues", {4, 2}},
                   {"waits", Json::array({Json::array({0, 0})})}};
  step["actions"] = {loop, exchange};
  step["inputs"][0]["waits"] = Json::array({Json::array({0, 2})});
  step["outputs"].erase(1);
  step["outputs"][0]["arena"] = 1;
  return plan;
}

/// Replaces the value at `place`, a JSON pointer, by `value`.
struct BadTree {
  const char *name, *place, *value, *message;
};

class BadTreePlan : public testing::TestWithParam<BadTree> {};

/// `depth` nested loops of `count` iterations each.
Json nested(Json action, int depth, int count) {
  for (int i = 0; i < depth; ++i)
    action = {{"loop", {{"name", "l"}, {"count", count}, {"actions", Json::array({action})}}},
              {"queues", action["queues"]}};
  return action;
}

Status statusOfNested(int depth, int count) {
  Json plan = treePlan();
  Json &actions = plan["entries"][1]["actions"];
  Json launch = actions[0]["loop"]["actions"][1];
  launch.erase("waits");
  actions[0] = nested(launch, depth, count);
  return guarded([&] { test::parsed(plan); });
}

} // namespace

TEST(TreePlan, WhatIsWrittenIsReadBack) {
  Plan plan = test::parsed(treePlan());
  EXPECT_EQ(readPlan(test::scaler(writePlan(plan))), plan);
  const Entry &step = *plan.findEntry("step");
  EXPECT_EQ(step.actions[0].loop()->count, 3);
  EXPECT_EQ(step.actions[1].exchange()->copies[1].from.arena, 4u);
  EXPECT_EQ(step.actions[1].queues, (std::vector<size_t>{4, 2}));
}

// A loop of one launch, which runs conditionally.
TEST(TreePlan, AConditionIsWrittenReadBackAndCompared) {
  Json plan = treePlan();
  Json &loop = plan["entries"][1]["actions"][0]["loop"];
  loop["actions"].erase(0);
  loop["actions"][0].erase("waits");
  plan["entries"][1]["actions"][0]["queues"] = {1};
  Plan without = test::parsed(plan);
  loop["condition"] = {{"arena", 1}, {"offset", 832}};
  Plan with = test::parsed(plan);
  EXPECT_EQ(readPlan(test::scaler(writePlan(with))), with);
  EXPECT_FALSE(with == without);
  EXPECT_EQ(with.findEntry("step")->actions[0].loop()->condition->offset, 832);
  EXPECT_EQ(with.findEntry("step")->actions[0].buffers().front(), (Buffer{{1, 832}, 1, Access::read}));
}

TEST(TreePlan, ListsALoopBeforeWhatIsInIt) {
  Plan plan = test::parsed(treePlan());
  std::vector<ListedAction> all = plan.findEntry("step")->allActions();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_TRUE(all[0].action->loop());
  EXPECT_TRUE(all[1].action->copy());
  EXPECT_EQ(all[2].times, 3);
  EXPECT_TRUE(all[3].action->exchange());
  EXPECT_EQ(all[3].times, 1);
}

TEST(TreePlan, ForecastsEveryIterationAndBothWays) {
  Plan plan = test::parsed(treePlan());
  CopyForecast forecast(plan);
  forecast.call(*plan.findEntry("step"), /*rows=*/10);
  EXPECT_EQ(forecast.counts(),
            (CopyCounts{{{0, 1, "input"}, {3, 120}}, {{1, 2, "placement"}, {1, 64}}, {{2, 1, "placement"}, {1, 64}}}));
}

TEST_P(BadTreePlan, IsRefusedWithItsPlace) {
  Json plan = treePlan();
  plan[Json::json_pointer(std::string("/entries/1/actions/") + GetParam().place)] = Json::parse(GetParam().value);
  test::expectInvalid(guarded([&] { test::parsed(plan); }), GetParam().message);
}

static const BadTree badTrees[] = {
    {"NoIteration", "0/loop/count", "0", "outside [1, "},
    {"NegativeCount", "0/loop/count", "-1", "outside [1, "},
    {"HugeCount", "0/loop/count", "2147483648", "outside [1, 2147483647]"},
    {"CountIsText", "0/loop/count", "\"3\"", "expected an integer"},
    {"ActionsAreNone", "0/loop/actions", "3", "expected a list"},
    {"ConditionIsElsewhere", "0/loop/condition", R"({"arena": 3, "offset": 0})", "is not on the host, which reads it"},
    {"ConditionBeyondItsArena", "0/loop/condition", R"({"arena": 1, "offset": 1048576})", "exceed the arena's"},
    {"ConditionOfCopies", "0/loop/condition", R"({"arena": 1, "offset": 0})",
     "has a condition, and copies or collectives, of which a call has a known number"},
    {"OtherQueues", "0/queues", "[1]", "has other queues than its actions"},
    {"MoreQueues", "0/queues", "[1, 2, 3]", "has other queues than its actions"},
    {"SameQueueTwice", "0/queues", "[2, 1, 2]", "has other queues than its actions"},
    {"NoQueue", "0/loop/actions/1/queues", "[]", "is empty"},
    {"TwoQueuesOfALaunch", "0/loop/actions/1/queues", "[1, 2]", "are 2, not 1"},
    {"WaitOutOfTheList", "0/loop/actions/0/waits/0", "[2, 1]", "outside [0, 1]"},
    {"WaitForTheListAround", "0/loop/actions/1/waits/0", "[1, 0]", "outside [0, 0]"},
    {"WaitTwoIterationsBack", "0/loop/actions/0/waits/0", "[1, 2]", "outside [0, 1]"},
    {"FirstWaitsInItsIteration", "0/loop/actions/0/waits/0", "[0, 0]", "later in the same call"},
    {"AskedInALoop", "0/loop/actions/0",
     R"({"copy": {"value": "v", "from": {"arena": 3, "offset": 768}, "to": {"arena": 1, "offset": 768}, "bytes": 4,
         "bytes_per_row": 0, "capacity_bytes": 4, "when": "asked", "reason": "output"}, "queues": [2]})",
     "a copy in a loop happens in every iteration"},
    {"SlotBeyondItsArena", "0/loop/actions/1/launch/buffers/0/offset", "8192", "exceed the arena's 8192"},
    {"BothKinds", "0/copy", "{}", "is not one of a launch, a copy, an exchange, a loop or a collective"},
    {"OneQueueOfAnExchange", "1/queues", "[4]", "has 2 copies in 1 queues"},
    {"OneCopyOfAnExchange", "1/exchange/copies/1", "null", "expected an object"},
    {"BothOneWay", "1/exchange/copies/1",
     R"({"value": "v", "from": {"arena": 3, "offset": 0}, "to": {"arena": 4, "offset": 0}, "bytes": 64, "bytes_per_row": 0,
         "capacity_bytes": 64, "when": "step", "reason": "placement"})",
     "are not one from an accelerator to another and one back"},
    {"ExchangeWithTheHost", "1/exchange/copies/0/from/arena", "1", "are not one from an accelerator to another"},
    {"ExchangeInAStrangeQueue", "1/queues", "[0, 2]", "belongs to neither end"},
    {"ExchangeBeyondItsArena", "1/exchange/copies/0/to/offset", "4096", "exceed the arena's 4096"}};

INSTANTIATE_TEST_SUITE_P(Cases, BadTreePlan, testing::ValuesIn(badTrees),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(TreePlan, LoopsAreNotDeepAndDoNotHappenTooOften) {
  EXPECT_TRUE(statusOfNested(6, 1).ok()) << statusOfNested(6, 1).message;
  EXPECT_NE(statusOfNested(7, 1).message.find("at most 6 may be in each other"), std::string::npos);
  EXPECT_TRUE(statusOfNested(3, 1000).ok());
  EXPECT_NE(statusOfNested(4, 1000).message.find("count: is 1000, outside [1, 2]"), std::string::npos)
      << statusOfNested(4, 1000).message;
}

//===- predictions ------------------------------------------------------------------------------------------------===//

static ScheduleModel::Work work(std::vector<size_t> queues, double seconds, std::vector<Wait> waits = {}) {
  ScheduleModel::Work made;
  made.queues = std::move(queues);
  made.seconds = seconds;
  made.waits = std::move(waits);
  return made;
}

static ScheduleModel::Work loopOf(int64_t times, std::vector<size_t> queues, std::vector<ScheduleModel::Work> inner) {
  ScheduleModel::Work made = work(std::move(queues), 0);
  made.times = times;
  made.loop = std::move(inner);
  return made;
}

static std::vector<double> endsOf(std::vector<ScheduleModel::Work> calls) {
  return ScheduleModel({std::move(calls), {}, {false, false}, 2}).predict(2).ends;
}

// One queue works on the next iteration while the other works on the current one: 3 + 2 * 3 + 1 seconds.
TEST(LoopPrediction, IterationsOverlapAsTheirWaitsLetThem) {
  EXPECT_EQ(endsOf({loopOf(3, {0, 1}, {work({0}, 3), work({1}, 1, {{0, 0}})})}), (std::vector<double>{10, 20}));
  EXPECT_EQ(endsOf({loopOf(3, {0, 1}, {work({0}, 3, {{1, 1}}), work({1}, 1, {{0, 0}})})}),
            (std::vector<double>{12, 24}));
}

TEST(LoopPrediction, ManyIterationsTakeAsLongAsTheLast) {
  EXPECT_EQ(endsOf({loopOf(1000, {0}, {work({0}, 2)})}), (std::vector<double>{2000, 4000}));
}

TEST(ExchangePrediction, StartsWhenBothQueuesHaveComeAndHoldsBoth) {
  EXPECT_EQ(endsOf({work({0}, 5), work({1}, 1), work({0, 1}, 2), work({1}, 4)}), (std::vector<double>{11, 18}));
}

TEST(LoopPrediction, SaysWhenEachActionRan) {
  ScheduleModel model({{loopOf(3, {0}, {work({0}, 2), work({0}, 1)}), work({1}, 4, {{0, 0}})}, {}, {false, false}, 1});
  std::vector<ScheduleModel::Interval> last = model.predict(1).lastCall;
  ASSERT_EQ(last.size(), 4u);
  EXPECT_EQ(last[0].end, 9);
  EXPECT_EQ(last[1].start, 0);
  EXPECT_EQ(last[1].end, 8);
  EXPECT_EQ(last[3].start, 9);
  EXPECT_EQ(model.serialSeconds(), 13);
}
