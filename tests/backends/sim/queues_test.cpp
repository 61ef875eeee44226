// Queues run late, in any order that is legal, and only in one that is.
#include "tests/backends/sim/SimTest.h"

#include <set>

using namespace sluice::test;

static std::string withSeed(int seed, const char *rest = "races=off") {
  return "seed=" + std::to_string(seed) + "," + rest;
}

TEST(SimQueues, NothingRunsBeforeTheHostWaits) {
  Simulation simulation;
  int32_t value = 1, seen = 0;
  void *address = simulation.allocate(0, 4);
  sluice_queue *queue = simulation.queue(0, "acc0.in");
  simulation.copy(queue, SLUICE_HOST, &value, 0, address, 4);
  simulation.copy(queue, 0, address, SLUICE_HOST, &seen, 4);
  value = 2; // the copy has not looked yet
  EXPECT_EQ(seen, 0);
  simulation.finish(queue);
  EXPECT_EQ(seen, 2);
}

TEST(SimQueues, TooMuchPendingWorkRuns) {
  Simulation simulation("pending=2");
  int32_t value = 0;
  sluice_queue *queue = simulation.queue(SLUICE_HOST, "cpu");
  for (int i = 0; i < 5; ++i)
    simulation.launch(queue, "add", increment, {{&value, 4, SLUICE_READ_WRITE}});
  EXPECT_EQ(value, 3);
}

TEST(SimQueues, ADestroyedQueueDropsItsWork) {
  Simulation simulation;
  int32_t value = 0;
  sluice_queue *queue = nullptr, *other = simulation.queue(SLUICE_HOST, "other");
  simulator().queue_create(simulation.run, SLUICE_HOST, SLUICE_QUEUE_COMPUTE, "cpu", &queue);
  simulation.launch(queue, "add", increment, {{&value, 4, SLUICE_READ_WRITE}});
  simulation.wait(other, simulation.record(queue));
  simulator().queue_destroy(queue);
  simulation.finish(other);
  EXPECT_EQ(value, 0);
}

TEST(SimQueues, AQueueKeepsItsOrder) {
  for (int seed = 0; seed < 16; ++seed) {
    Simulation simulation(withSeed(seed));
    int32_t value = 3;
    sluice_queue *queue = simulation.queue(SLUICE_HOST, "cpu");
    simulation.launch(queue, "add", increment, {{&value, 4, SLUICE_READ_WRITE}});
    simulation.launch(queue, "twice", twice, {{&value, 4, SLUICE_READ_WRITE}});
    simulation.finish(queue);
    EXPECT_EQ(value, 8);
  }
}

/// What (3 + 1) * 2 gives when the two steps are in different queues; the second one waits for the first if `ordered`.
static int32_t addThenDouble(int seed, bool ordered) {
  Simulation simulation(withSeed(seed));
  int32_t value = 3;
  sluice_queue *first = simulation.queue(SLUICE_HOST, "a"), *second = simulation.queue(SLUICE_HOST, "b");
  simulation.launch(first, "add", increment, {{&value, 4, SLUICE_READ_WRITE}});
  if (ordered)
    simulation.wait(second, simulation.record(first));
  simulation.launch(second, "twice", twice, {{&value, 4, SLUICE_READ_WRITE}});
  simulation.finish(second);
  simulation.finish(first);
  return value;
}

TEST(SimQueues, AnEventOrdersThem) {
  for (int seed = 0; seed < 16; ++seed)
    EXPECT_EQ(addThenDouble(seed, true), 8);
}

TEST(SimQueues, WithoutAnEventSomeSeedFindsTheOtherOrder) {
  std::set<int32_t> results;
  for (int seed = 0; seed < 16; ++seed)
    results.insert(addThenDouble(seed, false));
  EXPECT_EQ(results, (std::set<int32_t>{7, 8}));
}

TEST(SimQueues, OrderPassesThroughAQueueThatOnlyWaits) {
  for (int seed = 0; seed < 16; ++seed) {
    Simulation simulation(withSeed(seed));
    int32_t value = 3;
    sluice_queue *a = simulation.queue(SLUICE_HOST, "a"), *b = simulation.queue(0, "b"),
                 *c = simulation.queue(SLUICE_HOST, "c");
    simulation.launch(a, "add", increment, {{&value, 4, SLUICE_READ_WRITE}});
    simulation.wait(b, simulation.record(a));
    simulation.wait(c, simulation.record(b));
    simulation.launch(c, "twice", twice, {{&value, 4, SLUICE_READ_WRITE}});
    simulation.finish(c);
    EXPECT_EQ(value, 8);
  }
}

TEST(SimQueues, AnEventStandsForItsLastRecording) {
  Simulation simulation;
  int32_t value = 0;
  sluice_queue *queue = simulation.queue(SLUICE_HOST, "cpu");
  sluice_event *event = simulation.event();
  EXPECT_EQ(simulator().synchronize(event), SLUICE_OK); // never recorded: done
  simulation.launch(queue, "add", increment, {{&value, 4, SLUICE_READ_WRITE}});
  simulator().record(queue, event);
  simulation.launch(queue, "add", increment, {{&value, 4, SLUICE_READ_WRITE}});
  simulator().record(queue, event);
  EXPECT_EQ(simulator().synchronize(event), SLUICE_OK);
  EXPECT_EQ(value, 2);
}

TEST(SimQueues, OneSeedGivesOneOrder) { EXPECT_EQ(addThenDouble(5, false), addThenDouble(5, false)); }

TEST(SimQueues, AFunctionOfItsOwnIsUnsupported) {
  Simulation simulation;
  sluice_launch launch{};
  launch.struct_size = sizeof(launch);
  launch.name = "add_0";
  launch.function = "add";
  EXPECT_EQ(simulator().launch(simulation.queue(0, "acc0"), &launch), SLUICE_UNSUPPORTED);
  EXPECT_EQ(simulation.error(),
            "kernel add_0: sim runs kernels that were compiled for the host, and has no function 'add'");
}
