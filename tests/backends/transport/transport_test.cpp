// Exchanges between processes, over each transport: their results, and their errors if a process differs, is stopped,
// dies or aborts.
#include "backends/transport/tcp/Socket.h"
#include "tests/backends/transport/FreeAddress.h"
#include "tests/runtime/Process.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <gmock/gmock.h>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using namespace sluice::test;
using namespace sluice::transport;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

namespace {

/// Ranks over tcp, each started here.
class Ranks {
public:
  explicit Ranks(std::string deadline = "30") : deadline_(std::move(deadline)) {}
  ~Ranks() {
    for (size_t at = ended_; at < all_.size(); ++at)
      all_[at]->signal(SIGKILL);
    for (size_t at = ended_; at < all_.size(); ++at)
      all_[at]->wait();
  }
  Ranks(const Ranks &) = delete;

  void start(const std::string &scenario, int rank, int size, const std::string &secret = "ours") {
    all_.push_back(std::make_unique<Process>(
        TRANSPORT_RANK, std::vector<std::string>{TRANSPORT_TCP, scenario, std::to_string(rank), std::to_string(size),
                                                 address, secret, deadline_}));
  }
  void startAll(const std::string &scenario, int size) {
    for (int rank = 0; rank < size; ++rank)
      start(scenario, rank, size);
  }
  /// What the next one says, of those that were started.
  std::string wait() {
    Process &next = *all_[ended_++];
    ProcessResult result = next.wait();
    return result.out + result.err;
  }
  std::vector<std::string> waitAll() {
    std::vector<std::string> said;
    while (ended_ < all_.size())
      said.push_back(wait());
    return said;
  }

  std::string address = freeAddress().text();

private:
  std::string deadline_;
  size_t ended_ = 0;
  std::vector<std::unique_ptr<Process>> all_;
};

class TcpRanks : public ::testing::TestWithParam<int> {};

} // namespace

static std::vector<std::string> said(const std::string &scenario, int size, const std::string &deadline = "30") {
  Ranks ranks(deadline);
  ranks.startAll(scenario, size);
  return ranks.waitAll();
}

TEST_P(TcpRanks, ExchangesEverything) {
  EXPECT_THAT(said("everything", GetParam(), "120"), Each(HasSubstr(": all is right\n")));
}
TEST_P(TcpRanks, ExchangesAtRandom) {
  EXPECT_THAT(said("randomly", GetParam(), "120"), Each(HasSubstr(": all is right, after 100\n")));
}

INSTANTIATE_TEST_SUITE_P(, TcpRanks, ::testing::Range(1, 6), ::testing::PrintToStringParamName());

TEST(Tcp, CarriesMessages) {
  EXPECT_THAT(said("messages", 2),
              ::testing::ElementsAre("rank 0: sent 12 bytes\n",
                                     "rank 1: 3 rank 0 sent a message of 12 bytes, where 8 were to come\n"));
}

//===- ranks that differ ------------------------------------------------------------------------------------------===//

static void expectDifference(const std::string &what, const std::string &why) {
  EXPECT_THAT(said("differ " + what, 3),
              Each(AllOf(HasSubstr(": 3 "),
                         HasSubstr("rank 2 differs from rank 0 in exchange 1, all-reduce of dw1: " + why + "\n"),
                         ::testing::Not(HasSubstr("another error")))));
}

TEST(Tcp, TellsOtherLabels) { expectDifference("label", "its label is 'dw2', not 'dw1'"); }
TEST(Tcp, TellsOtherCounts) { expectDifference("count", "its count is 4999, not 5000"); }
TEST(Tcp, TellsSmallCountsFromLarge) { expectDifference("small", "its count is 3, not 5000"); }
TEST(Tcp, TellsOtherKinds) { expectDifference("kind", "its kind is broadcast, not all-reduce"); }
TEST(Tcp, TellsOtherTypes) { expectDifference("type", "its element type is i32, not f32"); }
TEST(Tcp, TellsOtherReductions) { expectDifference("reduction", "its reduction is max, not sum"); }

