// Properties of the host's exchanges only: many pieces on several threads, the order of queues, and the end of ranks.
#include "sluice/backend/collectives.h"
#include "sluice/backend/host.h"
#include "sluice/backend/run.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <gmock/gmock.h>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using ::testing::Each;
using ::testing::HasSubstr;

static const sluice_backend_run &half() { return *sluice_host_backend()->run; }
static const sluice_backend_collectives &exchanges() { return *half().collectives; }

/// Two threads, each with every other task.
static void runOnTwoThreads(void *, int64_t tasks, void (*function)(void *, int64_t, int64_t), void *argument) {
  auto runEverySecond = [=](int64_t first) {
    for (int64_t task = first; task < tasks; task += 2)
      function(argument, task, task + 1);
  };
  std::thread other(runEverySecond, 1);
  runEverySecond(0);
  other.join();
}

static const sluice_run_services twoThreads{sizeof twoThreads, nullptr, runOnTwoThreads};

namespace {

struct Group {
  Group() { EXPECT_EQ(half().group_create(&group), SLUICE_OK); }
  ~Group() { half().group_destroy(group); }
  Group(const Group &) = delete;

  sluice_group *group = nullptr;
};

struct Context {
  explicit Context(sluice_group *group = nullptr) {
    sluice_run_options options{sizeof options, &twoThreads, "", group};
    EXPECT_EQ(half().open(&options, &run), SLUICE_OK);
  }
  ~Context() {
    for (sluice_communicator *end : ends)
      exchanges().destroy(end);
    for (sluice_queue *queue : queues)
      half().queue_destroy(queue);
    half().close(run);
  }
  Context(const Context &) = delete;

  std::string error() { return half().last_error(run); }
  sluice_unique_id id() {
    sluice_unique_id id;
    EXPECT_EQ(exchanges().unique_id(run, &id), SLUICE_OK);
    return id;
  }
  sluice_status tryJoin(const sluice_unique_id &id, int32_t rank, int32_t size, sluice_communicator *&end,
                        int32_t device = SLUICE_HOST) {
    sluice_communicator_options options{sizeof options, &id, rank, size, device, nullptr};
    return exchanges().init(run, &options, &end);
  }
  sluice_communicator *join(const sluice_unique_id &id, int32_t rank, int32_t size) {
    sluice_communicator *end = nullptr;
    EXPECT_EQ(tryJoin(id, rank, size, end), SLUICE_OK) << error();
    return ends.emplace_back(end);
  }
  sluice_queue *queue(int32_t device = SLUICE_HOST) {
    sluice_queue *queue = nullptr;
    EXPECT_EQ(half().queue_create(run, device, SLUICE_QUEUE_COMMUNICATION, "exchanges", &queue), SLUICE_OK);
    return queues.emplace_back(queue);
  }

  sluice_run *run = nullptr;
  std::vector<sluice_communicator *> ends;
  std::vector<sluice_queue *> queues;
};

} // namespace

template <typename T>
static sluice_status allReduce(sluice_communicator *end, sluice_queue *queue, std::vector<T> &values,
                               sluice_dtype dtype, const char *label = "dw1", sluice_reduction reduction = SLUICE_SUM) {
  sluice_exchange exchange{sizeof exchange, SLUICE_ALL_REDUCE, dtype,         reduction, 0,
                           values.data(),   values.data(),     values.size(), nullptr,   label};
  return exchanges().exchange(end, queue, &exchange);
}

static sluice_status allReduce(sluice_communicator *end, sluice_queue *queue, std::vector<float> &values) {
  return allReduce(end, queue, values, SLUICE_DTYPE_f32);
}

/// Ranks with a context each, all of a group.
static std::vector<std::unique_ptr<Context>> contextsOf(const Group &group, size_t size) {
  std::vector<std::unique_ptr<Context>> contexts;
  for (size_t rank = 0; rank < size; ++rank)
    contexts.push_back(std::make_unique<Context>(group.group));
  sluice_unique_id id = contexts[0]->id();
  for (size_t rank = 0; rank < size; ++rank) {
    contexts[rank]->join(id, static_cast<int32_t>(rank), static_cast<int32_t>(size));
    contexts[rank]->queue();
  }
  return contexts;
}

