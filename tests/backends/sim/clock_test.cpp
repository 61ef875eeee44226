// The virtual clock, and what the copy engine counts.
#include "tests/backends/sim/SimTest.h"

using namespace sluice::test;

static constexpr double kTiny = 1e-12;

TEST(SimClock, ACopyTakesLatencyAndBandwidth) {
  Simulation simulation("link=1GB/s,latency=5us");
  std::vector<char> host(1000);
  void *address = simulation.allocate(0, 1000);
  sluice_queue *in = simulation.queue(0, "acc0.in");
  simulation.copy(in, SLUICE_HOST, host.data(), 0, address, 1000);
  simulation.copy(in, SLUICE_HOST, host.data(), 0, address, 1000);
  auto [start, end] = simulation.times(in);
  EXPECT_NEAR(start, 6e-6, kTiny);
  EXPECT_NEAR(end, 12e-6, kTiny);
}

TEST(SimClock, ALinkCarriesOneCopyInEachDirection) {
  Simulation simulation("link=1GB/s,latency=0s");
  std::vector<char> host(2000);
  auto *address = static_cast<char *>(simulation.allocate(0, 3000));
  sluice_queue *a = simulation.queue(0, "a"), *b = simulation.queue(0, "b"), *out = simulation.queue(0, "out");
  simulation.copy(a, SLUICE_HOST, host.data(), 0, address, 1000);
  simulation.copy(b, SLUICE_HOST, host.data(), 0, address + 1000, 1000);
  simulation.copy(out, 0, address + 2000, SLUICE_HOST, host.data() + 1000, 1000);
  EXPECT_NEAR(simulation.times(b).second, 2e-6, kTiny);
  EXPECT_NEAR(simulation.times(out).second, 1e-6, kTiny);
}

TEST(SimClock, ACopyThatMayGoPassesOneThatMustWait) {
  Simulation simulation("link=1GB/s,latency=0s");
  std::vector<char> host(2000);
  auto *address = static_cast<char *>(simulation.allocate(0, 2000));
  auto *result = static_cast<char *>(simulation.allocate(0, 1000));
  sluice_queue *out = simulation.queue(0, "out"), *late = simulation.queue(0, "late"),
               *soon = simulation.queue(0, "soon");
  simulation.copy(out, 0, result, SLUICE_HOST, host.data() + 1000, 1000);
  simulation.wait(late, simulation.record(out));
  simulation.copy(late, SLUICE_HOST, host.data(), 0, address, 1000);
  simulation.copy(soon, SLUICE_HOST, host.data(), 0, address + 1000, 1000);
  EXPECT_NEAR(simulation.times(soon).second, 1e-6, kTiny);
  EXPECT_NEAR(simulation.times(late).second, 2e-6, kTiny);
}

TEST(SimClock, QueuesOverlapAndEventsMakeThemWait) {
  Simulation simulation("link=1GB/s,latency=0s");
  std::vector<char> host(1000);
  void *address = simulation.allocate(0, 1000), *other = simulation.allocate(0, 64);
  sluice_queue *in = simulation.queue(0, "acc0.in"), *compute = simulation.queue(0, "acc0");
  simulation.copy(in, SLUICE_HOST, host.data(), 0, address, 1000);
  simulation.launch(compute, "first", nothing, {{other, 64, SLUICE_WRITE}});
  EXPECT_NEAR(simulation.times(compute).first, 0, kTiny);
  simulation.wait(compute, simulation.record(in));
  simulation.launch(compute, "second", nothing, {{address, 1000, SLUICE_READ}});
  EXPECT_GE(simulation.times(compute).first, 1e-6 - kTiny);
}

TEST(SimClock, WhatTheHostIssuesAfterWaitingStartsLater) {
  Simulation simulation("link=1GB/s,latency=0s");
  std::vector<char> host(1000);
  void *address = simulation.allocate(0, 1000);
  sluice_queue *in = simulation.queue(0, "acc0.in"), *compute = simulation.queue(0, "acc0");
  simulation.copy(in, SLUICE_HOST, host.data(), 0, address, 1000);
  simulation.finish(in);
  simulation.launch(compute, "kernel", nothing, {{address, 1000, SLUICE_READ}});
  EXPECT_NEAR(simulation.times(compute).first, 1e-6, kTiny);
}

static double seconds(int32_t device, const char *name, double flops) {
  Simulation simulation;
  sluice_queue *queue = simulation.queue(device, "queue");
  simulation.launch(queue, name, nothing, {}, flops);
  auto [start, end] = simulation.times(queue);
  return end - start;
}

TEST(SimClock, KernelsTakeTimeByKindWorkAndDevice) {
  EXPECT_GT(seconds(0, "einsum", 2e9), 1.9 * (seconds(0, "einsum", 1e9) - seconds(0, "einsum", 0)));
  EXPECT_NE(seconds(0, "conv2d", 1e9), seconds(0, "einsum", 1e9));
  EXPECT_GT(seconds(SLUICE_HOST, "einsum", 1e9), seconds(0, "einsum", 1e9));
  EXPECT_GT(seconds(0, "empty", 0), 0);
}

TEST(SimCounts, EachPairOfDevicesIsCounted) {
  Simulation simulation;
  std::vector<char> host(100);
  void *first = simulation.allocate(0, 100), *second = simulation.allocate(1, 100);
  sluice_queue *queue = simulation.queue(0, "copies");
  simulation.copy(queue, SLUICE_HOST, host.data(), 0, first, 100);
  simulation.copy(queue, SLUICE_HOST, host.data(), 0, first, 20);
  simulation.copy(queue, 0, first, 1, second, 30);
  simulation.copy(queue, 1, second, SLUICE_HOST, host.data(), 40);
  simulation.finish(queue);
  sluice_copy_count counts[2];
  size_t count = 0;
  EXPECT_EQ(simulator().copy_counts(simulation.run, counts, sizeof counts[0], 2, &count), SLUICE_OK);
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(counts[0].from_device, SLUICE_HOST);
  EXPECT_EQ(counts[0].to_device, 0);
  EXPECT_EQ(counts[0].copies, 2);
  EXPECT_EQ(counts[0].bytes, 120);
  EXPECT_EQ(counts[1].from_device, 0);
  EXPECT_EQ(counts[1].bytes, 30);
}
