// Properties of NCCL's exchanges only: ranks in other processes, errors that NCCL detects, and errors without NCCL. The
// conformance suite tests the exchanges of every backend.
#include "tests/backends/cuda/RankProcesses.h"

#include <chrono>
#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

namespace sluice::test {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;
using testing::UnorderedElementsAre;

static std::string inOneProcess(const Environment &environment, const std::function<std::string()> &body) {
  return inProcesses(1, [&](int32_t, const ShareId &) { return body(); }, environment)[0];
}

static std::string whatAnIdSays(const Environment &environment) {
  return inOneProcess(environment, [&] {
    DeviceRank rank(loadCudaRunHalf(environment));
    rank.makeId();
    return std::string("made");
  });
}

TEST(CudaCollectives, SayThatThereIsNoNccl) {
  EXPECT_EQ(whatAnIdSays({}), "made");
  EXPECT_THAT(whatAnIdSays({{"SLUICE_NCCL", "/nowhere/libnccl.so"}}),
              AllOf(StartsWith("4: NCCL, through which CUDA devices exchange, was not found"),
                    HasSubstr("looked for /nowhere/libnccl.so"), HasSubstr("nvidia-nccl")));
  EXPECT_EQ(whatAnIdSays({{"SLUICE_NCCL", "libm.so.6"}}), "4: libm.so.6 has no ncclGetVersion, which NCCL 2.14 has");
  EXPECT_THAT(whatAnIdSays({{"CUDA_EMU_NCCL_VERSION", "21304"}}),
              AllOf(StartsWith("4: "), HasSubstr("is NCCL 2.13.4, and 2.14.0 or later is needed")));
}

TEST(CudaCollectives, NeedNothingWhereNobodyExchanges) {
  std::string said = inOneProcess({}, [] {
    DeviceRank rank(loadCudaRunHalf({{"SLUICE_NCCL", "/nowhere/libnccl.so"}}));
    rank.wait();
    return std::string("works");
  });
  EXPECT_EQ(said, "works");
}

TEST(CudaCollectives, RefuseRanksOfTheHostAndCaptures) {
  std::string host = inOneProcess({}, [] {
    DeviceRank rank(loadCudaRunHalf({}), 0);
    sluice_unique_id id = rank.makeId();
    sluice_communicator_options options{sizeof options, &id, 0, 1, SLUICE_HOST, nullptr};
    rank.check(rank.table().init(rank.run, &options, &rank.communicator));
    return std::string("made");
  });
  EXPECT_EQ(host, "4: cuda exchanges among devices, and not with the host");
  std::string captured = inOneProcess({}, [] {
    DeviceRank rank(loadCudaRunHalf({}), 0);
    rank.join(rank.makeId(), 0, 1);
    rank.half.capture_begin(rank.queue);
    rank.put(SLUICE_ALL_REDUCE, 4);
    return std::string("captured");
  });
  EXPECT_EQ(captured, "2: cuda:0: a queue that captures cannot exchange with other ranks");
}

TEST(CudaCollectives, RefuseSumsInATree) {
  std::string added = inOneProcess({}, [] {
    DeviceRank rank(loadCudaRunHalf({}), 0);
    rank.join(rank.makeId(), 0, 1);
    rank.put(SLUICE_ALL_REDUCE, 4, {}, SLUICE_TREE_SUM);
    return std::string("added");
  });
  EXPECT_EQ(added, "4: NCCL does not add in a fixed order; use one replica, or leave out --deterministic");
}

class CudaProcesses : public testing::TestWithParam<int32_t> {};

TEST_P(CudaProcesses, Exchange) {
  int32_t size = GetParam();
  std::vector<size_t> counts;
  for (int32_t rank = 0; rank < size; ++rank)
    counts.push_back(size_t(rank));
  std::vector<std::string> said = inProcesses(size, [&](int32_t number, const ShareId &share) {
    Environment environment = {{"CUDA_EMU_DEVICES", std::to_string(size)}, {"CUDA_EMU_SEED", std::to_string(number)}};
    DeviceRank rank(loadCudaRunHalf(environment), number);
    rank.join(share(rank), number, size);
    std::string text;
    for (int round = 0; round < 20; ++round) {
      float largest = rank.exchange(SLUICE_ALL_REDUCE, {float(10 * round + (number * 3 + round) % size)})[0];
      text += largest == float(10 * round + size - 1) ? "" : "round " + std::to_string(round) + " is wrong; ";
      std::vector<float> mine(counts[size_t(number)], float(number));
      std::vector<float> all = rank.exchange(SLUICE_ALL_GATHER, mine, counts);
      for (int32_t other = 0, at = 0; other < size; ++other)
        for (int32_t i = 0; i < other; ++i, ++at)
          text += all.at(size_t(at)) == float(other) ? "" : "a share is wrong; ";
    }
    return text.empty() ? "right" : text;
  });
  EXPECT_THAT(said, Each("right"));
}

INSTANTIATE_TEST_SUITE_P(OfOneDeviceEach, CudaProcesses, testing::Values(2, 4));

TEST(CudaCollectives, RefuseTwoRanksOfOneDevice) {
  std::vector<std::string> said = inProcesses(2, [&](int32_t number, const ShareId &share) {
    DeviceRank rank(loadCudaRunHalf({}), 0);
    rank.join(share(rank), number, 2, /*patience=*/1);
    return std::string("made");
  });
  EXPECT_THAT(said,
              UnorderedElementsAre(StartsWith("6: "), AllOf(StartsWith("2: "), HasSubstr("Duplicate GPU detected"))));
}

/// Rank 1 exchanges once and then calls `go`; returns the final error of rank 0, which continues.
static std::string whatIsToldOf(const std::function<void(DeviceRank &)> &go) {
  return inProcesses(2, [&](int32_t number, const ShareId &share) {
    DeviceRank rank(loadCudaRunHalf({}), number);
    rank.join(share(rank), number, 2);
    rank.exchange(SLUICE_ALL_REDUCE, {1.0f});
    if (number == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      go(rank);
      return std::string("gone");
    }
    rank.put(SLUICE_ALL_REDUCE, 1);
    try {
      rank.wait();
    } catch (const std::exception &error) {
      return error.what() + (rank.error() == SLUICE_PEER_LOST ? std::string() : "; and no error of the communicator");
    }
    return std::string("nothing");
  })[0];
}

TEST(CudaCollectives, AreToldOfProcessesThatAreLost) {
  auto isLost = AllOf(StartsWith("7: rank 0 on cuda:0: NCCL 2.28.9: a remote error: rank 1"));
  EXPECT_THAT(whatIsToldOf([](DeviceRank &rank) { rank.abort(); }), isLost);
  EXPECT_THAT(whatIsToldOf([](DeviceRank &rank) { rank.leave(); }), isLost);
  EXPECT_THAT(whatIsToldOf([](DeviceRank &) { raise(SIGKILL); }), isLost);
}

/// The error of waiting for an exchange in which NCCL detects an error.
static std::string whatComesOfResult(int result) {
  Environment environment = {{"CUDA_EMU_NCCL_FAULT", std::to_string(result) + "@0:2"}};
  return inOneProcess(environment, [&] {
    DeviceRank rank(loadCudaRunHalf(environment));
    rank.join(rank.makeId(), 0, 1);
    rank.exchange(SLUICE_ALL_REDUCE, {1.0f});
    rank.put(SLUICE_ALL_REDUCE, 1);
    rank.wait();
    return std::string("nothing");
  });
}

TEST(CudaCollectives, HaveAStatusForWhatNcclFinds) {
  for (auto [result, status] : {std::pair(1, "5: "), {2, "5: "}, {3, "70: "}, {4, "2: "}, {5, "2: "}, {6, "7: "}})
    EXPECT_THAT(whatComesOfResult(result), AllOf(StartsWith(status), HasSubstr("a planted fault"))) << result;
}

TEST(CudaCollectives, WaitForAbsentRanksUntilTheDeadline) {
  std::string said = inOneProcess({}, [] {
    DeviceRank rank(loadCudaRunHalf({}));
    rank.join(rank.makeId(), 0, 2, /*patience=*/0.1);
    return std::string("made");
  });
  EXPECT_THAT(said, AllOf(StartsWith("6: "), HasSubstr("rank 0 on cuda:0: not all ranks came within 0.1")));
}

} // namespace sluice::test