//===- ranks that are lost ----------------------------------------------------------------------------------------===//

/// One at least hears of it from rank 2 itself, and the second perhaps of the first, which says why before it goes.
TEST(Tcp, NamesWhoDied) {
  std::vector<std::string> all = said("killed", 3);
  EXPECT_EQ(all[2], "rank 2: has begun\n");
  EXPECT_THAT(all[0] + all[1], HasSubstr(": rank 2 went away\n"));
  for (int rank : {0, 1}) {
    std::string own = ": 7 all-reduce of gradient of fc1.weight of rank " + std::to_string(rank) + ": rank ";
    std::string other = std::to_string(1 - rank);
    EXPECT_THAT(all[static_cast<size_t>(rank)],
                AnyOf(HasSubstr(own + "2 went away\n"), HasSubstr(own + other + " was aborted, because of rank 2\n")));
  }
}

TEST(Tcp, NamesWhoDoesNotCome) {
  Ranks ranks("2");
  ranks.startAll("stopped", 3);
  std::vector<std::string> all = {ranks.wait(), ranks.wait()};
  std::string late = ": 6 rank 2 has not come to all-reduce of gradient of fc1.weight for 2 s\n";
  EXPECT_THAT(all[0] + all[1], HasSubstr(late));
  for (int rank : {0, 1}) { // the second to see it may hear of the first before
    std::string other = ": 7 all-reduce of gradient of fc1.weight of rank " + std::to_string(rank) + ": rank " +
                        std::to_string(1 - rank);
    EXPECT_THAT(all[static_cast<size_t>(rank)],
                AnyOf(HasSubstr(late), HasSubstr(other + " was aborted, because of rank 2\n")));
  }
}

TEST(Tcp, TellsAllOfAnAbort) {
  std::vector<std::string> all = said("aborts", 3);
  EXPECT_THAT(all[2], HasSubstr(": 7 rank 2 was aborted\n"));
  EXPECT_THAT(all[1], HasSubstr("fc1.weight of rank 1: rank 2 was aborted\n"));
  EXPECT_THAT(all[0],
              AnyOf(HasSubstr("of rank 0: rank 2 was aborted"), HasSubstr("rank 1 was aborted, because of rank 2")));
}

//===- who meets --------------------------------------------------------------------------------------------------===//

TEST(Tcp, RunsDoNotMeet) {
  Ranks one, other;
  one.startAll("randomly", 2);
  other.startAll("randomly", 2);
  EXPECT_THAT(one.waitAll(), Each(HasSubstr(": all is right")));
  EXPECT_THAT(other.waitAll(), Each(HasSubstr(": all is right")));
}

TEST(Tcp, KeepsOutOtherSecrets) {
  Ranks ranks("3");
  ranks.start("randomly", 0, 2, "ours");
  ranks.start("randomly", 1, 2, "theirs");
  EXPECT_EQ(ranks.wait(), "rank 0: 6 rank 1 has not come to " + ranks.address + " within 3 s\n");
  EXPECT_EQ(ranks.wait(), "rank 1: 3 the store at " + ranks.address + " is of another run: it has another secret\n");
}

TEST(Tcp, SaysThatAPortIsTaken) {
  Ranks ranks("3");
  Socket taken = listenAt(addressOf(ranks.address));
  ranks.start("randomly", 0, 2);
  EXPECT_EQ(ranks.wait(), "rank 0: 3 cannot listen at " + ranks.address + ": Address already in use\n");
}

TEST(Tcp, NamesRanksThatHaveNotCome) {
  Ranks ranks("2");
  ranks.start("randomly", 0, 4);
  ranks.start("randomly", 2, 4);
  EXPECT_EQ(ranks.wait(), "rank 0: 6 ranks 1 and 3 have not come to " + ranks.address + " within 2 s\n");
  EXPECT_EQ(ranks.wait(), "rank 2: 6 ranks 1 and 3 have not come to " + ranks.address + " within 2 s\n");
  Ranks alone("1");
  alone.start("randomly", 1, 2);
  EXPECT_THAT(alone.wait(), StartsWith("rank 1: 6 rank 0 has not come within 1 s: cannot connect to"));
}

