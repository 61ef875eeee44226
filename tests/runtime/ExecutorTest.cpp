// Plans for several devices, run on virtual accelerators.
#include "runtime/exec/Executor.h"
#include "ScalerRun.h"
#include "runtime/base/Status.h"
#include "runtime/plugins/BackendLoader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

using namespace sluice;
using namespace sluice::runtime;
using test::ScalerRun;
using Json = nlohmann::ordered_json;

namespace {

constexpr const char *backends = SLUICE_BINARY_DIR "/lib/sluice/backends";

/// Copies and bytes between two devices, for all reasons.
CopyCount between(const CopyCounts &counts, size_t from, size_t to) { return byPair(counts)[{from, to}]; }

CopyCount ofReason(const CopyCounts &counts, const std::string &reason) {
  CopyCount sum;
  for (const auto &[kind, count] : counts)
    if (kind.reason == reason)
      sum += count;
  return sum;
}

Status started(const std::string &settings, const Json &plan) {
  return guarded([&] { ScalerRun(settings, plan); });
}

struct BadList {
  const char *name, *list;
  ExitCode code;
  const char *message;
};

/// Runs several steps with changing inputs; returns the results.
std::pair<int32_t, int32_t> totalAfterSteps(const std::string &settings, const Json &plan) {
  ScalerRun scaler(settings, plan);
  for (int i = 0; i < 12; ++i) {
    if (i % 4 == 3)
      scaler.setFactor(i);
    scaler.run(1 + i * 11 % test::scalerCapacity);
  }
  return {scaler.state<int32_t>("total"), scaler.total()};
}

} // namespace

class HostileQueues : public testing::TestWithParam<int> {};

TEST_P(HostileQueues, ComputeWhatThePlanSays) {
  auto [total, expected] = totalAfterSteps("seed=" + std::to_string(GetParam()), test::scalerPlan());
  EXPECT_EQ(total, expected);
}

INSTANTIATE_TEST_SUITE_P(Seeds, HostileQueues, testing::Range(0, 16));

TEST(Executor, ReadsOutputsOfBothDevices) {
  ScalerRun scaler("seed=3");
  for (int i = 0; i < 5; ++i) {
    scaler.run(10 + i);
    EXPECT_EQ(scaler.output(0), scaler.sums().back());
    EXPECT_EQ(scaler.output(1), scaler.largest().back());
  }
  EXPECT_EQ(scaler.state<int64_t>("calls"), 5);
}

TEST(Executor, RefreshesAMirrorOnlyWhenItIsStale) {
  ScalerRun scaler;
  const Executor &executor = scaler.instance().executor();
  for (int i = 0; i < 4; ++i)
    scaler.run(8);
  EXPECT_EQ(ofReason(executor.executedCopies(), "state"), (CopyCount{1, 4}));
  scaler.setFactor(5);
  for (int i = 0; i < 4; ++i)
    scaler.run(8);
  EXPECT_EQ(ofReason(executor.executedCopies(), "state"), (CopyCount{2, 8}));
  EXPECT_EQ(scaler.state<int32_t>("total"), scaler.total());
}

TEST(Executor, CopiesAnAskedOutputOnceACall) {
  ScalerRun scaler;
  const Executor &executor = scaler.instance().executor();
  scaler.run(8);
  scaler.run(8);
  EXPECT_EQ(ofReason(executor.executedCopies(), "output"), (CopyCount{}));
  EXPECT_EQ(scaler.output(0), scaler.sums().back());
  EXPECT_EQ(scaler.output(0), scaler.sums().back());
  EXPECT_EQ(ofReason(executor.executedCopies(), "output"), (CopyCount{1, 4}));
}