template <typename Body> static void inThreads(size_t size, const Body &body) {
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&body, rank] { body(rank); });
  for (std::thread &thread : threads)
    thread.join();
}

//===- sums -------------------------------------------------------------------------------------------------------===//

/// Values whose sum depends on the order.
static std::vector<float> valuesOf(size_t rank, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = (rank == 1 ? -1e7f : rank == 0 ? 1e7f : 0.3f) + static_cast<float>(i * (rank + 3) % 1009) * 0.37f;
  return values;
}

TEST(CpuExchanges, AddLargeSumsInTheOrderOfRanks) {
  constexpr size_t kRanks = 3, kCount = 300'007, kRounds = 5;
  Group group;
  std::vector<std::unique_ptr<Context>> contexts = contextsOf(group, kRanks);
  std::vector<float> first = valuesOf(0, kCount), second = valuesOf(1, kCount), third = valuesOf(2, kCount);
  std::vector<float> sum(kCount);
  for (size_t i = 0; i < kCount; ++i)
    sum[i] = (first[i] + second[i]) + third[i];
  for (size_t round = 0; round < kRounds; ++round)
    inThreads(kRanks, [&](size_t rank) {
      std::vector<float> values = valuesOf(rank, kCount);
      std::this_thread::sleep_for(std::chrono::milliseconds((rank + round) % kRanks));
      EXPECT_EQ(allReduce(contexts[rank]->ends[0], contexts[rank]->queues[0], values), SLUICE_OK);
      EXPECT_TRUE(values == sum);
    });
  int64_t done = 0, bytes = 0;
  EXPECT_EQ(exchanges().counts(contexts[1]->ends[0], SLUICE_ALL_REDUCE, &done, &bytes), SLUICE_OK);
  EXPECT_EQ(done, int64_t(kRounds));
  EXPECT_EQ(bytes, int64_t(kRounds * kCount * sizeof(float)));
}

