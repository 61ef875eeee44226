// Communication between processes, simulated by threads, over a transport with fault injection.
#include "runtime/launch/ProcessGroup.h"
#include "MemoryTransport.h"
#include "runtime/base/Status.h"

#include <chrono>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <thread>

using namespace sluice::runtime;
using namespace sluice::test;

using Bytes = std::vector<std::byte>;

/// The secret of a run, by which its ranks connect.
static std::string runName() { return testing::UnitTest::GetInstance()->current_test_info()->name(); }

/// Runs `body` in one thread per rank and returns each thread's status. The first rank has the deadline; the others
/// wait longer, so that the first rank's deadline expires first.
static std::vector<Status> together(int size, const std::function<void(ProcessGroup &)> &body, double deadline = 30) {
  std::vector<Status> ends(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      ends[static_cast<size_t>(rank)] = guarded([&] {
        ProcessGroup group(memoryTransport(), {rank, size, rank, "", runName(), rank == 0 ? deadline : 30});
        body(group);
      });
    });
  for (std::thread &thread : threads)
    thread.join();
  return ends;
}

static void expectAll(const std::vector<Status> &ends, ExitCode code, const std::string &message) {
  for (const Status &end : ends) {
    EXPECT_EQ(end.code, code) << end.message;
    EXPECT_EQ(end.message, message);
  }
}