TEST(Executor, CountsWhatThePlanPredictsAndTheEngineCounts) {
  ScalerRun scaler("seed=5");
  Executor &executor = scaler.instance().executor();
  for (int i = 0; i < 6; ++i)
    scaler.run(10 * (i + 1));
  scaler.output(0);
  scaler.setFactor(2);
  scaler.run(1);
  EXPECT_EQ(scaler.state<int32_t>("total"), scaler.total());
  CopyCounts engine = executor.engineCopies();
  // To the accelerator: seven batches of 211 rows in total, and the factor twice. From it: as many rows, a sum, the
  // total.
  EXPECT_EQ(between(engine, 0, 1), (CopyCount{9, 211 * 4 + 8}));
  EXPECT_EQ(between(engine, 1, 0), (CopyCount{9, 211 * 4 + 8}));
  EXPECT_EQ(executor.executedCopies(), executor.forecast().counts());
  EXPECT_EQ(between(executor.executedCopies(), 0, 1), between(engine, 0, 1));
  EXPECT_EQ(between(executor.executedCopies(), 1, 0), between(engine, 1, 0));
}

TEST(Executor, KeepsOutputsUntilTheyAreAskedFor) {
  ScalerRun scaler("seed=9");
  Executor &executor = scaler.instance().executor();
  scaler.instance().keepOutputs(scaler.step(), {&scaler.step().outputs[0], &scaler.step().outputs[1]});
  std::vector<double> expected;
  for (int i = 0; i < 20; ++i) {
    scaler.run(5 + i);
    expected.push_back(scaler.sums().back());
    expected.push_back(scaler.largest().back());
  }
  EXPECT_EQ(scaler.instance().takeOutputs(scaler.step()), expected);
  EXPECT_TRUE(scaler.instance().takeOutputs(scaler.step()).empty());
  EXPECT_EQ(ofReason(executor.executedCopies(), "output"), (CopyCount{}));
  CopyCounts executed = executor.executedCopies();
  EXPECT_EQ((executed[{1, 1, "log"}]), (CopyCount{20, 80}));
  EXPECT_EQ((executed[{1, 0, "log"}]), (CopyCount{1, 160}));
}

TEST(Executor, KeepsMoreOutputsThanItHasRoomFor) {
  ScalerRun scaler;
  scaler.instance().keepOutputs(scaler.step(), {&scaler.step().outputs[0]});
  for (int i = 0; i < 1500; ++i)
    scaler.run(1);
  EXPECT_EQ(scaler.instance().takeOutputs(scaler.step()),
            std::vector<double>(scaler.sums().begin(), scaler.sums().end()));
}

TEST(Executor, AlternatesEntries) {
  ScalerRun scaler("seed=11");
  for (int i = 0; i < 3; ++i) {
    scaler.run(64);
    scaler.instance().run(scaler.instance().entry("init"), 1);
    EXPECT_EQ(scaler.state<int32_t>("total"), 0);
    scaler.run(3);
    EXPECT_EQ(scaler.state<int32_t>("total"), scaler.sums().back());
  }
}

TEST(Executor, RunsTheHostsPartItselfWhereNoBackendDoes) {
  static sluice_backend_run withoutHost = findRunHalf("sim", {backends});
  withoutHost.takes_host_queues = 0;
  DeviceOptions devices;
  devices.backends["sim"] = &withoutHost;
  ScalerRun scaler("seed=1", test::scalerPlan(), devices);
  scaler.instance().keepOutputs(scaler.step(), {&scaler.step().outputs[1]});
  for (int i = 0; i < 8; ++i)
    scaler.run(20);
  EXPECT_EQ(scaler.output(1), scaler.largest().back());
  EXPECT_EQ(scaler.instance().takeOutputs(scaler.step()),
            std::vector<double>(scaler.largest().begin(), scaler.largest().end()));
  EXPECT_EQ(scaler.state<int32_t>("total"), scaler.total());
}

static sluice_backend_run sound;                                  // the run half of sim
static std::pair<const std::byte *, const std::byte *> ofBackend; // its last allocation of host memory

static sluice_status noteHostMemory(sluice_run *run, size_t bytes, void **address) {
  sluice_status status = sound.host_allocate(run, bytes, address);
  ofBackend = {static_cast<std::byte *>(*address), static_cast<std::byte *>(*address) + bytes};
  return status;
}

