// Failures of replicas: one is late, fails, or cannot exchange.
#include "AveragerRun.h"
#include "runtime/base/Status.h"
#include "runtime/plugins/BackendLoader.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

using namespace sluice;
using namespace sluice::runtime;
using test::AveragerRun;
using test::Json;

namespace {

/// The simulator with a hook before each launch on a device; records exchanges.
struct Meddling {
  const sluice_backend_run &sound = findRunHalf("sim", {SLUICE_BINARY_DIR "/lib/sluice/backends"});
  sluice_backend_run half = sound;
  sluice_backend_collectives collectives = *sound.collectives;
  /// By device and launch number on it; a status other than OK becomes the launch's result.
  std::function<sluice_status(int32_t device, int number, const sluice_call &call)> before =
      [](int32_t, int, const sluice_call &) { return SLUICE_OK; };
  std::mutex mutex;
  std::map<sluice_queue *, int32_t> devices; ///< by queue
  std::map<int32_t, int> launches;           ///< launch counts by device
  std::map<sluice_communicator *, int32_t> ranks;
  std::map<int32_t, sluice_exchange> exchanges; ///< last exchange by rank
  std::map<int32_t, int> exchanged;
  std::function<bool(int32_t rank, int number)> isDropped = [](int32_t, int) { return false; }; ///< exchanges to drop
};

Meddling *meddling = nullptr;
thread_local bool isPlanted = false; // the last error was injected

sluice_status createQueue(sluice_run *run, int32_t device, sluice_queue_kind kind, const char *name,
                          sluice_queue **queue) {
  sluice_status status = meddling->sound.queue_create(run, device, kind, name, queue);
  std::lock_guard lock(meddling->mutex);
  meddling->devices[*queue] = device;
  return status;
}

sluice_status meddledLaunch(sluice_queue *queue, const sluice_launch *launch) {
  std::unique_lock lock(meddling->mutex);
  int32_t device = meddling->devices[queue];
  int number = meddling->launches[device]++;
  lock.unlock();
  sluice_status status = meddling->before(device, number, *launch->call);
  isPlanted = status != SLUICE_OK;
  return isPlanted ? status : meddling->sound.launch(queue, launch);
}

const char *meddledError(sluice_run *run) { return isPlanted ? "a planted failure" : meddling->sound.last_error(run); }

sluice_status meddledInit(sluice_run *run, const sluice_communicator_options *options, sluice_communicator **made) {
  sluice_status status = meddling->sound.collectives->init(run, options, made);
  std::lock_guard lock(meddling->mutex);
  meddling->ranks[*made] = options->rank;
  return status;
}

sluice_status notedExchange(sluice_communicator *of, sluice_queue *queue, const sluice_exchange *exchange) {
  std::unique_lock lock(meddling->mutex);
  int32_t rank = meddling->ranks[of];
  meddling->exchanges[rank] = *exchange;
  int number = meddling->exchanged[rank]++;
  lock.unlock();
  if (meddling->isDropped(rank, number))
    return SLUICE_OK;
  return meddling->sound.collectives->exchange(of, queue, exchange);
}

sluice_status miscounted(sluice_communicator *of, int32_t kind, int64_t *exchanges, int64_t *bytes) {
  sluice_status status = meddling->sound.collectives->counts(of, kind, exchanges, bytes);
  *bytes += kind == SLUICE_ALL_REDUCE && meddling->ranks[of] == 1 ? 1 : 0;
  return status;
}

class MeddledReplicas : public testing::Test {
protected:
  MeddledReplicas() {
    meddling = &meddling_;
    meddling_.half.queue_create = createQueue;
    meddling_.half.launch = meddledLaunch;
    meddling_.half.last_error = meddledError;
    meddling_.half.collectives = &meddling_.collectives;
    meddling_.collectives.init = meddledInit;
    meddling_.collectives.exchange = notedExchange;
  }
  ~MeddledReplicas() override { meddling = nullptr; }

  DeviceOptions options() {
    DeviceOptions devices;
    devices.backends["sim"] = &meddling_.half;
    return devices;
  }

