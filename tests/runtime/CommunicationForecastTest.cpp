// Forecasts of collectives for a plan whose times can be computed by hand.
#include "runtime/plan/CommunicationForecast.h"

#include <gtest/gtest.h>

using namespace sluice::runtime;

namespace {

enum Queues : size_t { host, computes, communicates };

constexpr int64_t kFirst = 0, kSecond = 64, kParameters = 192; // offsets

Action launchInto(int64_t offset, std::vector<Wait> waits) {
  Launch launch;
  launch.buffers = {{{0, offset}, 40, Access::write}};
  return {launch, {computes}, std::move(waits), {}};
}

Action collectiveOf(const char *name, int64_t offset, int64_t count, std::vector<Wait> waits) {
  Collective collective;
  collective.name = name;
  collective.count = count;
  collective.send = {{0, offset}, collective.partBytes(), Access::read};
  collective.receive = {{0, offset}, collective.partBytes(), Access::write};
  return {collective, {communicates}, std::move(waits), {}};
}

/// Two kernels produce one gradient each, which are reduced; a third kernel updates both parameters.
class TwoGradients : public testing::Test {
protected:
  TwoGradients() {
    plan.replicas = 2;
    plan.devices = {{"cpu", "cpu"}, {"acc0", "sim", {0, 1}}};
    plan.arenas = {{"transient", 1, 1024}};
    plan.queues = {{"cpu", 0}, {"acc0", 1}, {"acc0.comm", 1, QueueKind::communication}};
    Entry &step = plan.entries.emplace_back();
    step.actions = {launchInto(kFirst, {}), launchInto(kSecond, {}), collectiveOf("first", kFirst, 10, {{0, 0}}),
                    collectiveOf("second", kSecond, 20, {{1, 0}}), launchInto(kParameters, {{2, 0}, {3, 0}})};
  }

  CommunicationForecast forecast(const std::vector<double> &seconds) const {
    CallModel calls(plan, plan.entries.front(), /*microbatches=*/1, [](size_t queue) { return queue == host; });
    return forecastCommunication(plan, calls, seconds);
  }

  Plan plan;
};

} // namespace

TEST_F(TwoGradients, AreReducedBesideWorkAsFarAsThereIsAny) {
  CommunicationForecast both = forecast({2, 2, 3, 4, 1});
  EXPECT_DOUBLE_EQ(both.callSeconds, 10); // the second is reduced from time 5 to 9
  EXPECT_DOUBLE_EQ(both.seconds(), 7);
  EXPECT_DOUBLE_EQ(both.exposedSeconds, 5); // without collectives: 5
  ASSERT_EQ(both.collectives.size(), 2u);
  const CollectiveForecast &first = both.collectives[0], &second = both.collectives[1];
  EXPECT_EQ(first.collective->name, "first");
  EXPECT_EQ(second.bytes, 80);
  EXPECT_DOUBLE_EQ(first.ready, 2);
  EXPECT_DOUBLE_EQ(first.start, 2);
  EXPECT_DOUBLE_EQ(first.end, 5);
  EXPECT_DOUBLE_EQ(second.ready, 4);
  EXPECT_DOUBLE_EQ(second.start, 5);
  EXPECT_DOUBLE_EQ(second.end, 9);
}

TEST_F(TwoGradients, ShareWhatIsExposed) {
  CommunicationForecast both = forecast({2, 2, 3, 4, 1});
  EXPECT_DOUBLE_EQ(both.collectives[0].exposed, 1); // the collective ends at 5, the kernels at 4
  EXPECT_DOUBLE_EQ(both.collectives[1].exposed, 4);
}

TEST_F(TwoGradients, AreHiddenWhereTheyAreShort) {
  CommunicationForecast hidden = forecast({2, 2, 1, 0.5, 1});
  EXPECT_DOUBLE_EQ(hidden.collectives[0].exposed, 0);
  EXPECT_DOUBLE_EQ(hidden.collectives[1].exposed, 0.5);
  EXPECT_DOUBLE_EQ(hidden.callSeconds, 5.5);
}

TEST_F(TwoGradients, AreCountedForEachCall) {
  CollectiveCounts counts = collectivesPerCall(plan.entries.front(), plan.replicas);
  EXPECT_EQ(counts[size_t(Collective::Kind::allReduce)], (CollectiveCount{2, 120}));
  EXPECT_EQ(counts[size_t(Collective::Kind::broadcast)], (CollectiveCount{}));
}

TEST_F(TwoGradients, InALoopAreCountedForEachIteration) {
  Loop loop;
  loop.count = 3;
  loop.actions = {collectiveOf("inner", kFirst, 5, {})};
  plan.entries.front().actions.push_back({loop, {communicates}, {}, {}});
  CollectiveCounts counts = collectivesPerCall(plan.entries.front(), plan.replicas);
  EXPECT_EQ(counts[size_t(Collective::Kind::allReduce)], (CollectiveCount{5, 180}));
}

TEST(CommunicationForecast, OfNoCollectiveIsTheCallAlone) {
  Plan plan;
  plan.devices = {{"cpu", "cpu"}};
  plan.queues = {{"cpu", 0}};
  plan.entries.emplace_back().actions = {{Launch{}, {host}, {}, {}}};
  CallModel calls(plan, plan.entries.front(), /*microbatches=*/1, [](size_t) { return true; });
  CommunicationForecast none = forecastCommunication(plan, calls, {2});
  EXPECT_TRUE(none.collectives.empty());
  EXPECT_DOUBLE_EQ(none.callSeconds, 2);
  EXPECT_DOUBLE_EQ(none.exposedSeconds, 0);
}
