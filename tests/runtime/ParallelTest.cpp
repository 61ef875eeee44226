#include "runtime/device/Parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
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

using checklist_56_threads = TeamTest;

// Every task waits until as many tasks run as there are threads.
TEST_P(checklist_56_threads, AreExactlyThatMany) {
  struct Meeting {
    explicit Meeting(int threads) : barrier(threads) {}
    std::barrier<> barrier;
    std::mutex mutex;
    std::set<std::thread::id> ids;
  } meeting(GetParam());
  Team team(GetParam());
  auto wait = [](void *context, int64_t begin, int64_t end) {
    auto *its = static_cast<Meeting *>(context);
    for (int64_t i = begin; i < end; ++i) {
      its->barrier.arrive_and_wait();
      std::lock_guard lock(its->mutex);
      its->ids.insert(std::this_thread::get_id());
    }
  };
  for (int call = 0; call < 3; ++call)
    team.enter([&] { team.forEach(GetParam(), wait, &meeting); });
  EXPECT_EQ(meeting.ids.size(), size_t(GetParam()));
}

// The best of several rounds: other processes make some slower.
TEST(checklist_56_threads_beyond_the_cores, CostLessThanTwice) {
  auto secondsOf = [](unsigned threads) {
    Team team{int(threads)};
    std::atomic<int64_t> sum = 0;
    auto work = [](void *context, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        uint64_t state = uint64_t(i);
        for (int step = 0; step < 20'000; ++step)
          state = state * 6364136223846793005u + 1442695040888963407u;
        *static_cast<std::atomic<int64_t> *>(context) += int64_t(state >> 60);
      }
    };
    double best = 1e9;
    for (int round = 0; round < 7; ++round) {
      auto start = std::chrono::steady_clock::now();
      team.enter([&] {
        for (int stage = 0; stage < 10; ++stage)
          team.forEach(64, work, &sum);
      });
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
  };
  unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  EXPECT_LT(secondsOf(4 * cores), 2 * secondsOf(cores));
}

INSTANTIATE_TEST_SUITE_P(Threads, checklist_56_threads, testing::Values(1, 2, 4, 9), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Threads, TeamTest, testing::Values(1, 2, 4, 9), testing::PrintToStringParamName());
