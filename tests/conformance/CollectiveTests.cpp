// Exchanges between ranks: received values and ordering.
#include "tests/conformance/RankThreads.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace sluice::conformance {

static const std::vector<size_t> kCounts = {0, 1, 7, 1000, 20001};

/// Runs `body` on one rank, and on as many as there is room for.
static void withRanks(const Subject &subject, const std::function<void(OneThread &)> &body) {
  atPlaces(subject, 1, [&](Places places, int32_t most) {
    for (int32_t size = 1; size <= most; ++size) {
      OneThread all(subject, places, size);
      body(all);
    }
  });
}

//===- what is received -------------------------------------------------------------------------------------------===//

static void allReduce(const Subject &subject) {
  withRanks(subject, [](OneThread &all) {
    for (sluice_dtype type : exchangedTypes())
      for (sluice_reduction reduction : {SLUICE_SUM, SLUICE_MAX})
        for (size_t count : kCounts)
          all.check({SLUICE_ALL_REDUCE, type, reduction, 0, count, {}}, 1);
  });
}

static void broadcast(const Subject &subject) {
  withRanks(subject, [](OneThread &all) {
    for (sluice_dtype type : exchangedTypes())
      for (int32_t root = 0; root < all.size(); ++root)
        for (size_t count : kCounts)
          all.check({SLUICE_BROADCAST, type, SLUICE_SUM, root, count, {}}, 2);
  });
}

/// Separate counts per rank, some of them 0.
static std::vector<size_t> unevenCounts(int32_t size) {
  std::vector<size_t> counts;
  for (int32_t rank = 0; rank < size; ++rank)
    counts.push_back(static_cast<size_t>(rank % 3) * 77);
  return counts;
}

static void allGather(const Subject &subject) {
  withRanks(subject, [](OneThread &all) {
    for (sluice_dtype type : exchangedTypes()) {
      for (size_t count : kCounts)
        all.check({SLUICE_ALL_GATHER, type, SLUICE_SUM, 0, count, {}}, 3);
      all.check({SLUICE_ALL_GATHER, type, SLUICE_SUM, 0, 5, unevenCounts(all.size())}, 4);
    }
  });
}

static void reduceScatter(const Subject &subject) {
  withRanks(subject, [](OneThread &all) {
    for (sluice_dtype type : exchangedTypes())
      for (sluice_reduction reduction : {SLUICE_SUM, SLUICE_MAX}) {
        for (size_t count : kCounts)
          all.check({SLUICE_REDUCE_SCATTER, type, reduction, 0, count, {}}, 5);
        all.check({SLUICE_REDUCE_SCATTER, type, reduction, 0, 5, unevenCounts(all.size())}, 6);
      }
  });
}

static void inPlace(const Subject &subject) {
  withRanks(subject, [](OneThread &all) {
    for (sluice_exchange_kind kind : {SLUICE_ALL_REDUCE, SLUICE_BROADCAST, SLUICE_ALL_GATHER, SLUICE_REDUCE_SCATTER})
      all.check({kind, SLUICE_DTYPE_f32, SLUICE_SUM, 0, 1000, {}}, 7, /*inPlace=*/true);
    all.check({SLUICE_ALL_GATHER, SLUICE_DTYPE_f32, SLUICE_SUM, 0, 0, unevenCounts(all.size())}, 8, true);
    all.check({SLUICE_REDUCE_SCATTER, SLUICE_DTYPE_f32, SLUICE_SUM, 0, 0, unevenCounts(all.size())}, 9, true);
  });
}

