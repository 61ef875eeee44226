// Races are found by what orders work, whatever order it happens to run in.
#include "tests/backends/sim/SimTest.h"

#include <gmock/gmock.h>

using namespace sluice::test;
using ::testing::HasSubstr;

class SimRaces : public ::testing::Test {
protected:
  sluice_status touch(sluice_queue *queue, const char *name, size_t begin, size_t end, sluice_access access) {
    return simulation.launch(queue, name, nothing, {{memory + begin, end - begin, access}});
  }

  Simulation simulation;
  char *memory = static_cast<char *>(simulation.allocate(0, 1024));
  sluice_queue *a = simulation.queue(0, "a"), *b = simulation.queue(0, "b"), *c = simulation.queue(0, "c");
};

TEST_F(SimRaces, BothPiecesOfWorkAndTheBytesAreNamed) {
  EXPECT_EQ(touch(a, "relu_2", 0, 128, SLUICE_WRITE), SLUICE_OK);
  EXPECT_EQ(touch(b, "einsum", 64, 256, SLUICE_READ), SLUICE_INTERNAL);
  EXPECT_EQ(simulation.error(), "race: kernel einsum in queue b reads bytes 64 to 128 of allocation 0 of sim:0, which "
                                "kernel relu_2 in queue a writes, and nothing orders the two");
}

TEST_F(SimRaces, WritingWhatSomebodyStillReads) {
  EXPECT_EQ(touch(a, "reader", 0, 64, SLUICE_READ), SLUICE_OK);
  EXPECT_EQ(touch(b, "reader", 0, 64, SLUICE_READ), SLUICE_OK);
  simulation.wait(c, simulation.record(a));
  EXPECT_EQ(touch(c, "writer", 0, 64, SLUICE_WRITE), SLUICE_INTERNAL);
  EXPECT_THAT(simulation.error(), HasSubstr("kernel reader in queue b reads"));
}

TEST_F(SimRaces, ReadersAndOtherBytesDoNotRace) {
  EXPECT_EQ(touch(a, "reader", 0, 64, SLUICE_READ), SLUICE_OK);
  EXPECT_EQ(touch(b, "reader", 0, 64, SLUICE_READ), SLUICE_OK);
  EXPECT_EQ(touch(c, "writer", 64, 128, SLUICE_WRITE), SLUICE_OK);
}

TEST_F(SimRaces, EventsOrderThroughOtherQueues) {
  EXPECT_EQ(touch(a, "writer", 0, 64, SLUICE_WRITE), SLUICE_OK);
  simulation.wait(b, simulation.record(a));
  simulation.wait(c, simulation.record(b));
  EXPECT_EQ(touch(c, "reader", 0, 64, SLUICE_READ), SLUICE_OK);
}

TEST_F(SimRaces, AnEventOrdersOnlyWhatWasThereWhenItWasRecorded) {
  sluice_event *early = simulation.record(a);
  EXPECT_EQ(touch(a, "writer", 0, 64, SLUICE_WRITE), SLUICE_OK);
  simulation.wait(b, early);
  EXPECT_EQ(touch(b, "reader", 0, 64, SLUICE_READ), SLUICE_INTERNAL);
}

TEST_F(SimRaces, TheHostsWaitingOrdersWhatItIssuesAfterwards) {
  EXPECT_EQ(touch(a, "writer", 0, 64, SLUICE_WRITE), SLUICE_OK);
  simulation.finish(a);
  EXPECT_EQ(touch(b, "reader", 0, 64, SLUICE_READ), SLUICE_OK);
}

TEST_F(SimRaces, CopiesAndDiscardsRaceToo) {
  std::vector<char> host(64);
  EXPECT_EQ(simulation.copy(a, SLUICE_HOST, host.data(), 0, memory, 64), SLUICE_OK);
  EXPECT_EQ(simulator().discard(b, memory, 64), SLUICE_INTERNAL);
  EXPECT_THAT(simulation.error(), HasSubstr("discarding in queue b writes bytes 0 to 64"));
  EXPECT_THAT(simulation.error(), HasSubstr("copy of x, model.cpp:3:1 in queue a writes"));
}

TEST_F(SimRaces, HostMemoryIsWatched) {
  std::vector<char> host(64);
  sluice_queue *cpu = simulation.queue(SLUICE_HOST, "cpu");
  EXPECT_EQ(simulation.copy(a, SLUICE_HOST, host.data(), 0, memory, 64), SLUICE_OK);
  EXPECT_EQ(simulation.launch(cpu, "fill", nothing, {{host.data(), 64, SLUICE_WRITE}}), SLUICE_INTERNAL);
  EXPECT_THAT(simulation.error(), HasSubstr("64 bytes of host memory"));
}

TEST_F(SimRaces, ManySmallBuffersAreForgottenOnceTheHostHasWaited) {
  for (int round = 0; round < 8; ++round) {
    for (size_t at = 0; at < 1024; at += 2)
      ASSERT_EQ(touch(round % 2 ? a : b, "writer", at, at + 1, SLUICE_WRITE), SLUICE_OK) << simulation.error();
    simulation.finish(round % 2 ? a : b);
  }
}

TEST(SimRacesOff, RunOn) {
  Simulation simulation("races=off");
  void *address = simulation.allocate(0, 64);
  for (const char *name : {"a", "b"})
    EXPECT_EQ(simulation.launch(simulation.queue(0, name), name, nothing, {{address, 64, SLUICE_WRITE}}), SLUICE_OK);
}