/// Copies need no staging buffer for memory that the copying backend allocated.
TEST(Executor, HasInputsInMemoryOfTheBackendThatCopiesThem) {
  sound = findRunHalf("sim", {backends});
  sluice_backend_run noting = sound;
  noting.host_allocate = noteHostMemory;
  DeviceOptions devices;
  devices.backends["sim"] = &noting;
  ScalerRun scaler("", test::scalerPlan(), devices);
  std::byte *input = scaler.instance().inputAddress(scaler.step().inputs[0]);
  EXPECT_TRUE(ofBackend.first <= input && input < ofBackend.second);
  scaler.run(20);
  EXPECT_EQ(scaler.output(0), scaler.sums().back());
}

class DeletedWait : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(DeletedWait, IsReportedAsARace) {
  Json plan = test::scalerPlan();
  auto [action, wait] = GetParam();
  plan["entries"][1]["actions"][action]["waits"].erase(static_cast<size_t>(wait));
  Status status = guarded([&] { totalAfterSteps("", plan); });
  EXPECT_EQ(status.code, ExitCode::internal);
  EXPECT_NE(status.message.find("race"), std::string::npos) << status.message;
}

INSTANTIATE_TEST_SUITE_P(Waits, DeletedWait,
                         testing::Values(std::pair(test::bringX, 0), std::pair(test::scale, 0),
                                         std::pair(test::scale, 1), std::pair(test::returnY, 0),
                                         std::pair(test::returnY, 1), std::pair(test::count, 0)),
                         [](const auto &info) {
                           return "Action" + std::to_string(info.param.first) + "Wait" +
                                  std::to_string(info.param.second);
                         });

TEST(Executor, NamesADeviceWithoutRoom) {
  Json plan = test::scalerPlan();
  plan["arenas"][3]["bytes"] = 1 << 20;
  Status status = started("memory=64KiB", plan);
  EXPECT_EQ(status.code, ExitCode::exhausted);
  EXPECT_EQ(status.message,
            "out of memory: gpu(0) (sim:0): the plan (1048576 for transient, 8192 for the outputs of step, "
            "128 for state) needs 1056896 bytes: sim:0 is out of memory: 1056896 bytes were asked for, "
            "65536 of 65536 are free");
}

TEST(Executor, NamesAnAbsentDevice) {
  Json plan = test::scalerPlan();
  plan["devices"][1]["compiled_for"] = 9;
  Status status = started("", plan);
  EXPECT_EQ(status.code, ExitCode::unsupported);
  EXPECT_NE(status.message.find("gpu(0) (sim:9) is not there: sim has 4 devices"), std::string::npos) << status.message;
}

class BadDevices : public testing::TestWithParam<BadList> {};

TEST_P(BadDevices, AreRefusedByName) {
  DeviceOptions devices;
  devices.list = GetParam().list;
  Status status = guarded([&] { ScalerRun("", test::scalerPlan(), devices); });
  EXPECT_EQ(status.code, GetParam().code);
  EXPECT_NE(status.message.find(GetParam().message), std::string::npos) << status.message;
}

static const BadList badLists[] = {
    {"Absent", "sim:9", ExitCode::unsupported, "gpu(0) (sim:9) is not there: sim has 4 devices"},
    {"OfAnotherBackend", "cpu,null:0", ExitCode::unsupported, "null:0 cannot be gpu(0), which was compiled for 'sim'"},
    {"TooMany", "sim:0,sim:1", ExitCode::usage, "has 2 accelerators, and the model was compiled for 1"},
    {"TooFew", "cpu", ExitCode::usage, "has 0 accelerators"},
    {"NoNumber", "sim:one", ExitCode::usage, "'sim:one' is not a device"},
    {"Negative", "sim:-1", ExitCode::usage, "'sim:-1' is not a device"},
    {"Huge", "sim:99999999999", ExitCode::usage, "is not a device"},
    {"NoName", ":0", ExitCode::usage, "':0' is not a device"}};