static void integersWrapAround(const Subject &subject) {
  withRanks(subject, [](OneThread &all) {
    Task task{SLUICE_ALL_REDUCE, SLUICE_DTYPE_i32, SLUICE_SUM, 0, 3, {}};
    Bytes largest = {0xff, 0xff, 0xff, 0x7f}; // 2^31 - 1
    Bytes sent;
    for (size_t i = 0; i < task.count; ++i)
      sent.insert(sent.end(), largest.begin(), largest.end());
    uint32_t sum = 0x7fffffffu * static_cast<uint32_t>(all.size());
    std::vector<Bytes> received = all.exchange(task, std::vector<Bytes>(static_cast<size_t>(all.size()), sent));
    for (const Bytes &of : received)
      expect(valueOf(task.dtype, of, 2) == static_cast<int32_t>(sum), "a sum of integers does not wrap around");
  });
}

static void theSameBitsAgain(const Subject &subject) {
  atPlaces(subject, 1, [&](Places places, int32_t size) {
    Task task{SLUICE_ALL_REDUCE, SLUICE_DTYPE_f32, SLUICE_SUM, 0, 20001, {}};
    std::vector<Bytes> sent, first;
    for (int32_t rank = 0; rank < size; ++rank)
      sent.push_back(elements(task.dtype, task.count, 10 + static_cast<unsigned>(rank)));
    for (int run = 0; run < 5; ++run) {
      std::vector<Bytes> received = OneThread(subject, places, size).exchange(task, sent);
      first = run == 0 ? received : first;
      expect(received == first, "the same sum has other bits when it is done again");
    }
  });
  expect(std::string(RunHalf(subject).table().collectives->order).size() > 0, "the order of its sums is not told");
}

static bool isSumInATree(const Task &task, const std::vector<Bytes> &sent, const std::vector<Bytes> &received) {
  std::vector<Bytes> allowed = treeSums(task.dtype, sent);
  bool isShared = task.kind == SLUICE_REDUCE_SCATTER;
  return std::any_of(allowed.begin(), allowed.end(), [&](const Bytes &sum) {
    auto share = sum.begin();
    return std::all_of(received.begin(), received.end(), [&](const Bytes &of) {
      bool isIts = std::equal(of.begin(), of.end(), share);
      share += isShared ? static_cast<std::ptrdiff_t>(of.size()) : 0;
      return isIts;
    });
  });
}

static void checkTreeSum(OneThread &all, sluice_exchange_kind kind, sluice_dtype type) {
  Task task{kind, type, SLUICE_TREE_SUM, 0, 5001, {}};
  std::vector<Bytes> sent;
  for (int32_t rank = 0; rank < all.size(); ++rank)
    sent.push_back(elements(type, task.sent(rank, all.size()), 20 + static_cast<unsigned>(rank)));
  expect(isSumInATree(task, sent, all.exchange(task, sent)),
         "a sum of " + textOf(type) + " of " + std::to_string(all.size()) + " ranks is not added in a tree");
}

/// Tries one element of one rank.
static void skipWithoutTreeSums(OneThread &all) {
  Rank &rank = *all.ranks.front();
  void *memory = all.half.allocate(64, rank.device());
  sluice_status status = rank.put({SLUICE_ALL_REDUCE, SLUICE_DTYPE_f32, SLUICE_TREE_SUM, 0, 1, {}}, memory, memory);
  if (status == SLUICE_UNSUPPORTED)
    throw Skipped("it refuses them: " + all.half.lastError());
  all.half.check(status, "exchange");
  all.half.finish(rank.queue());
}

static void addInATree(const Subject &subject) {
  withRanks(subject, [](OneThread &all) {
    if (all.size() == 1)
      skipWithoutTreeSums(all);
    for (sluice_dtype type : {SLUICE_DTYPE_f32, SLUICE_DTYPE_f64, SLUICE_DTYPE_f16, SLUICE_DTYPE_bf16})
      for (sluice_exchange_kind kind : {SLUICE_ALL_REDUCE, SLUICE_REDUCE_SCATTER})
        checkTreeSum(all, kind, type);
  });
}

//===- what orders them -------------------------------------------------------------------------------------------===//

