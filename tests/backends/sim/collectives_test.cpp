// Properties of exchanges that only the simulator shows: time, races, and the order of sums.
#include "sluice/backend/collectives.h"
#include "tests/backends/sim/SimTest.h"

#include <gmock/gmock.h>

using namespace sluice::test;
using ::testing::HasSubstr;
using ::testing::Values;

static const sluice_backend_collectives &table() { return *simulator().collectives; }

TEST(SimIds, NeedNotBeUsed) {
  Simulation simulation("");
  sluice_unique_id id;
  EXPECT_EQ(table().unique_id(simulation.run, &id), SLUICE_OK);
  simulation.queue(0, "compute"); // and goes with the simulation
}

/// Ranks on the devices from 0 of one context, each with a separate queue and memory.
class SimRanks : public ::testing::Test {
protected:
  static constexpr size_t kBytes = 4000;

  void start(int32_t size) {
    sluice_unique_id id;
    EXPECT_EQ(table().unique_id(simulation.run, &id), SLUICE_OK);
    for (int32_t rank = 0; rank < size; ++rank) {
      sluice_communicator_options options{sizeof options, &id, rank, size, rank, nullptr};
      EXPECT_EQ(table().init(simulation.run, &options, &ends.emplace_back()), SLUICE_OK) << simulation.error();
      queues.push_back(simulation.queue(rank, ("comm" + std::to_string(rank)).c_str()));
      sent.push_back(simulation.allocate(rank, kBytes));
      received.push_back(simulation.allocate(rank, kBytes));
    }
  }
  void TearDown() override {
    for (sluice_communicator *end : ends)
      table().destroy(end);
  }

  sluice_status put(size_t rank, sluice_exchange_kind kind, size_t count, sluice_dtype dtype = SLUICE_DTYPE_f32) {
    sluice_exchange exchange{sizeof exchange, kind,           dtype, SLUICE_SUM, 0,
                             sent[rank],      received[rank], count, nullptr,    "dw1"};
    return table().exchange(ends[rank], queues[rank], &exchange);
  }
  void putAll(sluice_exchange_kind kind, size_t count) {
    for (size_t rank = 0; rank < ends.size(); ++rank)
      EXPECT_EQ(put(rank, kind, count), SLUICE_OK) << simulation.error();
  }
  double secondsOf(sluice_exchange_kind kind, size_t count) {
    auto [start, end] = (putAll(kind, count), simulation.finish(queues[0]), simulation.times(queues[0]));
    return end - start;
  }

  Simulation simulation{"link=1GB/s,latency=5us"};
  std::vector<sluice_communicator *> ends;
  std::vector<sluice_queue *> queues;
  std::vector<void *> sent, received;
};

/// Of four ranks with links of 1 GB/s and 5 us: 250 elements are 1 us.
TEST_F(SimRanks, TakeTheTimeOfARing) {
  start(4);
  EXPECT_NEAR(secondsOf(SLUICE_ALL_REDUCE, 1000), 2 * 3 * (5e-6 + 1e-6), 1e-12);
  EXPECT_NEAR(secondsOf(SLUICE_REDUCE_SCATTER, 250), 3 * (5e-6 + 1e-6), 1e-12);
  EXPECT_NEAR(secondsOf(SLUICE_ALL_GATHER, 250), 3 * (5e-6 + 1e-6), 1e-12);
  EXPECT_NEAR(secondsOf(SLUICE_BROADCAST, 1000), 3 * 5e-6 + 4e-6, 1e-12);
}

TEST_F(SimRanks, StartWhenTheLastHasComeAndTheLinksAreFree) {
  start(2);
  void *other = simulation.allocate(0, kBytes), *there = simulation.allocate(1, kBytes);
  EXPECT_EQ(put(0, SLUICE_ALL_REDUCE, 500), SLUICE_OK);
  sluice_event *early = simulation.record(queues[0]);
  std::vector<char> bytes(2000);
  simulation.copy(queues[1], SLUICE_HOST, bytes.data(), 1, received[1], bytes.size()); // 7 us
  simulation.finish(queues[1]);
  simulation.copy(simulation.queue(0, "over"), 0, other, 1, there, 4000); // from 7 to 16 us
  EXPECT_EQ(put(1, SLUICE_ALL_REDUCE, 500), SLUICE_OK);
  auto [start, end] = simulation.times(queues[1]);
  EXPECT_NEAR(start, 16e-6, 1e-12);
  EXPECT_NEAR(end, 28e-6, 1e-12);
  EXPECT_EQ(simulator().synchronize(early), SLUICE_OK) << simulation.error();
  double earlyStart = 0, earlyEnd = 0;
  EXPECT_EQ(simulator().event_times(early, &earlyStart, &earlyEnd), SLUICE_OK);
  EXPECT_EQ(earlyStart, start);
}