INSTANTIATE_TEST_SUITE_P(Cases, BadDevices, testing::ValuesIn(badLists),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(Slots, AreFilledInTheirOrderAndByNoDeviceTwice) {
  Plan plan;
  plan.devices = {{"cpu", "cpu", {0}}, {"acc0", "sim", {0}}, {"acc1", "sim", {1}}};
  using Ordinals = std::vector<std::vector<int32_t>>;
  EXPECT_EQ(bindDevices(plan, ""), (Ordinals{{0, 0, 1}}));
  EXPECT_EQ(bindDevices(plan, "sim:1,sim"), (Ordinals{{0, 1, 0}}));
  Status status = guarded([&] { bindDevices(plan, "sim:1,sim:1"); });
  EXPECT_EQ(status.code, ExitCode::usage);
  EXPECT_NE(status.message.find("sim:1 is listed twice"), std::string::npos) << status.message;
}

TEST(Executor, BindsTheDevicesThatAreAskedFor) {
  for (const char *list : {"sim:2", "cpu,sim:2", "cpu:0,sim:2"}) {
    DeviceOptions options;
    options.list = list;
    ScalerRun scaler("", test::scalerPlan(), options);
    scaler.run(8);
    EXPECT_EQ(scaler.state<int32_t>("total"), scaler.total());
    const Devices &devices = scaler.instance().executor().devices();
    EXPECT_EQ(devices.ordinal(1), 2);
    EXPECT_EQ(devices.textOf(1), "gpu(0) (sim:2)");
    EXPECT_EQ(devices.takenBytes(1), 16512);
    sluice_device_info other = devices.context(1).deviceInfo(0);
    EXPECT_EQ(other.free_bytes, other.memory_bytes);
  }
}

TEST(Executor, NamesAnAbsentBackend) {
  Json plan = test::scalerPlan();
  plan["devices"][1]["backend"] = "tpu";
  Status status = started("", plan);
  EXPECT_EQ(status.code, ExitCode::unsupported);
  EXPECT_NE(status.message.find("gpu(0) (tpu:0) is not there"), std::string::npos) << status.message;
}

TEST(Executor, RefusesUnknownSettings) { EXPECT_EQ(started("sed=7", test::scalerPlan()).code, ExitCode::usage); }

TEST(Executor, NotesTimesOfTheVirtualClock) {
  ScalerRun scaler("link=1MB/s,latency=0s");
  WorkTimes &times = scaler.instance().executor().times();
  scaler.instance().synchronize();
  times.start(/*oneByOne=*/true);
  scaler.run(50);
  std::vector<WorkTime> noted = times.take();
  ASSERT_EQ(noted.size(), 5u); // including the refreshed mirror
  const WorkTime &bringX = noted[test::bringX];
  EXPECT_FALSE(bringX.isHostClock);
  EXPECT_EQ(bringX.work.bytes, 200);
  EXPECT_NEAR(bringX.end - bringX.start, 200e-6, 1e-9);
  EXPECT_GE(noted[test::scale].start, bringX.end);
}

TEST(Executor, NotesTimesOfTheHostWhereABackendHasNoClock) {
  static sluice_backend_run withoutClock = findRunHalf("sim", {backends});
  withoutClock.event_times = nullptr;
  DeviceOptions devices;
  devices.backends["sim"] = &withoutClock;
  ScalerRun scaler("", test::scalerPlan(), devices);
  WorkTimes &times = scaler.instance().executor().times();
  times.start(/*oneByOne=*/true);
  scaler.run(50);
  std::vector<WorkTime> noted = times.take();
  ASSERT_EQ(noted.size(), 5u);
  EXPECT_TRUE(std::all_of(noted.begin(), noted.end(), [](const WorkTime &time) { return time.isHostClock; }));
  EXPECT_LE(noted[0].end, noted[1].start);
}

namespace {

/// A simulator that requires note_times, and a record of its calls.
struct ToldSimulator {
  static inline sluice_backend_run sound;
  static inline std::map<sluice_queue *, bool> notes;
  static inline std::vector<bool> wasNoted; ///< for each piece of work, in order

  static void put(sluice_queue *queue) { wasNoted.push_back(notes[queue]); }

  static sluice_backend_run half() {
    sluice_backend_run half = sound = findRunHalf("sim", {backends});
    half.note_times = [](sluice_queue *queue, int on) {
      notes[queue] = on != 0;
      return SLUICE_OK;
    };
    half.copy = [](sluice_queue *queue, const sluice_copy *copy) {
      put(queue);
      return sound.copy(queue, copy);
    };
    half.launch = [](sluice_queue *queue, const sluice_launch *launch) {
      put(queue);
      return sound.launch(queue, launch);
    };
    return half;
  }

  /// The number of pieces of work with times since the last call of this, and of all pieces.
  static std::pair<int64_t, size_t> take() {
    auto noted = std::count(wasNoted.begin(), wasNoted.end(), true);
    return {noted, std::exchange(wasNoted, {}).size()};
  }
  static bool notesAny() {
    return std::any_of(notes.begin(), notes.end(), [](const auto &queue) { return queue.second; });
  }
};

} // namespace

TEST(Executor, HasQueuesNoteTheTimesThatAreAskedForAlone) {
  using Counts = std::pair<int64_t, size_t>;
  static sluice_backend_run told = ToldSimulator::half();
  DeviceOptions devices;
  devices.backends["sim"] = &told;
  ScalerRun scaler("", test::scalerPlan(), devices);
  WorkTimes &times = scaler.instance().executor().times();
  scaler.run(50);
  EXPECT_EQ(ToldSimulator::take().first, 0);
  times.start(/*oneByOne=*/false, /*most=*/2);
  scaler.run(50);
  EXPECT_EQ(ToldSimulator::take(), Counts(4, 4));
  EXPECT_FALSE(ToldSimulator::notesAny());
  scaler.run(50);
  EXPECT_EQ(ToldSimulator::take(), Counts(0, 4)) << "the third call is one more than was asked for";
  EXPECT_EQ(times.take().size(), 4u);
  scaler.run(50);
  EXPECT_EQ(ToldSimulator::take(), Counts(0, 4));
  EXPECT_FALSE(ToldSimulator::notesAny());
}

// Two backends cannot access each other's memory.
TEST(CopyEngine, CopiesBetweenBackendsGoOverTheHost) {
  const sluice_backend_run &sim = findRunHalf("sim", {backends});
  Json json = test::scalerPlan();
  json["devices"].push_back({{"name", "acc1"}, {"backend", "other"}, {"compiled_for", 2}});
  json["arenas"].push_back({{"name", "transient"}, {"device", 2}, {"bytes", 64}});
  json["queues"].push_back({{"name", "acc1.in"}, {"device", 2}, {"kind", "copy"}});
  for (Json &entry : json["entries"])
    entry["peak_bytes"].push_back(64);
  std::string text = json.dump();
  sluice_artifact artifact = test::scaler(text);
  Plan plan = readPlan(artifact);
  Team team(1);
  DeviceOptions options;
  options.backends = {{"sim", &sim}, {"other", &sim}};
  ReplicaGroup group(plan, std::make_shared<DevicePool>(), options);
  Devices devices(plan, artifact, team, group, /*replica=*/0);
  WorkTimes times;
  CopyEngine copies(devices, times);
  int32_t there = 42, back = 0;
  std::string label = "answer";
  std::byte *first = devices.arena(3), *second = devices.arena(4);

  copies.copy(2, {{0, 1, "use"}, reinterpret_cast<std::byte *>(&there), first, 4, label}, {});
  devices.synchronize();
  copies.copy(4, {{1, 2, "use"}, first, second, 4, label}, {});
  copies.copy(4, {{2, 0, "use"}, second, reinterpret_cast<std::byte *>(&back), 4, label}, {});
  devices.synchronize();

  EXPECT_EQ(back, 42);
  EXPECT_EQ((byPair(copies.counts())[{1, 0}]), (CopyCount{1, 4}));
  EXPECT_EQ((byPair(copies.counts())[{0, 2}]), (CopyCount{1, 4}));
}
