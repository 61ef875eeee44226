// Virtual memory: counted, zeroed, and inaccessible except to work that names it.
#include "tests/backends/sim/SimTest.h"

#include <algorithm>
#include <cstring>
#include <gmock/gmock.h>

using namespace sluice::test;
using ::testing::HasSubstr;

static constexpr size_t kPage = 4096;

TEST(SimMemory, ExhaustionNamesDeviceRequestedAndFree) {
  Simulation simulation("memory=100kB");
  simulation.allocate(1, 60'000);
  void *address = nullptr;
  EXPECT_EQ(simulator().allocate(simulation.run, 1, 50'000, &address), SLUICE_EXHAUSTED);
  EXPECT_EQ(simulation.error(), "sim:1 is out of memory: 50000 bytes were asked for, 40000 of 100000 are free");
  simulation.allocate(0, 50'000); // another device has its own
}

TEST(SimMemory, ReleaseGivesBack) {
  Simulation simulation("memory=100kB");
  void *address = simulation.allocate(0, 100'000);
  EXPECT_EQ(simulator().release(simulation.run, 0, address), SLUICE_OK);
  simulation.allocate(0, 100'000);
  EXPECT_EQ(simulator().release(simulation.run, 1, address), SLUICE_USAGE);
}

TEST(SimMemoryDeathTest, TheHostCannotReadIt) {
  Simulation simulation;
  auto *address = static_cast<volatile char *>(simulation.allocate(0, 64));
  EXPECT_DEATH({ [[maybe_unused]] char read = *address; }, "");
}

TEST(SimMemoryDeathTest, TheHostCannotWriteToItAfterWorkWasDoneThere) {
  Simulation simulation;
  auto *address = static_cast<char *>(simulation.allocate(0, 64));
  sluice_queue *queue = simulation.queue(0, "acc0");
  simulation.launch(queue, "add", increment, {{address, 64, SLUICE_READ_WRITE}});
  simulation.finish(queue);
  EXPECT_DEATH(*address = 1, "");
}

static void writeNextPage(void *const *buffers, int64_t, int64_t, int64_t) {
  static_cast<char *>(buffers[0])[kPage] = 1;
}

/// Runs a kernel on the first page of two.
static void runOnFirstPage(sluice_host_stage function, sluice_access access) {
  Simulation simulation;
  void *address = simulation.allocate(0, 2 * kPage);
  sluice_queue *queue = simulation.queue(0, "acc0");
  simulation.launch(queue, "kernel", function, {{address, kPage, access}});
  simulation.finish(queue);
}

static void writePastTheLower(void *const *buffers, int64_t, int64_t, int64_t) {
  static_cast<char *>(std::min(buffers[0], buffers[1]))[kPage] = 1;
}

static void runOnTwoAllocations() {
  Simulation simulation;
  void *first = simulation.allocate(0, kPage), *second = simulation.allocate(0, kPage);
  sluice_queue *queue = simulation.queue(0, "acc0");
  simulation.launch(queue, "kernel", writePastTheLower, {{first, kPage, SLUICE_WRITE}, {second, kPage, SLUICE_WRITE}});
  simulation.finish(queue);
}

TEST(SimMemoryDeathTest, AKernelFaultsBetweenTwoAllocations) { EXPECT_DEATH(runOnTwoAllocations(), ""); }

TEST(SimMemoryDeathTest, AKernelFaultsBesideItsBuffers) {
  EXPECT_DEATH(runOnFirstPage(writeNextPage, SLUICE_WRITE), "");
}

TEST(SimMemoryDeathTest, AKernelCannotWriteToWhatItSaysItReads) {
  EXPECT_DEATH(runOnFirstPage(increment, SLUICE_READ), "");
}

TEST(SimMemory, AKernelOnAnotherDevicesBufferIsRefused) {
  Simulation simulation;
  void *address = simulation.allocate(1, 64);
  sluice_queue *queue = simulation.queue(0, "acc0");
  EXPECT_EQ(simulation.launch(queue, "add_2", increment, {{address, 64, SLUICE_READ}}), SLUICE_INVALID);
  EXPECT_EQ(simulation.error(), "kernel add_2: one of its buffers (64 bytes) does not lie in one allocation of sim:0");
}

TEST(SimMemory, ACopyBeyondAnAllocationIsRefused) {
  Simulation simulation;
  void *address = simulation.allocate(0, 64);
  std::vector<char> host(128);
  sluice_queue *queue = simulation.queue(0, "acc0.in");
  EXPECT_EQ(simulation.copy(queue, SLUICE_HOST, host.data(), 0, address, 128), SLUICE_INVALID);
  EXPECT_THAT(simulation.error(), HasSubstr("copy of x, model.cpp:3:1: its destination (128 bytes) does not lie in"));
}

TEST(SimMemory, DeviceMemoryPassedAsTheHostsIsRefused) {
  Simulation simulation;
  void *address = simulation.allocate(3, 64), *to = simulation.allocate(0, 64);
  sluice_queue *queue = simulation.queue(0, "acc0.in");
  EXPECT_EQ(simulation.copy(queue, SLUICE_HOST, address, 0, to, 64), SLUICE_INVALID);
  EXPECT_THAT(simulation.error(), HasSubstr("its source lies in memory of sim:3, not of the host"));
}

TEST(SimMemory, FreshMemoryIsZeroAndDiscardedMemoryIsNotANumber) {
  Simulation simulation;
  void *address = simulation.allocate(0, 64);
  sluice_queue *queue = simulation.queue(0, "acc0");
  std::vector<float> before(16, 1), after(16, 1);
  simulation.copy(queue, 0, address, SLUICE_HOST, before.data(), 64);
  EXPECT_EQ(simulator().discard(queue, address, 64), SLUICE_OK);
  simulation.copy(queue, 0, address, SLUICE_HOST, after.data(), 64);
  simulation.finish(queue);
  EXPECT_THAT(before, ::testing::Each(0));
  EXPECT_THAT(after, ::testing::Each(::testing::IsNan()));
}

TEST(SimMemory, WhatWorkMayStillTouchIsNotReleased) {
  Simulation simulation;
  void *address = simulation.allocate(0, 64);
  sluice_queue *queue = simulation.queue(0, "acc0");
  simulation.launch(queue, "add", increment, {{address, 64, SLUICE_READ_WRITE}});
  EXPECT_EQ(simulator().release(simulation.run, 0, address), SLUICE_INTERNAL);
  EXPECT_THAT(simulation.error(), HasSubstr("the host has not waited for kernel add in queue acc0"));
  simulation.finish(queue);
  EXPECT_EQ(simulator().release(simulation.run, 0, address), SLUICE_OK);
}