TEST_F(SimRanks, WhatIsBehindThemIsTimedBehindThem) {
  start(2);
  EXPECT_EQ(put(0, SLUICE_ALL_REDUCE, 500), SLUICE_OK);
  sluice_queue *compute = simulation.queue(0, "acc0");
  simulation.wait(compute, simulation.record(queues[0]));
  EXPECT_EQ(simulation.launch(compute, "update", nothing, {{received[0], 2000, SLUICE_READ}}), SLUICE_OK);
  sluice_event *updated = simulation.record(compute);
  EXPECT_EQ(put(1, SLUICE_ALL_REDUCE, 500), SLUICE_OK);
  EXPECT_EQ(simulator().synchronize(updated), SLUICE_OK) << simulation.error();
  EXPECT_NEAR(simulation.times(compute).first, 2 * (5e-6 + 1e-6), 1e-12);
}

/// Work after an exchange is checked again when all ranks have joined: its memory may have been released.
TEST_F(SimRanks, WhatIsBehindThemFailsLateWithoutItsMemory) {
  start(2);
  void *memory = simulation.allocate(0, 64);
  EXPECT_EQ(put(0, SLUICE_ALL_REDUCE, 500), SLUICE_OK);
  EXPECT_EQ(simulation.launch(queues[0], "update", nothing, {{memory, 64, SLUICE_WRITE}}), SLUICE_OK);
  EXPECT_EQ(simulator().release(simulation.run, 0, memory), SLUICE_OK) << simulation.error();
  EXPECT_EQ(put(1, SLUICE_ALL_REDUCE, 500), SLUICE_OK);
  EXPECT_EQ(simulator().synchronize_queue(queues[0]), SLUICE_INVALID);
  EXPECT_THAT(simulation.error(), HasSubstr("kernel update: one of its buffers"));
  EXPECT_EQ(simulator().synchronize_queue(queues[1]), SLUICE_OK);
}

TEST_F(SimRanks, EndForAllWhenOneHasLostItsMemory) {
  start(2);
  EXPECT_EQ(put(0, SLUICE_ALL_REDUCE, 500), SLUICE_OK);
  EXPECT_EQ(simulator().release(simulation.run, 0, sent[0]), SLUICE_OK);
  EXPECT_EQ(put(1, SLUICE_ALL_REDUCE, 500), SLUICE_OK);
  EXPECT_EQ(simulator().synchronize_queue(queues[0]), SLUICE_INVALID);
  EXPECT_EQ(simulator().synchronize_queue(queues[1]), SLUICE_INVALID);
  EXPECT_THAT(simulation.error(), HasSubstr("what it sends (2000 bytes) does not lie in one allocation of sim:0"));
}

TEST_F(SimRanks, RaceWithWorkThatDoesNotWaitForThem) {
  start(2);
  putAll(SLUICE_ALL_REDUCE, 500);
  EXPECT_EQ(simulation.launch(simulation.queue(1, "acc1"), "update", nothing, {{received[1], 64, SLUICE_READ}}),
            SLUICE_INTERNAL);
  EXPECT_EQ(simulation.error(), "race: kernel update in queue acc1 reads bytes 0 to 64 of allocation 1 of sim:1, which "
                                "all-reduce of dw1 of rank 1 in queue comm1 writes, and nothing orders the two");
}

TEST_F(SimRanks, RaceWithWorkThatTheyDoNotWaitFor) {
  start(2);
  EXPECT_EQ(simulation.launch(simulation.queue(0, "acc0"), "gradient", nothing, {{sent[0], 64, SLUICE_WRITE}}),
            SLUICE_OK);
  putAll(SLUICE_ALL_REDUCE, 500);
  EXPECT_EQ(simulator().synchronize_queue(queues[0]), SLUICE_INTERNAL);
  EXPECT_THAT(simulation.error(), HasSubstr("all-reduce of dw1 of rank 0 in queue comm0 reads bytes 0 to 64"));
  EXPECT_EQ(simulator().synchronize_queue(queues[0]), SLUICE_OK);
}

