// Plans of several replicas: parsing, rejected plans, and the assignment of rows.
#include "Averager.h"
#include "FileContents.h"
#include "MemoryTransport.h"
#include "runtime/base/Status.h"
#include "runtime/device/DeviceBinding.h"
#include "runtime/plan/RowBlocks.h"
#include "runtime/plan/WritePlan.h"

#include <gtest/gtest.h>

using namespace sluice;
using namespace sluice::runtime;
using test::Json;

namespace {

Plan parsedReplicas(const Json &plan) {
  std::string text = plan.dump();
  return readPlan(test::averager(text));
}

/// Replaces the value at `place`, a JSON pointer, by `value`.
struct BadReplicaPlan {
  const char *name, *place, *value, *message;
};

class BadReplicas : public testing::TestWithParam<BadReplicaPlan> {};

struct BadReplicaList {
  const char *name, *list, *message;
};

class BadReplicaDevices : public testing::TestWithParam<BadReplicaList> {};

std::vector<int64_t> sharesOf(int64_t rows, int64_t replicas) {
  std::vector<int64_t> shares;
  for (int64_t replica = 0; replica < replicas; ++replica)
    shares.push_back(shareOf(rows, replicas, replica).rows);
  return shares;
}

} // namespace

TEST(RowShares, AreConsecutiveAndNearlyEqual) {
  EXPECT_EQ(sharesOf(7, 3), (std::vector<int64_t>{3, 2, 2}));
  EXPECT_EQ(sharesOf(2, 5), (std::vector<int64_t>{1, 1, 0, 0, 0}));
  EXPECT_EQ(sharesOf(64, 1), (std::vector<int64_t>{64}));
  EXPECT_EQ(shareOf(7, 3, 2).first, 5);
  EXPECT_EQ(shareOf(2, 5, 4).first, 2);
  EXPECT_EQ(shareOf(2, 5, 4).all, 2);
}

TEST(RowBlocks, CopyARangeOfEachBlock) {
  Value value;
  value.dtype = DType::u8;
  value.shape = {2, 8, 3}; // two rows of the capacity 4 are one of the shape's four
  value.rowsDim = 1;
  RowBlocks blocks(value, /*capacity=*/4);
  EXPECT_EQ(blocks.outer, 2);
  EXPECT_EQ(blocks.rowBytes, 6);
  std::vector<std::byte> whole(2 * 5 * 6), part(48);
  for (size_t i = 0; i < whole.size(); ++i)
    whole[i] = static_cast<std::byte>(i);
  blocks.copy(part.data(), blocks.room, 0, whole.data(), /*fromRoom=*/5, /*fromFirst=*/3, /*rows=*/2);
  EXPECT_EQ(part[0], std::byte(18));
  EXPECT_EQ(part[11], std::byte(29));
  EXPECT_EQ(part[12], std::byte(0));
  EXPECT_EQ(part[24], std::byte(48));
  EXPECT_EQ(part[35], std::byte(59));
}

