// Sequences: replays are timed, ordered and checked for races like all work.
#include "tests/backends/sim/SimTest.h"

#include <gmock/gmock.h>

using namespace sluice::test;
using ::testing::HasSubstr;

class SimSequences : public ::testing::Test {
protected:
  ~SimSequences() override {
    for (sluice_sequence *sequence : sequences)
      simulator().sequence_destroy(sequence);
  }

  sluice_status replay(sluice_queue *queue, sluice_sequence *sequence) { return simulator().replay(queue, sequence); }

  template <typename Put> sluice_sequence *capture(sluice_queue *queue, Put put) {
    sluice_sequence *sequence = nullptr;
    EXPECT_EQ(simulator().capture_begin(queue), SLUICE_OK) << simulation.error();
    put();
    EXPECT_EQ(simulator().capture_end(queue, &sequence), SLUICE_OK) << simulation.error();
    return sequences.emplace_back(sequence);
  }

  Simulation simulation;
  void *memory = simulation.allocate(0, 64);
  sluice_queue *a = simulation.queue(0, "a"), *b = simulation.queue(0, "b");
  std::vector<sluice_sequence *> sequences;
};

TEST_F(SimSequences, RacesOfReplaysAreFound) {
  sluice_sequence *sequence =
      capture(a, [&] { simulation.launch(a, "writer", nothing, {{memory, 64, SLUICE_WRITE}}); });
  EXPECT_EQ(simulation.launch(b, "reader", nothing, {{memory, 64, SLUICE_READ}}), SLUICE_OK) << "nothing is done yet";
  EXPECT_EQ(replay(a, sequence), SLUICE_INTERNAL);
  EXPECT_THAT(simulation.error(), HasSubstr("race: kernel writer in queue a writes"));
  EXPECT_THAT(simulation.error(), HasSubstr("kernel reader in queue b reads"));
}

TEST_F(SimSequences, EachReplayRacesForItself) {
  sluice_sequence *sequence =
      capture(a, [&] { simulation.launch(a, "writer", nothing, {{memory, 64, SLUICE_WRITE}}); });
  EXPECT_EQ(replay(a, sequence), SLUICE_OK);
  simulation.wait(b, simulation.record(a));
  EXPECT_EQ(simulation.launch(b, "reader", nothing, {{memory, 64, SLUICE_READ}}), SLUICE_OK) << simulation.error();
  EXPECT_EQ(replay(a, sequence), SLUICE_INTERNAL);
}

TEST_F(SimSequences, TakeTheTimeOfTheirWorkAsOnePiece) {
  auto put = [&] {
    for (int i = 0; i < 3; ++i)
      simulation.launch(a, "increment", increment, {{memory, 4, SLUICE_READ_WRITE}}, 1e9);
  };
  put();
  double third = simulation.times(a).second;
  sluice_sequence *sequence = capture(a, put);
  EXPECT_EQ(simulation.times(a).second, third) << "what is kept takes no time";
  replay(a, sequence);
  auto [start, end] = simulation.times(a);
  EXPECT_NEAR(start, third, 1e-12);
  EXPECT_NEAR(end - start, third, 1e-12);
}

TEST_F(SimSequences, DoTheirWorkAtEachReplay) {
  sluice_sequence *sequence = capture(a, [&] {
    simulation.launch(a, "increment", increment, {{memory, 4, SLUICE_READ_WRITE}});
    simulation.launch(a, "twice", twice, {{memory, 4, SLUICE_READ_WRITE}});
  });
  for (int i = 0; i < 3; ++i)
    replay(a, sequence);
  int32_t found = -1;
  simulation.copy(a, 0, memory, SLUICE_HOST, &found, sizeof found);
  simulation.finish(a);
  EXPECT_EQ(found, ((0 + 1) * 2 + 1) * 2 * 2 + 2);
}

TEST_F(SimSequences, AreOfOneDevice) {
  sluice_sequence *sequence = capture(a, [] {});
  EXPECT_EQ(replay(simulation.queue(1, "other"), sequence), SLUICE_USAGE);
  EXPECT_THAT(simulation.error(), HasSubstr("what was captured for sim:0 is replayed in a queue of sim:1"));
}

TEST_F(SimSequences, FindThatTheirMemoryWasReleased) {
  sluice_sequence *sequence =
      capture(a, [&] { simulation.launch(a, "writer", nothing, {{memory, 64, SLUICE_WRITE}}); });
  EXPECT_EQ(simulator().release(simulation.run, 0, memory), SLUICE_OK) << simulation.error();
  EXPECT_EQ(replay(a, sequence), SLUICE_INVALID);
  EXPECT_THAT(simulation.error(), HasSubstr("does not lie in one allocation of sim:0"));
}

TEST_F(SimSequences, DeadlinesPassWhileWorkIsPutOff) {
  simulation.launch(a, "increment", increment, {{memory, 4, SLUICE_READ_WRITE}});
  simulation.launch(a, "increment", increment, {{memory, 4, SLUICE_READ_WRITE}});
  sluice_event *event = simulation.record(a);
  EXPECT_EQ(simulator().synchronize_until(event, 0), SLUICE_DEADLINE);
  EXPECT_THAT(simulation.error(), HasSubstr("work was not done within"));
  EXPECT_EQ(simulator().synchronize_until(event, 60), SLUICE_OK);
}