/// A rank is done with what it sends when it has received; what others do with theirs it does not know.
TEST_F(SimRanks, OrderWhatOneRankDoesBehindWithWhatOthersDidBefore) {
  start(2);
  EXPECT_EQ(simulation.launch(queues[1], "before", nothing, {{sent[1], 64, SLUICE_WRITE}}), SLUICE_OK);
  putAll(SLUICE_ALL_REDUCE, 500);
  EXPECT_EQ(simulation.copy(queues[0], 1, sent[1], 0, sent[0], 64), SLUICE_OK) << simulation.error();
  EXPECT_EQ(simulation.copy(queues[0], 1, received[1], 0, sent[0], 64), SLUICE_INTERNAL);
}

TEST_F(SimRanks, NameTheRankThatIsLate) {
  start(3);
  EXPECT_EQ(put(0, SLUICE_ALL_REDUCE, 10), SLUICE_OK);
  EXPECT_EQ(put(2, SLUICE_ALL_REDUCE, 10), SLUICE_OK);
  sluice_queue *compute = simulation.queue(0, "acc0");
  simulation.wait(compute, simulation.record(queues[0]));
  EXPECT_EQ(simulator().synchronize_until(simulation.record(compute), 0.01), SLUICE_DEADLINE);
  EXPECT_EQ(simulation.error(),
            "sim: work was not done within 0.010000 s: queue acc0 waits for an event: all-reduce of "
            "dw1 of rank 0 in queue comm0 waits for rank 1");
}

TEST_F(SimRanks, NameTheFirstDifference) {
  start(2);
  EXPECT_EQ(put(0, SLUICE_ALL_REDUCE, 10), SLUICE_OK);
  EXPECT_EQ(put(1, SLUICE_ALL_REDUCE, 10, SLUICE_DTYPE_f64), SLUICE_INVALID);
  const char *why = "rank 1 differs from rank 0 in exchange 0, all-reduce of dw1: its element type is f64, not f32";
  EXPECT_EQ(simulation.error(), why);
  EXPECT_EQ(simulator().synchronize_queue(queues[0]), SLUICE_INVALID);
  EXPECT_EQ(simulation.error(), std::string("all-reduce of dw1 of rank 0 in queue comm0: ") + why);
}

TEST_F(SimRanks, AddInTheirOrder) {
  start(3);
  const float values[] = {1e8f, -1e8f, 1.0f}; // 1 if added in this order, and 0 in others
  for (size_t rank : {2, 0, 1}) {
    simulation.copy(queues[rank], SLUICE_HOST, &values[rank], static_cast<int32_t>(rank), sent[rank], sizeof(float));
    EXPECT_EQ(put(rank, SLUICE_ALL_REDUCE, 1), SLUICE_OK);
  }
  float sums[3] = {};
  for (size_t rank = 0; rank < 3; ++rank) {
    simulation.copy(queues[rank], static_cast<int32_t>(rank), received[rank], SLUICE_HOST, &sums[rank], sizeof(float));
    simulation.finish(queues[rank]);
  }
  EXPECT_THAT(sums, ::testing::Each(1.0f));
}

/// 256 + 1 is 256 in bf16, and 256 + 1 + 1 is 258.
TEST_F(SimRanks, RoundSumsOfHalvesOnce) {
  start(3);
  const sluice_bf16 values[] = {sluice_bf16(256), sluice_bf16(1), sluice_bf16(1)};
  for (size_t rank : {0, 1, 2}) {
    simulation.copy(queues[rank], SLUICE_HOST, &values[rank], static_cast<int32_t>(rank), sent[rank], sizeof values[0]);
    EXPECT_EQ(put(rank, SLUICE_ALL_REDUCE, 1, SLUICE_DTYPE_bf16), SLUICE_OK);
  }
  sluice_bf16 sum;
  simulation.copy(queues[1], 1, received[1], SLUICE_HOST, &sum, sizeof sum);
  simulation.finish(queues[1]);
  EXPECT_EQ(float(sum), 258.0f);
}

TEST_F(SimRanks, ExchangeNothingThatIsCaptured) {
  start(1);
  EXPECT_EQ(simulator().capture_begin(queues[0]), SLUICE_OK);
  EXPECT_EQ(put(0, SLUICE_ALL_REDUCE, 1), SLUICE_USAGE);
  EXPECT_EQ(simulation.error(), "sim: queue comm0 captures, and cannot exchange with other ranks");
}

TEST_F(SimRanks, HaveMemoryOfTheirDevice) {
  start(2);
  std::swap(sent[0], sent[1]);
  EXPECT_EQ(put(0, SLUICE_ALL_REDUCE, 1), SLUICE_INVALID);
  EXPECT_EQ(simulation.error(), "all-reduce of dw1: what it sends (4 bytes) does not lie in one allocation of sim:0");
}

