// Replicas of which one is late, fails, or cannot exchange.
#include "AveragerRun.h"
#include "runtime/base/Status.h"
#include "runtime/device/BackendLoader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

using namespace sluice;
using namespace sluice::runtime;
using test::AveragerRun;
using test::Json;

namespace {

/// The simulator, of which launches on one device do something of their own first.
struct Meddling {
  const sluice_backend_run &sound = findRunHalf("sim", {SLUICE_BINARY_DIR "/lib/sluice/backends"});
  sluice_backend_run half = sound;
  int32_t device = 1;                              ///< whose launches
  std::function<sluice_status(int launch)> before; ///< by the number of the launch; what is not OK is its result
  std::map<sluice_queue *, int32_t> devices;       ///< of queues
  std::mutex mutex;
  std::atomic<int> launches = 0;
  std::atomic<bool> failed = false;
};

Meddling *meddling = nullptr;

sluice_status createQueue(sluice_run *run, int32_t device, sluice_queue_kind kind, const char *name,
                          sluice_queue **queue) {
  sluice_status status = meddling->sound.queue_create(run, device, kind, name, queue);
  std::lock_guard lock(meddling->mutex);
  meddling->devices[*queue] = device;
  return status;
}

sluice_status meddledLaunch(sluice_queue *queue, const sluice_launch *launch) {
  bool isIts = false;
  {
    std::lock_guard lock(meddling->mutex);
    isIts = meddling->devices[queue] == meddling->device;
  }
  sluice_status status = isIts ? meddling->before(meddling->launches++) : SLUICE_OK;
  if (status != SLUICE_OK)
    meddling->failed = true;
  return status == SLUICE_OK ? meddling->sound.launch(queue, launch) : status;
}

const char *meddledError(sluice_run *run) {
  std::string sound = meddling->sound.last_error(run);
  return sound.empty() && meddling->failed ? "a planted failure" : meddling->sound.last_error(run);
}

class MeddledReplicas : public testing::Test {
protected:
  MeddledReplicas() {
    meddling = &meddling_;
    meddling_.half.queue_create = createQueue;
    meddling_.half.launch = meddledLaunch;
    meddling_.half.last_error = meddledError;
  }
  ~MeddledReplicas() override { meddling = nullptr; }

  DeviceOptions options() {
    DeviceOptions devices;
    devices.backends["sim"] = &meddling_.half;
    return devices;
  }

  Meddling meddling_;
};

/// The host waits for the mean in each call, and so for all replicas, if the simulator does not take its work.
class FailingReplicas : public MeddledReplicas, public testing::WithParamInterface<std::tuple<int, bool>> {};

} // namespace

using LateReplicas = MeddledReplicas;

TEST_F(LateReplicas, AreWaitedFor) {
  meddling_.before = [](int launch) {
    if (launch % 5 == 2)
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
  auto [device, takesHost] = GetParam();
  meddling_.device = device;
  meddling_.half.takes_host_queues = takesHost;
  meddling_.before = [](int launch) { return launch == 7 ? SLUICE_EXHAUSTED : SLUICE_OK; };
  AveragerRun run(3, "seed=4", nullptr, options());
  Status status = guarded([&] {
    for (int i = 0; i < 12; ++i)
      run.run(64);
    run.instance().synchronize();
  });
  EXPECT_EQ(status.code, ExitCode::exhausted);
  std::string begin = "replica " + std::to_string(device) + ": sim: ";
  EXPECT_EQ(status.message.substr(0, begin.size()), begin);
  Status again = guarded([&] { run.run(64); });
  EXPECT_EQ(again.code, ExitCode::exhausted);
  EXPECT_EQ(again.message, status.message);
}

INSTANTIATE_TEST_SUITE_P(Devices, FailingReplicas, testing::Combine(testing::Range(0, 3), testing::Bool()));

using UnconnectedReplicas = MeddledReplicas;

TEST_F(UnconnectedReplicas, AreRefusedByBackendAndDevice) {
  meddling_.before = [](int) { return SLUICE_OK; };
  meddling_.half.collectives = nullptr;
  Status status = guarded([&] { AveragerRun(2, "seed=4", nullptr, options()); });
  EXPECT_EQ(status.code, ExitCode::unsupported);
  EXPECT_EQ(status.message, "backend 'sim' has no collectives, and replicas of acc0 (sim:0) exchange");
  EXPECT_TRUE(guarded([&] { AveragerRun(1, "seed=4", nullptr, options()); }).ok());
}

/// Without a group the simulator's contexts are machines of their own, whose ranks do not meet.
TEST_F(UnconnectedReplicas, AreToldThatTheyDoNotMeet) {
  meddling_.before = [](int) { return SLUICE_OK; };
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
  static sluice_backend_collectives table;
  table = *meddling_.sound.collectives;
  table.counts = [](sluice_communicator *of, int32_t kind, int64_t *exchanges, int64_t *bytes) {
    sluice_status status = meddling->sound.collectives->counts(of, kind, exchanges, bytes);
    *bytes += kind == SLUICE_ALL_REDUCE ? 1 : 0;
    return status;
  };
  meddling_.before = [](int) { return SLUICE_OK; };
  meddling_.half.collectives = &table;
  AveragerRun run(2, "seed=4", nullptr, options());
  run.run(64);
  std::vector<CollectiveReport> reports = run.instance().collectives();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_TRUE(reports[0].differs());
  EXPECT_EQ(reports[0].counted, (CollectiveCount{1, 9}));
}

TEST_F(UnconnectedReplicas, NameTheReplicaWhoseDeviceIsAbsent) {
  meddling_.before = [](int) { return SLUICE_OK; };
  DeviceOptions devices = options();
  devices.list = "sim:0,sim:9";
  Status status = guarded([&] { AveragerRun(2, "seed=4", nullptr, devices); });
  EXPECT_EQ(status.code, ExitCode::unsupported);
  EXPECT_EQ(status.message, "replica 1: device acc0 (sim:9) is not there: sim has 8 devices");
}