  Meddling meddling_;
};

/// If the simulator does not run the host's work, the host waits in each call for the mean, and so for all replicas.
class FailingReplicas : public MeddledReplicas, public testing::WithParamInterface<std::tuple<int, bool>> {};

} // namespace

using LateReplicas = MeddledReplicas;

TEST_F(LateReplicas, AreWaitedFor) {
  meddling_.before = [](int32_t device, int number, const sluice_call &) {
    if (device == 1 && number % 5 == 2)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return SLUICE_OK;
  };
  AveragerRun run(3, "seed=4", nullptr, options());
  for (int i = 0; i < 12; ++i)
    run.run(64 - i);
  EXPECT_EQ(run.loss(53), run.expectedMean);
  EXPECT_EQ(run.state("weight", 2), run.expectedWeight);
}

TEST_P(FailingReplicas, EndTheOthersWithTheCause) {
  int device = std::get<0>(GetParam());
  bool takesHost = std::get<1>(GetParam());
  meddling_.half.takes_host_queues = takesHost;
  meddling_.before = [device](int32_t on, int number, const sluice_call &) {
    return on == device && number == 7 ? SLUICE_EXHAUSTED : SLUICE_OK;
  };
  AveragerRun run(3, "seed=4", nullptr, options());
  Status status = guarded([&] {
    for (int i = 0; i < 12; ++i)
      run.run(64);
    run.instance().synchronize();
  });
  EXPECT_EQ(status.code, ExitCode::exhausted);
  EXPECT_EQ(status.message, "replica " + std::to_string(device) + ": sim: a planted failure");
  Status again = guarded([&] { run.run(64); });
  EXPECT_EQ(again.code, ExitCode::exhausted);
  EXPECT_EQ(again.message, status.message);
}

INSTANTIATE_TEST_SUITE_P(Devices, FailingReplicas, testing::Combine(testing::Range(0, 3), testing::Bool()));

/// One replica stays away from a step's exchange until the test releases it; replicas that are late for less time are
/// waited for.
class StuckReplicas : public MeddledReplicas, public testing::WithParamInterface<int> {
protected:
  StuckReplicas() {
    int stuck = GetParam();
    meddling_.before = [this, stuck](int32_t device, int number, const sluice_call &) {
      if (device == (stuck + 1) % 3 && number % 5 == 2)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (device == stuck && number == 7)
        released_.get_future().wait();
      return SLUICE_OK;
    };
  }

  Status runWith(const DeviceOptions &devices) {
    AveragerRun run(3, "seed=4", nullptr, devices);
    return guarded([&] {
      for (int i = 0; i < 12; ++i)
        run.run(64);
    });
  }

  std::promise<void> released_;
  const std::string late_ =
      "replica " + std::to_string(GetParam()) + " has not come to all_reduce of sum, model.cpp:2:1 within 0.3 s";
};

TEST_P(StuckReplicas, AreNamedWithTheCollective) {
  DeviceOptions devices = options();
  devices.deadline = 0.3;
  Status told;
  devices.onLate = [&](const Error &error) {
    told = {error.code(), error.what()};
    released_.set_value();
  };
  Status status = runWith(devices);
  EXPECT_EQ(told.code, ExitCode::deadline);
  EXPECT_EQ(told.message, late_);
  EXPECT_EQ(status.code, ExitCode::deadline);
  EXPECT_EQ(status.message, late_);
}

TEST_P(StuckReplicas, EndTheOthersWhenTheyComeAfterAll) {
  DeviceOptions devices = options();
  devices.deadline = 0.3;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(900));
    released_.set_value();
  });
  Status status = runWith(devices);
  other.join();
  EXPECT_EQ(status.code, ExitCode::deadline);
  EXPECT_EQ(status.message, late_);
}

TEST_P(StuckReplicas, AreWaitedForWithoutADeadline) {
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    released_.set_value();
  });
  Status status = runWith(options());
  other.join();
  EXPECT_TRUE(status.ok()) << status.message;
}

INSTANTIATE_TEST_SUITE_P(Devices, StuckReplicas, testing::Range(0, 3));

using StuckDevices = MeddledReplicas;

