// Threads that load and run programs concurrently, each with a pool or all with the same. Under preset tsan this test
// finds data races of the runtime and of the backends cpu and sim.
#include "AveragerRun.h"
#include "LogisticRegression.h"
#include "ScalerRun.h"
#include "runtime/base/Status.h"
#include "sluice/backend/host.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

using namespace sluice;
using namespace sluice::runtime;

namespace {

using Pool = std::shared_ptr<DevicePool>;

/// The bits of a state after some steps on the host, with several threads.
std::vector<std::byte> trainOnHost(const Pool &pool) {
  static const std::string plan = test::logisticRegressionPlan();
  sluice_artifact artifact = test::logisticRegression(plan);
  Instance instance(artifact, pool, {2, ""});
  std::vector<int32_t> key{0, 5};
  const Entry &init = instance.entry("init"), &step = instance.entry("train_step");
  instance.setInput(init.inputs[0], std::as_bytes(std::span(key)), 1);
  instance.run(init, 1);
  std::vector<uint8_t> images(test::capacity * test::pixels, 7);
  std::vector<int32_t> labels(test::capacity, 3);
  for (int i = 0; i < 4; ++i) {
    instance.setInput(step.inputs[0], std::as_bytes(std::span(images)), test::capacity);
    instance.setInput(step.inputs[1], std::as_bytes(std::span(labels)), test::capacity);
    instance.run(step, test::capacity);
  }
  const State &weight = instance.plan().states.front();
  std::vector<std::byte> bits(static_cast<size_t>(weight.logicalBytes()));
  instance.getState(weight, bits);
  return bits;
}

/// Calls on an accelerator. `settings` are those of the simulator.
void runOnAccelerator(const Pool &pool, const std::string &settings) {
  test::ScalerRun scaler(settings, test::scalerPlan(), {}, pool);
  for (int64_t rows : {5, 64, 1, 33})
    scaler.run(rows);
  ASSERT_EQ(scaler.output(0), scaler.sums().back());
  ASSERT_EQ(scaler.state<int32_t>("total"), scaler.total());
}

/// Two replicas, which exchange.
void runReplicas(const Pool &pool) {
  test::AveragerRun averager(2, "seed=1", nullptr, {}, pool);
  for (int64_t rows : {7, 64})
    averager.run(rows);
  ASSERT_EQ(averager.state("weight"), averager.expectedWeight);
}

/// The programs of one thread, one after another and some at the same time.
void runPrograms(const Pool &pool, const std::vector<std::byte> &expected) {
  for (int round = 0; round < 4; ++round) {
    test::ScalerRun open("seed=2", test::scalerPlan(), {}, pool);
    runOnAccelerator(pool, "seed=2");
    runOnAccelerator(pool, "seed=3,link=1GB/s");
    ASSERT_EQ(trainOnHost(pool), expected);
    runReplicas(pool);
    open.run(9);
    ASSERT_EQ(open.state<int32_t>("total"), open.total());
  }
}

/// Opens contexts and allocates, many times and without work, so that the calls of threads overlap.
void openAndAllocate(const Pool &pool, int thread) {
  static const std::vector<std::string> folders{SLUICE_BINARY_DIR "/lib/sluice/backends"};
  for (int round = 0; round < 200; ++round) {
    bool isHost = round % 2 == 0;
    const sluice_backend_run &half = isHost ? *sluice_host_backend()->run : pool->findHalf("sim", folders);
    auto backend = pool->backend(isHost ? "cpu" : "sim", half, "");
    std::shared_ptr<Team> team = pool->team(1 + round % 2);
    DeviceContext context(*backend, *team);
    DeviceMemory some(context, 0, 4096, "a block"), more(context, 0, size_t(64) << (round + thread) % 10, "a block");
    EXPECT_NE(some.data(), more.data());
    if (round % 50 == 0)
      pool->trim();
    EXPECT_GE(pool->memory().size(), 1u);
  }
}

void inTwoThreads(const std::function<Pool()> &poolOfThread, const std::function<void(const Pool &, int)> &body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&, i, pool = poolOfThread()] {
      Status status = guarded([&] { body(pool, i); });
      EXPECT_TRUE(status.ok()) << status.message;
    });
  for (std::thread &thread : threads)
    thread.join();
}

void runProgramsInTwoThreads(const std::function<Pool()> &poolOfThread) {
  std::vector<std::byte> expected = trainOnHost(std::make_shared<DevicePool>());
  inTwoThreads(poolOfThread, [&](const Pool &pool, int) { runPrograms(pool, expected); });
}

} // namespace

TEST(PoolThreads, WithAPoolEach) {
  runProgramsInTwoThreads([] { return std::make_shared<DevicePool>(); });
}

TEST(PoolThreads, WithOnePool) {
  runProgramsInTwoThreads([pool = std::make_shared<DevicePool>()] { return pool; });
}

TEST(PoolThreads, OpenAndAllocate) {
  auto pool = std::make_shared<DevicePool>();
  inTwoThreads([&] { return pool; }, openAndAllocate);
  for (const DevicePool::DeviceMemoryCount &its : pool->memory())
    EXPECT_EQ(its.count.inUse, 0) << its.backend;
}
