// Sequences of a segment: captured on the second use, bounded in number, and kept until their replays are complete.
#include "runtime/exec/SequenceCache.h"
#include "runtime/plugins/BackendLoader.h"

#include <gtest/gtest.h>
#include <stdexcept>

using namespace sluice;
using namespace sluice::runtime;

namespace {

sluice_backend_run ofSim;
int destroyed;

void countDestroyed(sluice_sequence *sequence) {
  ++destroyed;
  ofSim.sequence_destroy(sequence);
}

/// The simulator, which runs work only in waits, with a queue that copies one byte to another.
class Sequences : public testing::Test {
protected:
  Sequences() { destroyed = 0; }

  static sluice_backend_run half() {
    ofSim = findRunHalf("sim", {SLUICE_BINARY_DIR "/lib/sluice/backends"});
    sluice_backend_run counting = ofSim;
    counting.sequence_destroy = countDestroyed;
    return counting;
  }

  /// The number of times that the work was enqueued so far.
  int issue(SequenceCache &cache, int64_t rows, size_t copy = 0) {
    cache.issue({copy, rows}, [&] {
      queue.copy({sizeof(sluice_copy), 0, 0, memory.data(), memory.data() + 64, 1, "a byte"});
      ++puts;
    });
    return puts;
  }

  sluice_backend_run table = half();
  Team team{1};
  DeviceContext context{"sim", table, "", team};
  DeviceQueue queue{context, 0, SLUICE_QUEUE_COMPUTE, "acc0"};
  DeviceMemory memory{context, 0, 128, "bytes"};
  int puts = 0;
};

} // namespace

TEST_F(Sequences, AreCapturedTheSecondTimeAndReplayedFromThenOn) {
  SequenceCache cache(queue, 8);
  EXPECT_EQ(issue(cache, 5), 1);
  EXPECT_EQ(cache.kept(), 0u);
  EXPECT_EQ(issue(cache, 5), 2);
  EXPECT_EQ(cache.kept(), 1u);
  EXPECT_EQ(issue(cache, 5), 2);
  EXPECT_EQ(issue(cache, 6), 3) << "of other rows";
  EXPECT_EQ(cache.replays(), 2);
  queue.synchronize();
  EXPECT_EQ(context.copyCounts().front().copies, 4);
}

TEST_F(Sequences, AreOfOneCopyOfTheBuffers) {
  SequenceCache cache(queue, 8);
  for (int i = 0; i < 3; ++i)
    issue(cache, 5, 0);
  EXPECT_EQ(puts, 2);
  EXPECT_EQ(issue(cache, 5, 1), 3) << "of other addresses";
  EXPECT_EQ(issue(cache, 5, 1), 4);
  EXPECT_EQ(issue(cache, 5, 1), 4);
  EXPECT_EQ(issue(cache, 5, 0), 4) << "which did not make room";
}

TEST_F(Sequences, MakeRoomWhenTheirReplaysAreDone) {
  SequenceCache cache(queue, 1);
  for (int64_t rows : {1, 1, 1, 2, 2})
    issue(cache, rows);
  EXPECT_EQ(cache.kept(), 1u);
  EXPECT_EQ(destroyed, 0) << "nothing was done yet";
  queue.synchronize();
  for (int64_t rows : {3, 3})
    issue(cache, rows);
  EXPECT_EQ(destroyed, 1) << "the first one, and not the second, which made room now";
  EXPECT_EQ(cache.kept(), 1u);
}

/// The host waits before the number of retired sequences exceeds that of kept ones.
TEST_F(Sequences, AreBoundedWhateverIsInFlight) {
  SequenceCache cache(queue, 1);
  for (int64_t rows = 1; rows <= 5; ++rows)
    for (int use = 0; use < 2; ++use)
      issue(cache, rows);
  EXPECT_EQ(destroyed, 3) << "of five: one is kept, one has made room";
}

TEST_F(Sequences, WhatWasReplayedLastStays) {
  SequenceCache cache(queue, 2);
  for (int64_t rows : {1, 1, 2, 2, 1, 3, 3}) // 3 evicts 2
    issue(cache, rows);
  int before = puts;
  EXPECT_EQ(issue(cache, 1), before);
  EXPECT_EQ(issue(cache, 3), before);
  EXPECT_EQ(issue(cache, 2), before + 1);
}

TEST_F(Sequences, AnErrorWithinACaptureEndsIt) {
  SequenceCache cache(queue, 8);
  issue(cache, 1);
  EXPECT_THROW(cache.issue({0, 1}, [] { throw std::runtime_error("of the host"); }), std::runtime_error);
  DeviceEvent event(context);
  queue.record(event); // a capturing queue rejects this
  EXPECT_EQ(issue(cache, 1), 2);
}