/// One device never runs its sixth step's exchange and its later work.
TEST_F(StuckDevices, AreNamedWithTheCollective) {
  meddling_.isDropped = [](int32_t rank, int number) { return rank == 1 && number >= 5; };
  DeviceOptions devices = options();
  devices.deadline = 0.3;
  AveragerRun run(3, "seed=4", nullptr, devices);
  Status status = guarded([&] {
    for (int i = 0; i < 6; ++i)
      run.run(64);
    run.instance().synchronize();
  });
  EXPECT_EQ(status.code, ExitCode::deadline);
  EXPECT_NE(status.message.find("all-reduce of sum, model.cpp:2:1 of rank "), std::string::npos) << status.message;
  EXPECT_NE(status.message.find("waits for rank 1"), std::string::npos) << status.message;
}

TEST(Attendance, NamesAllThatAreLate) {
  Attendance attendance(4);
  std::string first = "broadcast of a", second = "all_reduce of b";
  EXPECT_EQ(attendance.awaited(), std::nullopt);
  attendance.come(0, first);
  attendance.come(2, first);
  attendance.come(0, second);
  EXPECT_EQ(attendance.awaited(), 0u);
  EXPECT_EQ(attendance.whoIsLate(0), "replicas 1, 3 have not come to broadcast of a");
  attendance.come(1, first);
  attendance.come(3, first);
  EXPECT_EQ(attendance.whoIsLate(0), "replicas 0, 1, 2, 3 have not come back from broadcast of a");
  for (size_t replica : {0, 1, 3})
    attendance.go(replica);
  EXPECT_EQ(attendance.whoIsLate(0), "replica 2 has not come back from broadcast of a");
  attendance.go(2);
  EXPECT_EQ(attendance.whoIsLate(0), "");
  EXPECT_EQ(attendance.awaited(), 1u);
  EXPECT_EQ(attendance.whoIsLate(1), "replicas 1, 2, 3 have not come to all_reduce of b");
}

/// A consequence of another replica's end is not reported as the cause, even if it is reported first.
TEST_F(MeddledReplicas, TellTheCauseAndNotTheEndOfAnother) {
  meddling_.before = [](int32_t device, int number, const sluice_call &) {
    // The third launch precedes the exchange of the second step; host launches are not counted.
    if (number != 3 || (device != 0 && device != 1))
      return SLUICE_OK;
    if (device == 0)
      return SLUICE_PEER_LOST;
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    return SLUICE_INVALID;
  };
  AveragerRun run(3, "seed=4", nullptr, options());
  Status status = guarded([&] {
    for (int i = 0; i < 12; ++i)
      run.run(64);
  });
  EXPECT_EQ(status.code, ExitCode::invalid);
  EXPECT_EQ(status.message, "replica 1: sim: a planted failure");
}

using SharingReplicas = MeddledReplicas;

TEST_F(SharingReplicas, TellLaunchesWhichRowsTheirsAre) {
  std::map<int32_t, std::tuple<int64_t, int64_t, int64_t>> last;
  meddling_.before = [&](int32_t device, int, const sluice_call &call) {
    std::lock_guard lock(meddling_.mutex);
    last[device] = {call.rows, call.first_row, call.global_rows};
    return SLUICE_OK;
  };
  AveragerRun run(5, "seed=4", nullptr, options());
  run.run(3);
  EXPECT_EQ(last[0], std::tuple(1, 0, 3));
  EXPECT_EQ(last[2], std::tuple(1, 2, 3));
  EXPECT_EQ(last[4], std::tuple(0, 3, 3));
}

/// The exchange of replica 1 in a plan with a collective of this kind.
struct Exchanged {
  const sluice_exchange exchange;
  ptrdiff_t receivedAfterSent;
};

static Exchanged exchangedBy(Meddling &meddling, const DeviceOptions &options, const char *kind, bool inPlace) {
  Json plan = test::averagerPlan(3);
  Json &collective = plan["entries"][1]["actions"][test::reduce]["collective"];
  collective["kind"] = kind;
  collective["reduction"] = "max";
  collective["root"] = 2;
  collective["send"]["bytes"] = collective["receive"]["bytes"] = 24;
  if (!inPlace)
    collective["receive"]["offset"] = 640;
  AveragerRun run(3, "seed=4", &plan, options);
  run.run(64);
  const sluice_exchange &made = meddling.exchanges.at(1);
  return {made, static_cast<const std::byte *>(made.receive) - static_cast<const std::byte *>(made.send)};
}

