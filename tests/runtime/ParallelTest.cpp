#include "runtime/device/Parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

using namespace sluice::runtime;

namespace {

/// Counts the executions of each task.
struct Counts {
  explicit Counts(int64_t tasks) : ran(static_cast<size_t>(tasks)) {}
  std::vector<std::atomic<int>> ran;

  static void run(void *context, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      ++static_cast<Counts *>(context)->ran[static_cast<size_t>(i)];
  }

  bool eachRan(int times) const {
    for (const std::atomic<int> &count : ran)
      if (count != times)
        return false;
    return true;
  }
};

class TeamTest : public testing::TestWithParam<int> {};

} // namespace

TEST_P(TeamTest, RunsEveryTaskOnce) {
  Team team(GetParam());
  for (int64_t tasks : {0, 1, 2, 3, 7, 64, 1000, 100'000}) {
    Counts counts(tasks);
    team.enter([&] { team.forEach(tasks, Counts::run, &counts); });
    EXPECT_TRUE(counts.eachRan(1)) << tasks;
  }
}

TEST_P(TeamTest, ManyShortStagesInARow) {
  Team team(GetParam());
  Counts counts(13);
  team.enter([&] {
    for (int i = 0; i < 20'000; ++i)
      team.forEach(13, Counts::run, &counts);
  });
  EXPECT_TRUE(counts.eachRan(20'000));
}

TEST_P(TeamTest, ManyStepsInARow) {
  Team team(GetParam());
  Counts counts(5);
  for (int i = 0; i < 2000; ++i)
    team.enter([&] { team.forEach(5, Counts::run, &counts); });
  EXPECT_TRUE(counts.eachRan(2000));
}

TEST_P(TeamTest, StagesAfterAPauseLongEnoughToPark) {
  Team team(GetParam());
  Counts counts(50);
  team.enter([&] {
    for (int i = 0; i < 20; ++i) {
      team.forEach(50, Counts::run, &counts);
      auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
      while (std::chrono::steady_clock::now() < until) {
      }
    }
  });
  EXPECT_TRUE(counts.eachRan(20));
}

TEST_P(TeamTest, OutsideEnterTheCallerRunsAll) {
  Team team(GetParam());
  Counts counts(100);
  team.forEach(100, Counts::run, &counts);
  EXPECT_TRUE(counts.eachRan(1));
}

TEST_P(TeamTest, AnExceptionLetsTheTeamGo) {
  Team team(GetParam());
  Counts counts(100);
  EXPECT_THROW(team.enter([] { throw std::runtime_error("no"); }), std::runtime_error);
  team.enter([&] { team.enter([&] { team.forEach(100, Counts::run, &counts); }); });
  EXPECT_TRUE(counts.eachRan(1));
}

INSTANTIATE_TEST_SUITE_P(Threads, TeamTest, testing::Values(1, 2, 4, 9), testing::PrintToStringParamName());