static Bytes bytesOf(std::string_view text) {
  std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST(ProcessGroup, GathersWhatEachHas) {
  std::vector<Bytes> all;
  expectAll(together(3,
                     [&](ProcessGroup &group) {
                       const char *letters[] = {"aaabb", "", "abb"};
                       std::vector<Bytes> got = group.gather("letters", bytesOf(letters[group.rank()]), {5, 0, 3});
                       if (group.isFirst())
                         all = got;
                       else
                         EXPECT_TRUE(got.empty());
                     }),
            ExitCode::ok, "");
  EXPECT_EQ(all, (std::vector<Bytes>{bytesOf("aaabb"), {}, bytesOf("abb")}));
}

TEST(ProcessGroup, BroadcastsWhatTheFirstHas) {
  expectAll(together(4,
                     [](ProcessGroup &group) {
                       int value = group.isFirst() ? 7 : group.rank();
                       group.broadcast("a number", std::as_writable_bytes(std::span(&value, 1)));
                       EXPECT_EQ(value, 7);
                     }),
            ExitCode::ok, "");
}

TEST(ProcessGroup, AgreesOnEqualLines) {
  expectAll(together(3, [](ProcessGroup &group) { group.agree("the start", {{"the seed", "3"}, {"the batch", ""}}); }),
            ExitCode::ok, "");
}

TEST(ProcessGroup, AgreesOnNothing) {
  expectAll(together(2, [](ProcessGroup &group) { group.agree("nothing", {}); }), ExitCode::ok, "");
}

TEST(ProcessGroup, NamesTheFirstRankAndLineThatDiffer) {
  expectAll(together(4,
                     [](ProcessGroup &group) {
                       bool differs = group.rank() >= 2;
                       group.agree("the start", {{"the model", "lenet"},
                                                 {"the seed", differs ? "4" : "3"},
                                                 {"the batch", group.rank() == 3 ? "9" : "8"}});
                     }),
            ExitCode::invalid, "rank 2 differs from rank 0: the seed is 4, and 3 in rank 0");
}

TEST(ProcessGroup, NamesALineThatIsNotThere) {
  expectAll(together(2,
                     [](ProcessGroup &group) {
                       std::vector<NamedText> lines = {{"a", "1"}, {"b", "2"}};
                       if (!group.isFirst())
                         lines.pop_back();
                       group.agree("the start", lines);
                     }),
            ExitCode::invalid, "rank 1 differs from rank 0: it lacks b, which rank 0 has");
}

TEST(ProcessGroup, TellsWhatEachChoseAndWhy) {
  auto choose = [](ProcessGroup &group) {
    bool hasNone = group.rank() % 2 == 1;
    group.agreeOnChoice("the list", hasNone ? "cpu" : "cuda:0", hasNone ? "cuda:0: no driver" : "");
  };
  expectAll(
      together(4, choose), ExitCode::invalid,
      "the list is not the same in all processes: ranks 0, 2 chose cuda:0; ranks 1, 3 chose cpu (cuda:0: no driver)");
}

TEST(ProcessGroup, WhoCanChooseNothingLacksSomething) {
  auto choose = [](ProcessGroup &group) {
    group.agreeOnChoice("the list", group.isFirst() ? "cuda:0" : ProcessGroup::nothing,
                        group.isFirst() ? "" : "no driver");
  };
  expectAll(together(2, choose), ExitCode::unsupported,
            "the list is not the same in all processes: rank 0 chose cuda:0; rank 1 chose none (no driver)");
}

// Different reasons for the same choice, and ranks without a choice, are no differences.
TEST(ProcessGroup, AgreesOnEqualChoices) {
  auto choose = [](ProcessGroup &group) {
    group.agreeOnChoice("the list", group.rank() == 2 ? "" : "cpu", concat("reason ", group.rank()));
  };
  expectAll(together(3, choose), ExitCode::ok, "");
}

TEST(ProcessGroup, NamesARankThatIsSilent) {
  setWireFault(runName(), 1, WireFault::silent);
  auto begin = std::chrono::steady_clock::now();
  std::vector<Status> ends = together(3, [](ProcessGroup &group) { group.meet("the end of the run"); }, 0.3);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(ends[0].code, ExitCode::deadline);
  EXPECT_EQ(ends[0].message, "the end of the run: rank 1 did not come within 0.3 s");
}

TEST(ProcessGroup, EndsTheOthersWithItsError) {
  std::vector<Status> ends = together(3, [](ProcessGroup &group) {
    if (group.rank() == 2)
      failInvalid("no data");
    group.meet("the start");
  });
  EXPECT_EQ(ends[2].message, "no data");
  for (size_t rank : {0, 1}) {
    EXPECT_EQ(ends[rank].code, ExitCode::peerLost);
    EXPECT_EQ(ends[rank].message, "the start: rank 2 ended the run");
  }
}

/// A launcher kills the other processes when one exits, so each process must report its error first.
TEST(ProcessGroup, NobodyGoesAwayBeforeAllKnowWhy) {
  setWireFault(runName(), 2, WireFault::late);
  auto begin = std::chrono::steady_clock::now();
  expectAll(together(3,
                     [&](ProcessGroup &group) {
                       Status end =
                           guarded([&] { group.agree("the start", {{"rank", std::to_string(group.rank())}}); });
                       EXPECT_GE(std::chrono::steady_clock::now() - begin, 2 * kLateness) << "rank " << group.rank();
                       EXPECT_TRUE(group.endsAlike());
                       throw Error(end.code, end.message);
                     }),
            ExitCode::invalid, "rank 1 differs from rank 0: rank is 1, and 0 in rank 0");
}

TEST(ProcessGroup, TellsThatARankWentAway) {
  std::vector<Status> ends = together(2, [](ProcessGroup &group) {
    if (group.isFirst())
      group.meet("the start");
  });
  EXPECT_EQ(ends[0].code, ExitCode::peerLost);
  EXPECT_EQ(ends[0].message, "the start: rank 1 went away");
}

TEST(ProcessGroup, RefusesAMessageOfAnotherSize) {
  setWireFault(runName(), 1, WireFault::longer);
  std::vector<Status> ends = together(2, [](ProcessGroup &group) { group.gather("rows", Bytes(4), {4, 4}); });
  EXPECT_EQ(ends[0].code, ExitCode::invalid);
  EXPECT_EQ(ends[0].message, "rows: rank 1 sent 5 bytes, and not 4");
}

TEST(ProcessGroup, TellsWhyItDoesNotOpen) {
  Status status = guarded([] { ProcessGroup(memoryTransport(), {0, 2, 0, "", runName(), 0.01}); });
  EXPECT_EQ(status.code, ExitCode::deadline);
  EXPECT_EQ(status.message, "transport 'memory': not all ranks came");
}