TEST_F(SharingReplicas, ExchangeAsThePlanSays) {
  auto exchanged = [&](const char *kind, bool inPlace) { return exchangedBy(meddling_, options(), kind, inPlace); };
  sluice_exchange made = exchanged("broadcast", true).exchange;
  EXPECT_EQ(made.kind, SLUICE_BROADCAST);
  EXPECT_EQ(made.root, 2);
  EXPECT_EQ(made.dtype, SLUICE_DTYPE_f64);
  EXPECT_EQ(made.count, 1u);
  made = exchanged("all_reduce", true).exchange;
  EXPECT_EQ(made.kind, SLUICE_ALL_REDUCE);
  EXPECT_EQ(made.reduction, SLUICE_MAX);
  EXPECT_EQ(exchanged("all_gather", false).exchange.kind, SLUICE_ALL_GATHER);
  EXPECT_EQ(exchanged("reduce_scatter", false).exchange.kind, SLUICE_REDUCE_SCATTER);
}

TEST_F(SharingReplicas, ExchangeInPlaceAtTheirPlaces) {
  auto distance = [&](const char *kind, bool inPlace) {
    return exchangedBy(meddling_, options(), kind, inPlace).receivedAfterSent;
  };
  EXPECT_EQ(distance("all_reduce", true), 0);
  EXPECT_EQ(distance("broadcast", true), 0);
  EXPECT_EQ(distance("all_gather", true), -8);
  EXPECT_EQ(distance("reduce_scatter", true), 8);
  EXPECT_EQ(distance("all_gather", false), 640 - 768);
  EXPECT_EQ(distance("reduce_scatter", false), 640 - 768);
}

using UnconnectedReplicas = MeddledReplicas;

TEST_F(UnconnectedReplicas, AreRefusedByBackendAndDevice) {
  meddling_.half.collectives = nullptr;
  Status status = guarded([&] { AveragerRun(2, "seed=4", nullptr, options()); });
  EXPECT_EQ(status.code, ExitCode::unsupported);
  EXPECT_EQ(status.message, "cannot run replicas on gpu(0) (sim:0): backend 'sim' has no collectives");
  EXPECT_TRUE(guarded([&] { AveragerRun(1, "seed=4", nullptr, options()); }).ok());
}

/// Without a group, the simulator's contexts act as separate machines, whose ranks cannot connect.
TEST_F(UnconnectedReplicas, AreToldThatTheyDoNotMeet) {
  meddling_.half.group_create = nullptr;
  meddling_.half.group_destroy = nullptr;
  Status status = guarded([&] { AveragerRun(2, "seed=4", nullptr, options()); });
  EXPECT_EQ(status.code, ExitCode::usage);
  EXPECT_NE(status.message.find("replica 1: rank 1 of 2 of sim: sim: the id was not made by a context of this group"),
            std::string::npos)
      << status.message;
}

using MiscountingReplicas = MeddledReplicas;

TEST_F(MiscountingReplicas, AreFoundOut) {
  meddling_.collectives.counts = miscounted;
  AveragerRun run(2, "seed=4", nullptr, options());
  run.run(64);
  std::vector<CollectiveReport> reports = run.instance().collectives();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_TRUE(reports[0].differs());
  EXPECT_EQ(reports[0].counted, (CollectiveCount{1, 9}));
}

TEST_F(UnconnectedReplicas, NameTheReplicaWhoseDeviceIsAbsent) {
  DeviceOptions devices = options();
  devices.list = "sim:0,sim:9";
  Status status = guarded([&] { AveragerRun(2, "seed=4", nullptr, devices); });
  EXPECT_EQ(status.code, ExitCode::unsupported);
  EXPECT_EQ(status.message, "replica 1: device gpu(0) (sim:9) is not there: sim has 8 devices");
}