/// Also for numbers of ranks that are not powers of two.
TEST(CpuExchanges, AddTreeSumsInATree) {
  for (size_t ranks : {1, 2, 3, 4, 6, 8})
    for (size_t count : {5, 70'007}) {
      Group group;
      std::vector<std::unique_ptr<Context>> contexts = contextsOf(group, ranks);
      std::vector<std::vector<float>> sums;
      for (size_t rank = 0; rank < ranks; ++rank)
        sums.push_back(valuesOf(rank, count));
      for (size_t width = 1; width < ranks; width *= 2)
        for (size_t left = 0; left + width < ranks; left += 2 * width)
          for (size_t i = 0; i < count; ++i)
            sums[left][i] += sums[left + width][i];
      inThreads(ranks, [&](size_t rank) {
        std::vector<float> values = valuesOf(rank, count);
        sluice_communicator *end = contexts[rank]->ends[0];
        EXPECT_EQ(allReduce(end, contexts[rank]->queues[0], values, SLUICE_DTYPE_f32, "dw1", SLUICE_TREE_SUM),
                  SLUICE_OK);
        EXPECT_TRUE(values == sums[0]) << "of rank " << rank << " of " << ranks;
      });
    }
}

TEST(CpuExchanges, FindThePositiveZeroLarger) {
  Group group;
  std::vector<std::unique_ptr<Context>> contexts = contextsOf(group, 3);
  inThreads(3, [&](size_t rank) {
    std::vector<float> values = {rank == 1 ? 0.0f : -0.0f, -0.0f};
    sluice_communicator *end = contexts[rank]->ends[0];
    EXPECT_EQ(allReduce(end, contexts[rank]->queues[0], values, SLUICE_DTYPE_f32, "dw1", SLUICE_MAX), SLUICE_OK);
    EXPECT_FALSE(std::signbit(values[0]));
    EXPECT_TRUE(std::signbit(values[1]));
  });
}

/// 256 + 1 is 256 in bf16, and 256 + 1 + 1 is 258.
TEST(CpuExchanges, RoundSumsOfHalvesOnce) {
  Group group;
  std::vector<std::unique_ptr<Context>> contexts = contextsOf(group, 3);
  inThreads(3, [&](size_t rank) {
    std::vector<sluice_bf16> values(70'000, sluice_bf16(rank == 0 ? 256.0f : 1.0f));
    EXPECT_EQ(allReduce(contexts[rank]->ends[0], contexts[rank]->queues[0], values, SLUICE_DTYPE_bf16), SLUICE_OK);
    EXPECT_THAT(std::vector<float>(values.begin(), values.end()), Each(258.0f));
  });
}

/// Shares from none to several pieces, in place.
TEST(CpuExchanges, ScatterSharesOfManyPieces) {
  const std::vector<size_t> counts = {100'001, 0, 70'003};
  Group group;
  std::vector<std::unique_ptr<Context>> contexts = contextsOf(group, 3);
  inThreads(3, [&](size_t rank) {
    std::vector<int64_t> values(170'004);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<int64_t>(i * (rank + 1));
    size_t begin = rank == 0 ? 0 : 100'001;
    sluice_exchange exchange{sizeof exchange,
                             SLUICE_REDUCE_SCATTER,
                             SLUICE_DTYPE_i64,
                             SLUICE_SUM,
                             0,
                             values.data(),
                             values.data() + begin,
                             0,
                             counts.data(),
                             nullptr};
    EXPECT_EQ(exchanges().exchange(contexts[rank]->ends[0], contexts[rank]->queues[0], &exchange), SLUICE_OK);
    for (size_t i = begin; i < begin + counts[rank]; ++i)
      ASSERT_EQ(values[i], static_cast<int64_t>(i * 6)) << i;
  });
}

//===- order ------------------------------------------------------------------------------------------------------===//

/// Two communicators use the same queues, and each exchange reads what the one before it wrote.
TEST(CpuExchanges, BetweenBeginAndEndFollowTheirQueues) {
  Context context;
  sluice_unique_id one = context.id(), other = context.id();
  sluice_queue *queues[] = {context.queue(), context.queue()};
  sluice_communicator *ofOne[] = {context.join(one, 0, 2), context.join(one, 1, 2)};
  sluice_communicator *ofOther[] = {context.join(other, 0, 2), context.join(other, 1, 2)};
  std::vector<float> values[] = {std::vector<float>(100'000, 1.0f), std::vector<float>(100'000, 2.0f)};
  EXPECT_EQ(exchanges().begin(context.run), SLUICE_OK);
  for (size_t rank : {1, 0}) {
    EXPECT_EQ(allReduce(ofOne[rank], queues[rank], values[rank]), SLUICE_OK);
    EXPECT_EQ(allReduce(ofOther[rank], queues[rank], values[rank]), SLUICE_OK);
    EXPECT_EQ(allReduce(ofOne[rank], queues[rank], values[rank]), SLUICE_OK);
  }
  EXPECT_THAT(values[0], Each(1.0f));
  EXPECT_EQ(exchanges().end(context.run), SLUICE_OK) << context.error();
  EXPECT_THAT(values[0], Each(12.0f));
  EXPECT_THAT(values[1], Each(12.0f));
}

/// Rank 1 has both exchanges in separate queues, so that only rank 0's queue orders them.
TEST(CpuExchanges, WaitForWhatIsBeforeThemInOneQueue) {
  Context context;
  sluice_unique_id one = context.id(), other = context.id();
  sluice_communicator *ofOne[] = {context.join(one, 0, 2), context.join(one, 1, 2)};
  sluice_communicator *ofOther[] = {context.join(other, 0, 2), context.join(other, 1, 2)};
  sluice_queue *queue = context.queue();
  std::vector<float> values(10, 1.0f), ones(10, 10.0f), others(10, 100.0f);
  EXPECT_EQ(exchanges().begin(context.run), SLUICE_OK);
  EXPECT_EQ(allReduce(ofOther[1], context.queue(), others), SLUICE_OK);
  EXPECT_EQ(allReduce(ofOne[0], queue, values), SLUICE_OK);
  EXPECT_EQ(allReduce(ofOther[0], queue, values), SLUICE_OK);
  EXPECT_EQ(allReduce(ofOne[1], context.queue(), ones), SLUICE_OK);
  EXPECT_EQ(exchanges().end(context.run), SLUICE_OK) << context.error();
  EXPECT_THAT(ones, Each(11.0f));
  EXPECT_THAT(values, Each(111.0f));
  EXPECT_THAT(others, Each(111.0f));
}

/// The second exchange of the ranks can start before their first, which waits in its queue.
TEST(CpuExchanges, AreNumberedAsTheyArePutIn) {
  Context context;
  sluice_unique_id one = context.id(), other = context.id();
  std::vector<float> before[2], first[2], second[2];
  std::vector<sluice_communicator *> ofOne, ofOther;
  for (int32_t rank : {0, 1}) {
    ofOne.push_back(context.join(one, rank, 2));
    ofOther.push_back(context.join(other, rank, 2));
  }
  EXPECT_EQ(exchanges().begin(context.run), SLUICE_OK);
  for (size_t rank : {0, 1}) {
    sluice_queue *busy = context.queue(), *idle = context.queue();
    before[rank].assign(10, 1.0f);
    first[rank].assign(20, 2.0f);
    second[rank].assign(30, 3.0f);
    EXPECT_EQ(allReduce(ofOther[rank], busy, before[rank]), SLUICE_OK);
    EXPECT_EQ(allReduce(ofOne[rank], busy, first[rank]), SLUICE_OK);
    EXPECT_EQ(allReduce(ofOne[rank], idle, second[rank]), SLUICE_OK);
  }
  EXPECT_EQ(exchanges().end(context.run), SLUICE_OK) << context.error();
  EXPECT_THAT(first[1], Each(4.0f));
  EXPECT_THAT(second[0], Each(6.0f));
}

//===- ends -------------------------------------------------------------------------------------------------------===//

/// A watcher ends ranks that exchange continuously, at any moment: each rank gets the same error, and none hangs.
TEST(CpuExchanges, EndForAllWhenOneIsAborted) {
  constexpr size_t kRanks = 4;
  for (int moment = 0; moment < 30; ++moment) {
    Group group;
    std::vector<std::unique_ptr<Context>> contexts = contextsOf(group, kRanks);
    std::thread watcher([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(173 * moment));
      exchanges().abort(contexts[2]->ends[0]);
    });
    std::atomic<int> rounds = 0;
    inThreads(kRanks, [&](size_t rank) {
      std::vector<float> values(50'000, 0.0f);
      sluice_status status = SLUICE_OK;
      while (status == SLUICE_OK) {
        status = allReduce(contexts[rank]->ends[0], contexts[rank]->queues[0], values);
        ++rounds;
      }
      EXPECT_EQ(status, SLUICE_PEER_LOST);
      EXPECT_THAT(contexts[rank]->error(), HasSubstr("rank 2 was aborted"));
    });
    watcher.join();
    EXPECT_GE(rounds, 4);
  }
}

TEST(CpuExchanges, NameTheFirstDifference) {
  Group group;
  std::vector<std::unique_ptr<Context>> contexts = contextsOf(group, 2);
  inThreads(2, [&](size_t rank) {
    std::vector<float> values(10 + rank);
    EXPECT_EQ(allReduce(contexts[rank]->ends[0], contexts[rank]->queues[0], values), SLUICE_INVALID);
    EXPECT_THAT(contexts[rank]->error(), HasSubstr("in exchange 0, all-reduce of dw1: its count is 1"));
  });
}

TEST(CpuExchanges, NameTheRankThatLeft) {
  Group group;
  std::vector<std::unique_ptr<Context>> contexts = contextsOf(group, 2);
  inThreads(2, [&](size_t rank) {
    std::vector<float> values(10);
    EXPECT_EQ(allReduce(contexts[rank]->ends[0], contexts[rank]->queues[0], values), SLUICE_OK);
  });
  exchanges().destroy(contexts[1]->ends[0]);
  contexts[1]->ends.clear();
  std::vector<float> values(10);
  EXPECT_EQ(allReduce(contexts[0]->ends[0], contexts[0]->queues[0], values), SLUICE_PEER_LOST);
  EXPECT_EQ(contexts[0]->error(), "rank 1 left after 1 exchanges");
}

TEST(CpuExchanges, RefuseWhatHasNoSense) {
  Context context, stranger;
  sluice_unique_id id = context.id();
  sluice_communicator *end = nullptr;
  EXPECT_EQ(stranger.tryJoin(id, 0, 2, end), SLUICE_USAGE);
  EXPECT_EQ(stranger.error(), "the id was not made by a context of this group");
  EXPECT_EQ(context.tryJoin(id, 0, 0, end), SLUICE_USAGE);
  EXPECT_EQ(context.error(), "there are no 0 ranks");
  EXPECT_EQ(context.tryJoin(id, 2, 2, end), SLUICE_USAGE);
  EXPECT_EQ(context.error(), "there is no rank 2 of 2");
  EXPECT_EQ(context.tryJoin(id, 0, 2, end, 1), SLUICE_UNSUPPORTED);
  EXPECT_EQ(context.error(), "there is no device cpu:1; there is one");
  sluice_communicator *first = context.join(id, 0, 2), *second = context.join(id, 1, 2);
  EXPECT_EQ(context.tryJoin(id, 1, 2, end), SLUICE_USAGE);
  EXPECT_EQ(context.error(), "rank 1 is there already");
  EXPECT_EQ(context.tryJoin(id, 1, 3, end), SLUICE_USAGE);
  EXPECT_EQ(context.error(), "rank 1 is one of 3, but others are of 2");
  std::vector<float> values(10);
  EXPECT_EQ(allReduce(first, context.queue(0), values), SLUICE_USAGE);
  EXPECT_EQ(context.error(), "the queue is of cpu:0, and rank 0 of the host");
  sluice_exchange nowhere{sizeof nowhere, SLUICE_BROADCAST, SLUICE_DTYPE_f32, SLUICE_SUM, 0, values.data(), nullptr, 10,
                          nullptr,        nullptr};
  EXPECT_EQ(exchanges().exchange(first, context.queue(), &nowhere), SLUICE_USAGE);
  EXPECT_EQ(context.error(), "an exchange has no address for what it receives");
  EXPECT_EQ(exchanges().end(context.run), SLUICE_USAGE);
  EXPECT_EQ(context.error(), "exchanges end that did not begin");
  sluice_queue *same = context.queue();
  EXPECT_EQ(exchanges().begin(context.run), SLUICE_OK);
  EXPECT_EQ(allReduce(first, same, values), SLUICE_OK);
  EXPECT_EQ(allReduce(second, same, values), SLUICE_OK);
  EXPECT_EQ(exchanges().end(context.run), SLUICE_USAGE);
  EXPECT_THAT(context.error(), HasSubstr("rank 1 and rank 0 exchange in one queue"));
}

TEST(CpuExchanges, OfADeviceHaveOneRank) {
  Context context;
  sluice_unique_id id = context.id();
  sluice_communicator *first = nullptr, *second = nullptr;
  EXPECT_EQ(context.tryJoin(id, 0, 2, first, 0), SLUICE_OK);
  EXPECT_EQ(context.tryJoin(id, 1, 2, second, 0), SLUICE_USAGE);
  EXPECT_EQ(context.error(), "rank 1 is to be on device 0, where rank 0 is");
  exchanges().destroy(first);
}