/// What three ranks receive of the same sums, one after the other in the same memory, while queues run as a seed says.
static std::vector<float> sumsUnder(const std::string &settings) {
  constexpr int32_t kRanks = 3;
  constexpr size_t kRounds = 20;
  Simulation simulation(settings);
  sluice_unique_id id;
  EXPECT_EQ(table().unique_id(simulation.run, &id), SLUICE_OK);
  std::vector<float> values(kRanks * kRounds), sums(kRanks * kRounds);
  std::vector<sluice_communicator *> ends(kRanks);
  std::vector<void *> memory;
  std::vector<sluice_queue *> work, exchanges;
  for (int32_t rank = 0; rank < kRanks; ++rank) {
    sluice_communicator_options options{sizeof options, &id, rank, kRanks, rank, nullptr};
    EXPECT_EQ(table().init(simulation.run, &options, &ends[static_cast<size_t>(rank)]), SLUICE_OK);
    memory.push_back(simulation.allocate(rank, sizeof(float)));
    work.push_back(simulation.queue(rank, "work"));
    exchanges.push_back(simulation.queue(rank, "exchanges"));
  }
  for (size_t at = 0; at < values.size(); ++at) {
    size_t rank = at % kRanks;
    auto device = static_cast<int32_t>(rank);
    values[at] = 0.1f * static_cast<float>(at * at % 101);
    simulation.copy(work[rank], SLUICE_HOST, &values[at], device, memory[rank], sizeof(float));
    simulation.wait(exchanges[rank], simulation.record(work[rank]));
    sluice_exchange exchange{sizeof exchange,
                             SLUICE_ALL_REDUCE,
                             SLUICE_DTYPE_f32,
                             SLUICE_SUM,
                             0,
                             memory[rank],
                             memory[rank],
                             1,
                             nullptr,
                             "sum"};
    EXPECT_EQ(table().exchange(ends[rank], exchanges[rank], &exchange), SLUICE_OK) << simulation.error();
    simulation.wait(work[rank], simulation.record(exchanges[rank]));
    simulation.copy(work[rank], device, memory[rank], SLUICE_HOST, &sums[at], sizeof(float));
  }
  for (sluice_queue *queue : work)
    simulation.finish(queue);
  for (sluice_communicator *end : ends)
    table().destroy(end);
  return sums;
}

class SimSeededRanks : public ::testing::TestWithParam<const char *> {};

TEST_P(SimSeededRanks, ReceiveTheSameBits) {
  std::vector<float> sums = sumsUnder(GetParam());
  EXPECT_EQ(sums, sumsUnder("seed=0"));
  EXPECT_EQ(sums[0], (0.0f + 0.1f) + 0.1f * 4);
  EXPECT_EQ(sums[0], sums[2]);
}

INSTANTIATE_TEST_SUITE_P(Sim, SimSeededRanks,
                         Values("seed=1", "seed=2", "seed=3", "seed=4", "seed=5,pending=1", "seed=6,pending=2",
                                "seed=7,pending=3"));

/// Like CPU replicas, with the simulator in place of the host.
TEST(SimHostRanks, AreAnyNumber) {
  Simulation simulation;
  sluice_unique_id id;
  EXPECT_EQ(table().unique_id(simulation.run, &id), SLUICE_OK);
  sluice_communicator *ends[2];
  sluice_queue *queues[2];
  int64_t sums[] = {3, 4};
  for (int32_t rank : {0, 1}) {
    sluice_communicator_options options{sizeof options, &id, rank, 2, SLUICE_HOST, nullptr};
    EXPECT_EQ(table().init(simulation.run, &options, &ends[rank]), SLUICE_OK) << simulation.error();
    queues[rank] = simulation.queue(SLUICE_HOST, "comm");
    sluice_exchange exchange{
        sizeof exchange, SLUICE_ALL_REDUCE, SLUICE_DTYPE_i64, SLUICE_SUM, 0, &sums[rank], &sums[rank], 1, nullptr,
        nullptr};
    EXPECT_EQ(table().exchange(ends[rank], queues[rank], &exchange), SLUICE_OK) << simulation.error();
  }
  simulation.finish(queues[0]);
  simulation.finish(queues[1]);
  EXPECT_THAT(sums, ::testing::Each(7));
  for (sluice_communicator *end : ends)
    table().destroy(end);
}
