// Contexts of a group: one clock, one history of accesses, and hosts that do not share what they have waited for.
#include "tests/backends/sim/SimTest.h"

#include <gmock/gmock.h>

using namespace sluice::test;
using ::testing::HasSubstr;

namespace {

struct Group {
  Group() { EXPECT_EQ(simulator().group_create(&group), SLUICE_OK); }
  ~Group() { simulator().group_destroy(group); }
  sluice_group *group = nullptr;
};

class SimGroups : public ::testing::Test {
protected:
  sluice_status touch(Simulation &whose, sluice_queue *queue, const char *name, sluice_access access) {
    return whose.launch(queue, name, nothing, {{memory, 64, access}});
  }

  Group group;
  Simulation first{"link=1GB/s,latency=0s", group.group}, second{"link=1GB/s,latency=0s", group.group};
  void *memory = first.allocate(0, 1000);
  sluice_queue *a = first.queue(0, "a"), *b = second.queue(0, "b");
};

} // namespace

TEST_F(SimGroups, RaceWithEachOther) {
  EXPECT_EQ(touch(first, a, "writer", SLUICE_WRITE), SLUICE_OK);
  EXPECT_EQ(touch(second, b, "reader", SLUICE_READ), SLUICE_INTERNAL);
  EXPECT_EQ(second.error(), "race: kernel reader in queue b reads bytes 0 to 64 of allocation 0 of sim:0, which kernel "
                            "writer in queue a writes, and nothing orders the two");
}

TEST_F(SimGroups, AreOrderedByEvents) {
  EXPECT_EQ(touch(first, a, "writer", SLUICE_WRITE), SLUICE_OK);
  second.wait(b, first.record(a));
  EXPECT_EQ(touch(second, b, "reader", SLUICE_READ), SLUICE_OK);
}

TEST_F(SimGroups, AreNotOrderedByWhatOneHostHasWaitedFor) {
  EXPECT_EQ(touch(first, a, "writer", SLUICE_WRITE), SLUICE_OK);
  first.finish(a);
  EXPECT_EQ(touch(second, b, "reader", SLUICE_READ), SLUICE_INTERNAL);
}

TEST_F(SimGroups, MayUseHostMemoryThatAnotherHostIsDoneWith) {
  std::vector<char> used(64), done(64);
  sluice_queue *cpu = second.queue(SLUICE_HOST, "cpu");
  EXPECT_EQ(first.copy(a, SLUICE_HOST, done.data(), 0, memory, 64), SLUICE_OK);
  first.finish(a);
  EXPECT_EQ(second.launch(cpu, "fill", nothing, {{done.data(), 64, SLUICE_WRITE}}), SLUICE_OK) << second.error();
  EXPECT_EQ(first.copy(a, SLUICE_HOST, used.data(), 0, memory, 64), SLUICE_OK);
  EXPECT_EQ(second.launch(cpu, "fill", nothing, {{used.data(), 64, SLUICE_WRITE}}), SLUICE_INTERNAL);
}

/// So many accesses that those which one host has waited for would be forgotten, if it were alone.
TEST_F(SimGroups, RaceWithWhatAnotherHostWaitedForLongAgo) {
  EXPECT_EQ(touch(first, a, "writer", SLUICE_WRITE), SLUICE_OK);
  first.finish(a);
  auto *many = static_cast<char *>(first.allocate(0, 4096));
  for (size_t at = 0; at < 4096; at += 2)
    ASSERT_EQ(first.launch(a, "other", nothing, {{many + at, 1, SLUICE_WRITE}}), SLUICE_OK);
  EXPECT_EQ(touch(second, b, "reader", SLUICE_READ), SLUICE_INTERNAL);
  EXPECT_THAT(second.error(), HasSubstr("kernel writer in queue a writes"));
}

TEST_F(SimGroups, DoNotReleaseWhatAnotherStillUses) {
  EXPECT_EQ(touch(second, b, "reader", SLUICE_READ), SLUICE_OK);
  EXPECT_EQ(simulator().release(first.run, 0, memory), SLUICE_INTERNAL);
  EXPECT_THAT(first.error(), HasSubstr("the host has not waited for kernel reader in queue b"));
  second.finish(b); // a pool releases memory of ended programs in its own context
  EXPECT_EQ(simulator().release(first.run, 0, memory), SLUICE_OK);
}

TEST_F(SimGroups, HaveOneClockAndOneSetOfLinks) {
  std::vector<char> host(1000);
  void *other = second.allocate(0, 1000), *there = second.allocate(1, 1000);
  EXPECT_EQ(first.copy(a, SLUICE_HOST, host.data(), 0, memory, 1000), SLUICE_OK);
  EXPECT_EQ(second.copy(b, SLUICE_HOST, host.data(), 0, other, 1000), SLUICE_OK);
  EXPECT_NEAR(second.times(b).second, 2e-6, 1e-12);
  sluice_queue *c = second.queue(1, "c");
  second.wait(c, first.record(a));
  EXPECT_EQ(second.copy(c, 0, memory, 1, there, 1000), SLUICE_OK);
  EXPECT_NEAR(second.times(c).first, 1e-6, 1e-12);
}

TEST_F(SimGroups, CountTheirOwnCopies) {
  std::vector<char> host(1000);
  EXPECT_EQ(first.copy(a, SLUICE_HOST, host.data(), 0, memory, 1000), SLUICE_OK);
  second.wait(b, first.record(a));
  second.finish(b);
  size_t count = 0;
  EXPECT_EQ(simulator().copy_counts(second.run, nullptr, sizeof(sluice_copy_count), 0, &count), SLUICE_OK);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(simulator().copy_counts(first.run, nullptr, sizeof(sluice_copy_count), 0, &count), SLUICE_OK);
  EXPECT_EQ(count, 1u);
}

TEST_F(SimGroups, HaveTheSameSettings) {
  Simulation third("seed=3", group.group);
  EXPECT_EQ(third.status, SLUICE_USAGE);
  EXPECT_EQ(third.error(), "sim: 'seed=3' are other settings than those of the group");
}

TEST_F(SimGroups, RefuseEventsOfStrangers) {
  Simulation stranger;
  sluice_event *theirs = stranger.record(stranger.queue(0, "theirs"));
  EXPECT_EQ(simulator().wait(a, theirs), SLUICE_USAGE);
  EXPECT_EQ(first.error(), "sim: queue a waits for an event of a context that is not of its group");
}