TEST(Tcp, TellsContradictions) {
  Ranks ranks("3");
  ranks.start("randomly", 0, 3);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  ranks.start("randomly", 1, 4);
  ranks.start("randomly", 2, 3);
  EXPECT_THAT(ranks.waitAll(), ::testing::Contains("rank 1: 2 rank 1 is one of 4, but others are of 3\n"));
}

/// At the port that all know; of the others see rendezvous_test.cpp.
TEST(Tcp, CutsOffStrangers) {
  Ranks ranks;
  ranks.start("randomly", 0, 2);
  std::mt19937 random(3);
  for (int i = 0; i < 20; ++i) {
    Socket stranger = connectTo(addressOf(ranks.address), std::chrono::steady_clock::now() + std::chrono::seconds(20));
    std::string bytes(random() % 1000, '\0');
    for (char &byte : bytes)
      byte = static_cast<char>(random());
    if (i % 2)
      bytes = std::string("\x89SL1\x01\x00\x00\xff\xff\xff\xff", 11) + bytes; // a secret of 4 GB
    sendAll(stranger, bytes, std::chrono::steady_clock::now() + std::chrono::seconds(1));
  }
  ranks.start("randomly", 1, 2);
  EXPECT_THAT(ranks.waitAll(), Each(HasSubstr(": all is right")));
}

//===- Open MPI, whose launcher starts the ranks ------------------------------------------------------------------===//

static constexpr const char *kMpirun = "/usr/bin/mpirun";

namespace {

class OpenMpi : public ::testing::Test {
protected:
  void SetUp() override {
    if (!*TRANSPORT_OPENMPI)
      GTEST_SKIP() << "the transport openmpi was not built: Open MPI's mpi.h was not found";
    if (!std::filesystem::exists(kMpirun))
      GTEST_SKIP() << kMpirun << " is absent";
  }
};

} // namespace

/// What all ranks say, one after another.
static std::string saidByMpi(const std::string &scenario, int size) {
  std::vector<std::string> arguments = {"--allow-run-as-root", "--oversubscribe", "-n", std::to_string(size)};
  arguments.insert(arguments.end(), {TRANSPORT_RANK, TRANSPORT_OPENMPI, scenario, "60"});
  ProcessResult result = run(kMpirun, arguments);
  return result.out + result.err;
}

static int linesWith(const std::string &text, const std::string &part) {
  std::istringstream lines(text);
  int count = 0;
  for (std::string line; std::getline(lines, line);)
    count += line.find(part) != std::string::npos;
  return count;
}

TEST_F(OpenMpi, ExchangesEverything) {
  std::string said = saidByMpi("everything", 3);
  EXPECT_EQ(linesWith(said, ": all is right"), 3) << said;
}

TEST_F(OpenMpi, ExchangesAtRandom) {
  for (int size : {1, 2, 4}) {
    std::string said = saidByMpi("randomly", size);
    EXPECT_EQ(linesWith(said, ": all is right, after 100"), size) << said;
  }
}

TEST_F(OpenMpi, TellsOtherCounts) {
  std::string said = saidByMpi("differ count", 3);
  EXPECT_EQ(linesWith(said, "rank 2 differs from rank 0 in exchange 1, all-reduce of dw1: its count is 4999, not 5000"),
            3)
      << said;
}

TEST_F(OpenMpi, RefusesRanksThatItDidNotStart) {
  ProcessResult alone = run(TRANSPORT_RANK, {TRANSPORT_OPENMPI, "randomly", "0", "2", "127.0.0.1:1", "ours", "5"});
  EXPECT_THAT(alone.out, StartsWith("rank 0: 2 openmpi: this is rank 0 of 2, but for Open MPI it is rank 0 of 1;"));
}
