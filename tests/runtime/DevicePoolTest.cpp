// A pool's backends, memory and threads outlive the programs that use them.
#include "runtime/device/DevicePool.h"
#include "ScalerRun.h"
#include "runtime/base/Status.h"
#include "runtime/plugins/BackendLoader.h"
#include "sluice/runtime/api.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>

using namespace sluice;
using namespace sluice::runtime;
using test::ScalerRun;

namespace {

/// The bytes of the plan on its accelerator, with those of its output logs.
constexpr int64_t planBytes = 16512;

std::shared_ptr<DevicePool> newPool() { return std::make_shared<DevicePool>(); }

std::unique_ptr<ScalerRun> newScaler(const std::shared_ptr<DevicePool> &pool, const std::string &settings = "",
                                     DeviceOptions devices = {}) {
  return std::make_unique<ScalerRun>(settings, test::scalerPlan(), std::move(devices), pool);
}

/// The memory of a device, for all settings.
MemoryCount memoryOf(const DevicePool &pool, const std::string &backend, int32_t device) {
  MemoryCount sum;
  for (const DevicePool::DeviceMemoryCount &its : pool.memory())
    if (its.backend == backend && its.device == device) {
      sum.inUse += its.count.inUse;
      sum.held += its.count.held;
      sum.allocations += its.count.allocations;
    }
  return sum;
}

std::ptrdiff_t entriesOf(const char *folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

/// Runs the program for several calls, and checks its result.
void expectRuns(ScalerRun &scaler) {
  for (int64_t rows : {5, 64, 1})
    scaler.run(rows);
  EXPECT_EQ(scaler.state<int32_t>("total"), scaler.total());
}

/// A simulator that loses the device when the host waits for the queue of a launch.
struct Losing {
  sluice_backend_run half = findRunHalf("sim", {SLUICE_BINARY_DIR "/lib/sluice/backends"});
  static inline decltype(sluice_backend_run::launch) launch;
  static inline bool isLost = false;

  Losing() {
    launch = half.launch;
    half.launch = [](sluice_queue *queue, const sluice_launch *its) {
      return isLost ? SLUICE_EXHAUSTED : launch(queue, its);
    };
  }
};

} // namespace

TEST(DevicePool, ReusesMemoryWithoutTheDriver) {
  auto pool = newPool();
  expectRuns(*newScaler(pool));
  MemoryCount first = memoryOf(*pool, "sim", 0), firstOfHost = memoryOf(*pool, "sim", SLUICE_HOST);
  EXPECT_EQ(first.inUse, 0);
  EXPECT_EQ(first.held, planBytes);
  EXPECT_EQ(first.allocations, 1);
  EXPECT_GT(firstOfHost.held, 0);
  for (int i = 0; i < 20; ++i)
    expectRuns(*newScaler(pool)); // its states begin with zeros
  EXPECT_EQ(memoryOf(*pool, "sim", 0).allocations, 1);
  EXPECT_EQ(memoryOf(*pool, "sim", 0).held, planBytes);
  EXPECT_EQ(memoryOf(*pool, "sim", SLUICE_HOST).allocations, firstOfHost.allocations);
}

TEST(DevicePool, CountsMemoryInUse) {
  auto pool = newPool();
  auto one = newScaler(pool), other = newScaler(pool);
  EXPECT_EQ(memoryOf(*pool, "sim", 0).inUse, 2 * planBytes);
  one.reset();
  EXPECT_EQ(memoryOf(*pool, "sim", 0).inUse, planBytes);
  EXPECT_EQ(memoryOf(*pool, "sim", 0).held, 2 * planBytes);
  pool->trim();
  EXPECT_EQ(memoryOf(*pool, "sim", 0).held, planBytes);
  expectRuns(*other);
}

/// The programs of an instance see zeros, whatever an earlier program wrote.
TEST(DevicePool, MemoryIsZeroAgain) {
  PooledBackend backend("sim", findRunHalf("sim", {SLUICE_BINARY_DIR "/lib/sluice/backends"}), "", nullptr);
  Team team(1);
  DeviceContext context(backend, team);
  DeviceQueue queue(context, 0, SLUICE_QUEUE_COMPUTE, "queue");
  for (int round = 0; round < 3; ++round) {
    DeviceMemory memory(context, 0, 4096, "a block");
    std::vector<std::byte> found(4096, std::byte(1)), written(4096, std::byte(7));
    queue.copy({sizeof(sluice_copy), 0, SLUICE_HOST, memory.data(), found.data(), 4096, "read"});
    queue.copy({sizeof(sluice_copy), SLUICE_HOST, 0, written.data(), memory.data(), 4096, "write"});
    queue.synchronize();
    EXPECT_EQ(found, std::vector<std::byte>(4096));
  }
  EXPECT_EQ(backend.memory()->counts().at(0).allocations, 1);
}

TEST(DevicePool, ALargeBlockServesNoRequestBelowHalfItsSize) {
  PooledBackend backend("sim", findRunHalf("sim", {SLUICE_BINARY_DIR "/lib/sluice/backends"}), "", nullptr);
  MemoryPool &pool = *backend.memory();
  constexpr size_t large = size_t(16) << 20;
  pool.give(0, pool.take(0, large, "a block"));
  MemoryBlock small = pool.take(0, large / 4, "a block"), half = pool.take(0, large / 2, "a block");
  EXPECT_EQ(small.bytes, large / 4);
  EXPECT_EQ(half.bytes, large);
  EXPECT_EQ(pool.counts().at(0).allocations, 2);
  pool.give(0, small);
  pool.give(0, half);
}

TEST(DevicePool, OtherSettingsAreOtherDevices) {
  auto pool = newPool();
  auto one = newScaler(pool, "seed=1"), other = newScaler(pool, "seed=2,memory=20kB");
  expectRuns(*one);
  expectRuns(*other);
  ASSERT_EQ(pool->memory().size(), 4u); // an accelerator and host memory, twice
  for (const DevicePool::DeviceMemoryCount &its : pool->memory())
    if (its.device == 0 && its.backend == "sim")
      EXPECT_EQ(its.count.inUse, planBytes) << its.settings;
}

TEST(DevicePool, GoesOnAfterMemoryIsExhausted) {
  auto pool = newPool();
  auto one = newScaler(pool, "memory=20kB");
  Status status = guarded([&] { newScaler(pool, "memory=20kB"); });
  EXPECT_EQ(status.code, ExitCode::exhausted);
  for (const char *part : {"gpu(0) (sim:0)", "16512 bytes were asked for", "3488 of 20000 are free"})
    EXPECT_NE(status.message.find(part), std::string::npos) << status.message;
  expectRuns(*one);
  one.reset();
  expectRuns(*newScaler(pool, "memory=20kB"));
}

TEST(DevicePool, ReturnsUnusedMemoryBeforeAnAllocationFails) {
  PooledBackend backend("sim", findRunHalf("sim", {SLUICE_BINARY_DIR "/lib/sluice/backends"}), "memory=8MB", nullptr);
  MemoryPool &pool = *backend.memory();
  pool.give(0, pool.take(0, 6'000'000, "a block"));
  MemoryBlock larger = pool.take(0, 7'000'000, "a block");
  EXPECT_EQ(pool.counts().at(0).held, 7'000'000);
  pool.give(0, larger);
}

TEST(DevicePool, CopiesAreCountedForEachProgram) {
  auto pool = newPool();
  auto one = newScaler(pool), other = newScaler(pool);
  auto up = [](ScalerRun &scaler) {
    for (const PairCount &pair : scaler.instance().copies())
      if (pair.from == 0 && pair.to == 1)
        return pair.count;
    return CopyCount{};
  };
  for (int i = 0; i < 3; ++i) {
    one->run(10);
    other->run(20);
    one->run(10);
  }
  EXPECT_EQ(up(*one), (CopyCount{7, 4 + 6 * 40}));
  EXPECT_EQ(up(*other), (CopyCount{4, 4 + 3 * 80}));
  EXPECT_EQ(up(*newScaler(pool)), (CopyCount{}));
}

TEST(DevicePool, OpensALostBackendAgain) {
  Losing losing;
  DeviceOptions devices;
  devices.backends["sim"] = &losing.half;
  auto pool = newPool();
  auto one = newScaler(pool, "", devices);
  Losing::isLost = true;
  Status status = guarded([&] { one->run(4); });
  Losing::isLost = false;
  EXPECT_EQ(status.code, ExitCode::exhausted);
  auto other = newScaler(pool, "", devices);
  EXPECT_EQ(memoryOf(*pool, "sim", 0).allocations, 1) << "of the backend that was opened again";
  one.reset();
  expectRuns(*other);
}

TEST(DevicePool, ManyProgramsUseNoMoreThreadsAndFilesThanOne) {
  auto pool = newPool();
  expectRuns(*newScaler(pool));
  std::ptrdiff_t threads = entriesOf("/proc/self/task"), files = entriesOf("/proc/self/fd");
  for (int i = 0; i < 50; ++i)
    expectRuns(*newScaler(pool));
  EXPECT_EQ(entriesOf("/proc/self/task"), threads);
  EXPECT_EQ(entriesOf("/proc/self/fd"), files);
}

TEST(DevicePool, TeamsAreForOneUserAtATime) {
  auto pool = newPool();
  std::shared_ptr<Team> one = pool->team(2), other = pool->team(2);
  EXPECT_NE(one, other);
  Team *its = one.get();
  one.reset();
  EXPECT_NE(pool->team(3).get(), its);
  EXPECT_EQ(pool->team(2).get(), its);
  pool.reset(); // before `other`
}

TEST(DevicePoolOfC, IsSharedByInstancesThatOutliveIt) {
  std::string plan = test::scalerPlan().dump();
  sluice_artifact artifact = test::scaler(plan);
  setenv("SLUICE_BACKEND_PATH", SLUICE_BINARY_DIR "/lib/sluice/backends", 1);
  sluice_pool *pool = nullptr;
  ASSERT_EQ(sluice_pool_create(&pool), 0);
  sluice_instance_options options{sizeof options, 1, "sim=seed=3", nullptr, pool};
  sluice_pool_memory memory{sizeof memory, -1, -1, -1};
  for (int i = 0; i < 3; ++i) {
    sluice_instance *instance = nullptr;
    ASSERT_EQ(sluice_instance_create(&artifact, &options, &instance), 0) << sluice_last_error();
    ASSERT_EQ(sluice_pool_get_memory(pool, "sim:0", &memory), 0);
    EXPECT_EQ(memory.bytes_in_use, planBytes);
    sluice_instance_destroy(instance);
  }
  ASSERT_EQ(sluice_pool_get_memory(pool, "sim:0", &memory), 0);
  EXPECT_EQ(memory.bytes_in_use, 0);
  EXPECT_EQ(memory.driver_allocations, 1);
  EXPECT_EQ(sluice_pool_trim(pool), 0);
  ASSERT_EQ(sluice_pool_get_memory(pool, "sim:0", &memory), 0);
  EXPECT_EQ(memory.bytes_held, 0);
  sluice_instance *instance = nullptr;
  ASSERT_EQ(sluice_instance_create(&artifact, &options, &instance), 0);
  sluice_pool_destroy(pool);
  EXPECT_EQ(sluice_instance_run(instance, "init", 1), 0) << sluice_last_error();
  sluice_instance_destroy(instance);
}

TEST(DevicePoolOfC, ErrorsNameTheArgument) {
  sluice_pool_memory memory{8, 0, 0, 0};
  EXPECT_EQ(sluice_pool_create(nullptr), 2);
  EXPECT_STREQ(sluice_last_error(), "pool is null");
  EXPECT_EQ(sluice_pool_get_memory(nullptr, "sim:0", &memory), 2);
  EXPECT_STREQ(sluice_last_error(), "memory.struct_size is 8, and must be at least 32");
  EXPECT_EQ(sluice_pool_get_memory(nullptr, nullptr, &memory), 2);
  EXPECT_STREQ(sluice_last_error(), "device is null");
}