TEST(ReplicaPlan, ReadsEveryFieldAndWritesIt) {
  Plan plan = parsedReplicas(test::averagerPlan(3));
  std::string text = writePlan(plan);
  EXPECT_EQ(readPlan(test::averager(text)), plan);
  EXPECT_EQ(plan.replicas, 3);
  EXPECT_EQ(plan.batch, 64);
  EXPECT_EQ(plan.capacity, 22);
  EXPECT_EQ(plan.devices[0].compiledFor, (std::vector<int32_t>{0, 0, 0}));
  EXPECT_EQ(plan.devices[1].compiledFor, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(plan.queues[4].kind, QueueKind::communication);
  EXPECT_EQ(plan.findState("first_row")->kind, StateKind::share);
  EXPECT_TRUE(plan.hasCollectives());
  const Collective &reduce = *plan.findEntry("train_step")->actions[test::reduce].collective();
  EXPECT_EQ(reduce.kind, Collective::Kind::allReduce);
  EXPECT_EQ(reduce.dtype, DType::f64);
  EXPECT_TRUE(reduce.isInPlace());
  EXPECT_EQ(reduce.bytesFor(3), 8);
}

TEST(ReplicaPlan, EveryKindAndReductionIsWrittenAndReadBack) {
  Plan plan = parsedReplicas(test::averagerPlan(2));
  auto &reduce = std::get<Collective>(plan.entries[1].actions[test::reduce].work);
  for (size_t kind = 0; kind < std::size(Collective::kindNames); ++kind) {
    reduce.kind = static_cast<Collective::Kind>(kind);
    reduce.reduction = Reduction::max;
    reduce.root = 1;
    reduce.receive.slot.offset = 576;
    reduce.send.bytes = reduce.receive.bytes = 16;
    plan.replicaLink = GivenLink{1.5e9, 0.25};
    std::string text = writePlan(plan);
    EXPECT_EQ(readPlan(test::averager(text)), plan) << Collective::kindNames[kind];
  }
}

TEST(ReplicaPlan, OneReplicaIsWhatAPlanHasThatSaysNothing) {
  Json json = test::averagerPlan(1);
  json.erase("replicas");
  json.erase("batch");
  Plan plan = parsedReplicas(json);
  EXPECT_EQ(plan.replicas, 1);
  EXPECT_EQ(plan.batch, plan.capacity);
  EXPECT_FALSE(plan.hasCollectives());
}

/// Users and the checkpoint hash see the whole of a sharded slot.
TEST(ReplicaPlan, ASlotMayBeInShards) {
  Json json = test::averagerPlan(2);
  json["states"][3]["kind"] = "slot";
  Plan whole = parsedReplicas(json);
  json["states"][3]["shape"] = Json::array({2});
  json["states"][3]["shards"] = 2;
  Plan plan = parsedReplicas(json);
  EXPECT_EQ(readPlan(test::averager(writePlan(plan))), plan);
  EXPECT_EQ(plan.states[3].keptShape(), Shape{1});
  EXPECT_EQ(plan.states[3].bytes, whole.states[3].bytes);
  EXPECT_EQ(plan.states[3].logicalBytes(), 2 * whole.states[3].logicalBytes());
  json["states"][3]["shards"] = 1;
  json["states"][3]["bytes"] = 16;
  EXPECT_EQ(parsedReplicas(json).stateHash(), plan.stateHash());
  json["states"][3]["shards"] = 3;
  test::expectInvalid(guarded([&] { parsedReplicas(json); }), "is 3, but a slot has one for each of 2 replicas");
}

/// Collectives access their operands and results, so that searches for writers find them.
TEST(ReplicaPlan, KnowsWhatACollectiveWrites) {
  Json json = test::averagerPlan(2);
  Json &collective = json["entries"][1]["actions"][test::reduce]["collective"];
  collective["receive"]["offset"] = 576;
  Plan plan = parsedReplicas(json);
  const Action &reduce = plan.findEntry("train_step")->actions[test::reduce];
  EXPECT_FALSE(plan.writes(reduce, {3, 768}, 8));
  EXPECT_TRUE(plan.writes(reduce, {3, 576}, 8));
  ASSERT_EQ(reduce.buffers().size(), 2u);
  EXPECT_EQ(reduce.buffers()[0].access, Access::read);
}

TEST(ReplicaPlan, SharesAreInNoHashOfStates) {
  Plan plan = parsedReplicas(test::averagerPlan(2)), other = plan;
  other.states.erase(other.states.begin() + 1);
  EXPECT_EQ(other.stateHash(), plan.stateHash());
  other.states.pop_back();
  EXPECT_NE(other.stateHash(), plan.stateHash());
}

TEST_P(BadReplicas, AreRefusedWithTheirPlace) {
  Json plan = test::averagerPlan(2);
  plan[Json::json_pointer(GetParam().place)] = Json::parse(GetParam().value);
  test::expectInvalid(guarded([&] { parsedReplicas(plan); }), GetParam().message);
}

#define COLLECTIVE "/entries/1/actions/4/collective"

static const BadReplicaPlan badReplicaPlans[] = {
    {"NoReplica", "/replicas", "-1", "plan.replicas: is -1, outside [0, 1024]"},
    {"ManyReplicas", "/replicas", "1025", "outside [0, 1024]"},
    {"ReplicasAreText", "/replicas", "\"2\"", "plan.replicas: expected an integer"},
    {"NoBatch", "/batch", "0", "plan.batch: is 0, outside [1"},
    {"BatchBeyondTheCapacity", "/batch", "65",
     "plan.batch: is 65: one of 2 replicas would have 33 rows, and the capacity is 32"},
    {"FewNumbers", "/devices/1/compiled_for", "[0]", "compiled_for: has 1 numbers for 2 replicas"},
    {"ANumber", "/devices/1/compiled_for", "0", "compiled_for: expected a list"},
    {"NegativeNumber", "/devices/1/compiled_for/1", "-1", "outside [0"},
    {"AnotherHost", "/devices/0/compiled_for/1", "1", "outside [0, 0]"},
    {"UnknownShare", "/states/1/name", "\"rows\"", "is 'rows', not 'global_rows', 'first_row' or 'replica'"},
    {"ShardsOfNoSlot", "/states/3/shards", "2",
     "shards: is 2, but a slot has one for each of 2 replicas, and another state has one"},
    {"ShareOfAnotherType", "/states/1/dtype", "\"f64\"", "is f64[], but a share is i64[]"},
    {"ShareOfAShape", "/states/1/shape", "[1]", "is i64[1], but a share is i64[]"},
    {"WrittenShare", "/entries/1/actions/7/launch/buffers/1/offset", "64",
     "is written by 'train_step', but the runtime sets it"},
    {"LinkWithoutSpeed", "/replica_link", R"({"bytes_per_second": 0, "latency_s": 0})",
     "replica_link: has no positive speed"},
    {"LinkOfTheFuture", "/replica_link", R"({"bytes_per_second": 1, "latency_s": -1})", "or a latency below zero"},
    {"LinkOfText", "/replica_link", "\"fast\"", "replica_link"},
    {"NoNames", COLLECTIVE "/name", "null", "expected a string"},
    {"UnknownKind", COLLECTIVE "/kind", "\"all_to_all\"",
     "is 'all_to_all', not 'all_reduce', 'broadcast', 'all_gather' or 'reduce_scatter'"},
    {"UnknownReduction", COLLECTIVE "/reduction", "\"mean\"", "is 'mean', not 'sum', 'max' or 'tree_sum'"},
    {"BooleansAreNotExchanged", COLLECTIVE "/dtype", "\"bool\"", "is bool, which is not exchanged"},
    {"NegativeCount", COLLECTIVE "/count", "-1", "count: is -1, outside"},
    {"HugeCount", COLLECTIVE "/count", "1125899906842624", "outside"},
    {"MoreThanIsSent", COLLECTIVE "/count", "2", "send.bytes: is 8, but the collective needs 16"},
    {"MoreThanIsGathered", COLLECTIVE "/kind", "\"all_gather\"", "receive.bytes: is 8, but the collective needs 16"},
    {"MoreThanIsScattered", COLLECTIVE "/kind", "\"reduce_scatter\"", "send.bytes: is 8, but the collective needs 16"},
    {"NoSuchRoot", COLLECTIVE "/root", "2", "outside [0, 1]"},
    {"ElsewhereSent", COLLECTIVE "/send/arena", "1", "is not on the device of the queue 'acc0.talk'"},
    {"ElsewhereReceived", COLLECTIVE "/receive/arena", "1", "is not on the device of the queue 'acc0.talk'"},
    {"BeyondTheArena", COLLECTIVE "/receive/offset", "896", "exceed the arena's 896"},
    {"OtherBytesInPlace", COLLECTIVE "/receive/bytes", "16", "has 16 bytes in the place of the 8 that are sent"},
    {"Overlap", COLLECTIVE "/receive", R"({"arena": 3, "offset": 704, "bytes": 128})", "overlaps 'send'"},
    {"AComputeQueue", "/entries/1/actions/4/queues/0", "1", "its queue 'acc0' is not a communication queue"},
    {"TwoQueues", "/entries/1/actions/4/queues", "[4, 1]", "are 2, not 1"},
    {"AlsoACopy", "/entries/1/actions/4/copy", "{}", "is not one of a launch, a copy"},
};

INSTANTIATE_TEST_SUITE_P(Cases, BadReplicas, testing::ValuesIn(badReplicaPlans),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(ReplicaPlan, OneReplicaHasNobodyToExchangeWith) {
  Json plan = test::averagerPlan(2);
  plan["replicas"] = 1;
  plan["batch"] = 32;
  for (Json &device : plan["devices"])
    device["compiled_for"] = 0;
  test::expectInvalid(guarded([&] { parsedReplicas(plan); }), "is for several replicas, but the plan has one");
}

/// A plan that leaves the number of replicas to the launch.
static Json planOfLaunch() {
  Json plan = test::averagerPlan(2);
  plan["replicas"] = 0;
  plan["batch"] = 32;
  for (Json &device : plan["devices"])
    device["compiled_for"] = 0;
  return plan;
}

TEST(ReplicaPlan, LeavesItToTheLaunchHowManyThereAre) {
  Plan plan = parsedReplicas(planOfLaunch());
  EXPECT_EQ(plan.replicas, replicasOfLaunch);
  EXPECT_EQ(plan.capacity, 32);
  EXPECT_TRUE(plan.hasCollectives());
  std::string text = writePlan(plan);
  EXPECT_EQ(readPlan(test::averager(text)), plan);
}

TEST(ReplicaPlan, OfAsManyAsAreLaunchedHasRoomForOneAlone) {
  Json plan = planOfLaunch();
  plan["batch"] = 33;
  test::expectInvalid(guarded([&] { parsedReplicas(plan); }),
                      "plan.batch: is 33: one of 1 replicas would have 33 rows, and the capacity is 32");
}

TEST(ReplicaPlan, OfAsManyAsAreLaunchedHasNoParts) {
  Json plan = planOfLaunch();
  plan["entries"][1]["actions"][test::reduce]["collective"]["kind"] = "all_gather";
  test::expectInvalid(guarded([&] { parsedReplicas(plan); }),
                      "kind: needs the number of replicas, which the launch decides");
}

TEST(ReplicaDevices, OfAProcessAreThoseOfItsRankOnTheMachine) {
  Plan plan = parsedReplicas(test::averagerPlan(3));
  using Ordinals = std::vector<std::vector<int32_t>>;
  ProcessGroup process(test::memoryTransport(), {0, 1, /*localRank=*/2, "", "of a plan", 10});
  DeviceOptions options;
  options.processes = &process;
  EXPECT_EQ(bindDevices(plan, options), (Ordinals{{0, 2}}));
  options.list = "sim:4-7";
  EXPECT_EQ(bindDevices(plan, options), (Ordinals{{0, 6}}));
  options.list = "sim:0-1";
  Status status = guarded([&] { bindDevices(plan, options); });
  EXPECT_EQ(status.code, ExitCode::usage);
  EXPECT_EQ(status.message,
            "devices: 'sim:0-1' has 2 accelerators, and process 2 of this machine needs 1 after those of "
            "the 2 before it");
}

TEST(ReplicaDevices, OfAProcessFollowThoseOfTheOneBefore) {
  Plan plan = parsedReplicas(planOfLaunch());
  plan.devices[1].compiledFor = {1};
  plan.devices.push_back({"acc1", "sim", {2}});
  plan.devices.push_back({"acc2", "other", {0}});
  using Ordinals = std::vector<std::vector<int32_t>>;
  EXPECT_EQ(bindDevices(plan, ""), (Ordinals{{0, 1, 2, 0}}));
  ProcessGroup process(test::memoryTransport(), {0, 1, /*localRank=*/3, "", "of a launch", 10});
  DeviceOptions options;
  options.processes = &process;
  EXPECT_EQ(bindDevices(plan, options), (Ordinals{{0, 7, 8, 3}}));
}

TEST(ReplicaDevices, AreFilledReplicaByReplicaAndInRanges) {
  Plan plan = parsedReplicas(test::averagerPlan(3));
  using Ordinals = std::vector<std::vector<int32_t>>;
  EXPECT_EQ(bindDevices(plan, ""), (Ordinals{{0, 0}, {0, 1}, {0, 2}}));
  EXPECT_EQ(bindDevices(plan, "sim:1-3"), (Ordinals{{0, 1}, {0, 2}, {0, 3}}));
  EXPECT_EQ(bindDevices(plan, "cpu,sim:5,sim:0-1"), (Ordinals{{0, 5}, {0, 0}, {0, 1}}));
  EXPECT_EQ(bindDevices(plan, "sim:7-7,sim,sim:2"), (Ordinals{{0, 7}, {0, 0}, {0, 2}}));
}

TEST(ReplicaDevices, OfOneReplicaStandTogether) {
  Plan plan = parsedReplicas(test::averagerPlan(2));
  plan.devices.push_back({"acc1", "other", {0, 1}});
  using Ordinals = std::vector<std::vector<int32_t>>;
  EXPECT_EQ(bindDevices(plan, "sim:3,other:2,sim:1,other:0"), (Ordinals{{0, 3, 2}, {0, 1, 0}}));
}

TEST_P(BadReplicaDevices, AreUsageErrors) {
  Plan plan = parsedReplicas(test::averagerPlan(2));
  Status status = guarded([&] { bindDevices(plan, GetParam().list); });
  EXPECT_EQ(status.code, ExitCode::usage);
  EXPECT_NE(status.message.find(GetParam().message), std::string::npos) << status.message;
}

static const BadReplicaList badReplicaLists[] = {
    {"OfOneReplica", "sim:0", "has 1 accelerators, and the model was compiled for 2: 1 in each of 2 replicas"},
    {"LongRange", "sim:0-2", "has 3 accelerators, and the model was compiled for 2: 1 in each of 2 replicas"},
    {"Twice", "sim:1,sim:1", "sim:1 is listed twice"},
    {"TwiceInRanges", "sim:1-1,sim:0-1", "has 3 accelerators"},
    {"Descending", "sim:1-0", "'sim:1-0' is not a device such as sim:0, or a range such as sim:0-3: it descends"},
    {"Huge", "sim:0-2000000000", "it is too long"},
    {"BeyondAllNumbers", "sim:0-99999999999", "is not a device"},
    {"NoEnd", "sim:0-", "is not a device"},
    {"NegativeEnd", "sim:0--1", "is not a device"},
    {"ThreeEnds", "sim:0-1-2", "is not a device"}};

INSTANTIATE_TEST_SUITE_P(Cases, BadReplicaDevices, testing::ValuesIn(badReplicaLists),
                         [](const auto &info) { return std::string(info.param.name); });