static void eventsOrderExchanges(const Subject &subject) {
  withRanks(subject, [](OneThread &all) {
    std::vector<std::unique_ptr<Rounds>> ranks = roundsOf(all.ranks);
    for (unsigned round = 0; round < Rounds::kRounds; ++round) {
      for (const std::unique_ptr<Rounds> &rank : ranks)
        rank->upload(round);
      all.half.check(all.together([&](Rank &rank) {
        all.half.check(ranks[static_cast<size_t>(rank.number())]->exchange(), "exchange");
      }),
                     "the end of an exchange");
      for (const std::unique_ptr<Rounds> &rank : ranks)
        rank->download(round);
    }
    for (const std::unique_ptr<Rounds> &rank : ranks)
      all.half.finish(rank->work);
    Rounds::check(ranks);
  });
}

static void exchangeInThreads(const Subject &subject, Places places, int32_t size) {
  ManyThreads all(subject, places, size);
  std::vector<std::unique_ptr<Rounds>> ranks = roundsOf(all.ranks);
  inThreads(size, [&](int32_t rank) {
    Rounds &mine = *ranks[static_cast<size_t>(rank)];
    for (unsigned round = 0; round < Rounds::kRounds; ++round) {
      std::this_thread::sleep_for(std::chrono::microseconds(137u * static_cast<unsigned>(rank) * (round % 3)));
      mine.upload(round);
      mine.rank.half().check(mine.exchange(), "exchange");
      mine.download(round);
    }
    mine.rank.half().finish(mine.work);
  });
  Rounds::check(ranks);
}

static void threadsExchange(const Subject &subject) {
  atPlaces(subject, 2, [&](Places places, int32_t size) { exchangeInThreads(subject, places, size); });
}

static void theyAreCounted(const Subject &subject) {
  withRanks(subject, [](OneThread &all) {
    const sluice_backend_collectives &table = *all.half.table().collectives;
    if (!table.counts)
      throw Skipped("it does not count them");
    all.check({SLUICE_ALL_REDUCE, SLUICE_DTYPE_f64, SLUICE_SUM, 0, 100, {}}, 12);
    all.check({SLUICE_ALL_REDUCE, SLUICE_DTYPE_f16, SLUICE_SUM, 0, 10, {}}, 13);
    all.check({SLUICE_ALL_GATHER, SLUICE_DTYPE_f32, SLUICE_SUM, 0, 3, {}}, 14);
    for (const std::unique_ptr<Rank> &rank : all.ranks) {
      int64_t exchanges = 0, bytes = 0, gathers = 0, gathered = 0, none = -1, nothing = -1;
      all.half.check(table.counts(rank->get(), SLUICE_ALL_REDUCE, &exchanges, &bytes), "counts");
      all.half.check(table.counts(rank->get(), SLUICE_ALL_GATHER, &gathers, &gathered), "counts");
      all.half.check(table.counts(rank->get(), SLUICE_BROADCAST, &none, &nothing), "counts");
      expect(exchanges == 2 && bytes == 820 && gathers == 1 && gathered == 12 * all.size() && none == 0 && nothing == 0,
             "exchanges or their bytes are miscounted");
      expect(table.counts(rank->get(), 77, &none, &nothing) == SLUICE_USAGE, "an unknown kind is counted");
    }
  });
}

std::vector<Test> collectiveTests() {
  std::vector<Test> tests = {
      {"collective.all_reduce", allReduce},       {"collective.broadcast", broadcast},
      {"collective.all_gather", allGather},       {"collective.reduce_scatter", reduceScatter},
      {"collective.in_place", inPlace},           {"collective.integers", integersWrapAround},
      {"collective.same_bits", theSameBitsAgain}, {"collective.event_order", eventsOrderExchanges},
      {"collective.threads", threadsExchange},    {"collective.counts", theyAreCounted},
      {"collective.tree_sum", addInATree}};
  for (Test &test : collectiveErrorTests())
    tests.push_back(std::move(test));
  return tests;
}

} // namespace sluice::conformance
