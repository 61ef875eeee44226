// Compares clocks and reduced waits with reachability by search, on random programs.
#include "passes/analysis/AccessHistory.h"
#include "passes/analysis/HappensBefore.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <random>
#include <set>

using namespace sluice::passes;

namespace {

/// Actions with their queues and dependences.
struct Program {
  unsigned numQueues;
  std::vector<unsigned> queue;
  std::vector<std::vector<unsigned>> after;
};

Program randomProgram(unsigned seed, unsigned numQueues, unsigned size) {
  std::mt19937 random(seed);
  Program program{numQueues, {}, {}};
  for (unsigned i = 0; i < size; ++i) {
    program.queue.push_back(random() % numQueues);
    std::set<unsigned> after;
    for (unsigned n = i == 0 ? 0 : random() % 4; n > 0; --n)
      after.insert(random() % i);
    program.after.emplace_back(after.begin(), after.end());
  }
  return program;
}

/// Edges of each action to earlier ones: `waits`, and the previous action of its queue.
using Edges = std::vector<std::set<unsigned>>;

Edges edgesOf(const Program &program, const std::vector<std::vector<unsigned>> &waits) {
  Edges edges(program.queue.size());
  std::vector<int> last(program.numQueues, -1);
  for (unsigned i = 0; i < edges.size(); ++i) {
    edges[i].insert(waits[i].begin(), waits[i].end());
    if (last[program.queue[i]] >= 0)
      edges[i].insert(unsigned(last[program.queue[i]]));
    last[program.queue[i]] = int(i);
  }
  return edges;
}

/// Whether edges lead from `to` to `from`.
bool reaches(const Edges &edges, unsigned to, unsigned from) {
  std::vector<unsigned> work{to};
  std::set<unsigned> seen;
  while (!work.empty()) {
    unsigned action = work.back();
    work.pop_back();
    for (unsigned before : edges[action]) {
      if (before == from)
        return true;
      if (seen.insert(before).second)
        work.push_back(before);
    }
  }
  return false;
}

class RandomPrograms : public testing::TestWithParam<unsigned> {};

} // namespace

TEST_P(RandomPrograms, clocks_agree_with_reachability) {
  Program program = randomProgram(GetParam(), 1 + GetParam() % 6, 60);
  HappensBefore known(program.numQueues);
  for (unsigned i = 0; i < program.queue.size(); ++i)
    known.issue(program.queue[i], program.after[i]);

  Edges edges = edgesOf(program, program.after);
  for (unsigned a = 0; a < known.size(); ++a)
    for (unsigned b = 0; b < known.size(); ++b)
      EXPECT_EQ(known.isBefore(a, b), reaches(edges, b, a)) << a << " before " << b;
}

TEST_P(RandomPrograms, waits_imply_everything_and_none_is_redundant) {
  Program program = randomProgram(GetParam() + 1000, 1 + GetParam() % 6, 60);
  HappensBefore known(program.numQueues);
  std::vector<std::vector<unsigned>> waits;
  for (unsigned i = 0; i < program.queue.size(); ++i) {
    auto reduced = known.issue(program.queue[i], program.after[i]);
    waits.emplace_back(reduced.begin(), reduced.end());
  }

  Edges edges = edgesOf(program, waits);
  for (unsigned i = 0; i < program.queue.size(); ++i)
    for (unsigned before : program.after[i])
      EXPECT_TRUE(reaches(edges, i, before)) << before << " before " << i;
  for (unsigned i = 0; i < program.queue.size(); ++i)
    for (unsigned wait : waits[i]) {
      Edges fewer = edges;
      fewer[i].erase(wait);
      EXPECT_FALSE(reaches(fewer, i, wait)) << i << " need not wait for " << wait;
    }
}

INSTANTIATE_TEST_SUITE_P(, RandomPrograms, testing::Range(0u, 40u));

TEST(happens_before, what_is_outside_of_queues_waits_for_the_fewest) {
  HappensBefore known(2);
  known.issue(0, {});
  known.issue(1, {0});
  EXPECT_EQ(known.reduce({0, 1}), (llvm::SmallVector<unsigned>{1}));
}

TEST(happens_before, what_the_issuer_has_waited_for_need_not_be_waited_for_again) {
  HappensBefore known(3);
  known.issue(0, {});
  known.issue(1, {0});
  known.await({1});
  EXPECT_EQ(known.reduce({0, 1}), (llvm::SmallVector<unsigned>{}));
  EXPECT_EQ(known.reduceIn(2, {0}), (llvm::SmallVector<unsigned>{}));
  EXPECT_EQ(known.issue(2, {0, 1}), (llvm::SmallVector<unsigned>{}));
  EXPECT_TRUE(known.isBefore(0, 2));
}

TEST(happens_before, what_would_be_next_in_a_queue_comes_after_its_last) {
  HappensBefore known(3);
  known.issue(0, {});
  known.issue(1, {0});
  EXPECT_EQ(known.reduceIn(1, {0}), (llvm::SmallVector<unsigned>{}));
  EXPECT_EQ(known.reduceIn(2, {0}), (llvm::SmallVector<unsigned>{0}));
}

TEST(access_history, a_write_conflicts_with_the_reads_since_the_last_write) {
  MemoryRange range{0, 0, 64};
  AccessHistory history(range);
  history.note(history.piecesOf(range), /*isWrite=*/true, 0, 0);
  history.note(history.piecesOf(range), /*isWrite=*/false, 1, 0);
  history.note(history.piecesOf(range), /*isWrite=*/false, 2, 1);
  history.note(history.piecesOf(range), /*isWrite=*/false, 3, 1);

  llvm::SmallVector<unsigned> after;
  history.conflicts(history.piecesOf(range), /*isWrite=*/true, after);
  EXPECT_EQ(after, (llvm::SmallVector<unsigned>{0, 1, 3}));
}

TEST(access_history, ranges_conflict_where_they_overlap) {
  MemoryRange low{0, 0, 64}, high{0, 64, 128}, both{0, 32, 96}, elsewhere{1, 0, 64};
  AccessHistory history({low, high, both, elsewhere});
  history.note(history.piecesOf(low), /*isWrite=*/true, 0, 0);
  history.note(history.piecesOf(high), /*isWrite=*/true, 1, 0);
  history.note(history.piecesOf(elsewhere), /*isWrite=*/true, 2, 0);

  llvm::SmallVector<unsigned> after;
  history.conflicts(history.piecesOf(both), /*isWrite=*/false, after);
  EXPECT_EQ(after, (llvm::SmallVector<unsigned>{0, 1}));
}
