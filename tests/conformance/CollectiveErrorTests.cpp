// Errors of ranks that differ from others, are left or aborted, or whose peers do not join.
#include "tests/conformance/RankThreads.h"

#include <atomic>
#include <chrono>
#include <thread>

namespace sluice::conformance {

/// Status and reason of waiting for the end of a rank's queue, no longer than the suite's patience.
static std::pair<sluice_status, std::string> wait(Rank &rank) {
  RunHalf &half = rank.half();
  sluice_event *event = half.record(rank.queue());
  sluice_status status = half.table().synchronize_until ? half.table().synchronize_until(event, half.patience())
                                                        : half.table().synchronize(event);
  return {status, status == SLUICE_OK ? "" : half.lastError()};
}

/// The errors of both ranks if they submit different exchanges.
static void checkDifference(const Subject &subject, Places places, const Task &one, const Task &other,
                            const std::string &what) {
  OneThread all(subject, places, 2);
  RunHalf &half = all.half;
  sluice_status end = all.together([&](Rank &rank) {
    void *memory = half.allocate(4000, rank.device());
    rank.put(rank.number() == 0 ? one : other, memory, memory);
  });
  expect(end == SLUICE_OK || end == SLUICE_INVALID, "a different " + what + " ends with status " + std::to_string(end));
  for (const std::unique_ptr<Rank> &rank : all.ranks) {
    sluice_status known = rank->table().error(rank->get());
    auto [status, why] = wait(*rank);
    sluice_status later = rank->table().error(rank->get());
    expect(later == SLUICE_INVALID, "a different " + what + " is no error of the communicator, but status " +
                                        std::to_string(known) + " and then " + std::to_string(later));
    std::string reason = half.lastError();
    expect(reason.find("rank 1") != std::string::npos && reason.find(what) != std::string::npos,
           "the error names no rank, or not the " + what + ": " + reason);
    expect(status == SLUICE_OK || status == SLUICE_INVALID,
           "after a different " + what + " waiting ends with status " + std::to_string(status));
  }
}

static void differencesAreNamed(const Subject &subject) {
  Task task{SLUICE_ALL_REDUCE, SLUICE_DTYPE_f32, SLUICE_SUM, 0, 100, {}};
  Task type = task, reduction = task, count = task, kind = task, label = task;
  type.dtype = SLUICE_DTYPE_i32;
  reduction.reduction = SLUICE_MAX;
  count.count = 101;
  kind.kind = SLUICE_BROADCAST;
  label.label = "another";
  Task root = kind, shares = task;
  root.root = 1;
  shares.kind = SLUICE_ALL_GATHER;
  shares.counts = {100, 100};
  Task others = shares;
  others.counts = {100, 99};
  atPlaces(subject, 2, [&](Places places, int32_t) {
    checkDifference(subject, places, task, type, "element type");
    checkDifference(subject, places, task, reduction, "reduction");
    checkDifference(subject, places, task, count, "count");
    checkDifference(subject, places, task, kind, "kind");
    checkDifference(subject, places, task, label, "label");
    checkDifference(subject, places, kind, root, "root");
    checkDifference(subject, places, shares, others, "count for rank 1");
  });
}

/// The status of an exchange: of the call, or of waiting for its end.
static sluice_status exchangeAndWait(Rank &rank, const Task &task, void *memory) {
  sluice_status status = rank.put(task, memory, memory);
  return status == SLUICE_OK ? wait(rank).first : status;
}

/// One rank waits already when the other one submits a different exchange.
static void differencesEndWaiting(const Subject &subject) {
  atPlaces(subject, 2, [&](Places places, int32_t) {
    ManyThreads all(subject, places, 2);
    inThreads(2, [&](int32_t number) {
      Rank &rank = *all.ranks[static_cast<size_t>(number)];
      Task task{SLUICE_ALL_REDUCE, SLUICE_DTYPE_f32, SLUICE_SUM, 0, 100u - static_cast<size_t>(number), {}};
      void *memory = rank.half().allocate(400, rank.device());
      std::this_thread::sleep_for(std::chrono::milliseconds(50 * number));
      sluice_status status = exchangeAndWait(rank, task, memory);
      expect(status == SLUICE_INVALID, "a rank waits for one that differs until status " + std::to_string(status));
    });
  });
}

static void putRound(Rounds &rank) {
  rank.upload(0);
  rank.rank.half().check(rank.exchange(), "exchange");
  rank.download(0);
}

/// The error of a rank that has submitted an exchange that rank 0 has not joined.
static void checkWaitingFor0(Rounds &rank) {
  RunHalf &half = rank.rank.half();
  sluice_event *event = half.record(rank.work);
  sluice_status status = half.table().synchronize_until(event, 0.05);
  expect(status == SLUICE_DEADLINE, "waiting for a rank that does not come ends with status " + std::to_string(status) +
                                        ", not with the deadline's");
  int done = 0;
  if (half.table().query)
    half.check(half.table().query(event, &done), "query");
  expect(!done, "an exchange is told to be done before all ranks have come");
}

/// Returns when `count` has reached a number, or after some seconds.
static void awaitCount(const std::atomic<size_t> &count, size_t wanted, double seconds) {
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (count < wanted && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Rank 0 comes when all others have seen that it does not, or when their calls wait for it.
static void exchangeLate(ManyThreads &all, const std::vector<std::unique_ptr<Rounds>> &ranks) {
  std::atomic<bool> hasCome = false;
  std::atomic<size_t> haveCalled = 0, haveSeen = 0;
  bool isImmediate = all.halves[0]->table().immediate != 0;
  double patience = all.halves[0]->patience();
  inThreads(static_cast<int32_t>(ranks.size()), [&](int32_t number) {
    Rounds &mine = *ranks[static_cast<size_t>(number)];
    if (number == 0) {
      awaitCount(haveCalled, ranks.size() - 1, patience);
      awaitCount(haveSeen, ranks.size() - 1, 0.3 * patience);
      hasCome = true;
      return putRound(mine);
    }
    Last seen([&] { ++haveSeen; });
    ++haveCalled;
    putRound(mine);
    expect(!isImmediate || hasCome, "an exchange returns before all ranks have come");
    if (!hasCome)
      checkWaitingFor0(mine);
  });
}

static void lateRanksAreWaitedFor(const Subject &subject) {
  atPlaces(subject, 2, [&](Places places, int32_t size) {
    ManyThreads all(subject, places, size);
    const sluice_backend_run &table = all.halves[0]->table();
    if (!table.immediate && !table.synchronize_until)
      throw Skipped("it does not wait until a deadline");
    std::vector<std::unique_ptr<Rounds>> ranks = roundsOf(all.ranks);
    exchangeLate(all, ranks);
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      all.halves[rank]->finish(ranks[rank]->work);
    Rounds::check(ranks, 1);
  });
}

/// Rank 0 waits for rank 1, which calls `go` instead of joining.
static void checkLossAt(const Subject &subject, Places places, const std::function<void(Rank &)> &go,
                        const std::string &what) {
  ManyThreads all(subject, places, 2);
  Rank &waiting = *all.ranks[0];
  void *memory = waiting.half().allocate(400, waiting.device());
  Task task{SLUICE_ALL_REDUCE, SLUICE_DTYPE_f32, SLUICE_SUM, 0, 100, {}};
  inThreads(2, [&](int32_t rank) {
    if (rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return go(*all.ranks[1]);
    }
    sluice_status status = exchangeAndWait(waiting, task, memory);
    std::string why = waiting.half().lastError();
    expect(status == SLUICE_PEER_LOST, what + " ends waiting with status " + std::to_string(status));
    expect(why.find("rank 1") != std::string::npos, what + " is told without the rank: " + why);
  });
  expect(waiting.table().error(waiting.get()) == SLUICE_PEER_LOST, what + " is no error of the communicator");
  sluice_status status = waiting.put(task, memory, memory);
  expect(status == SLUICE_PEER_LOST, what + " lets a later exchange end with status " + std::to_string(status));
  waiting.leave();
  Bytes data = pattern(400), found(400);
  waiting.half().upload(waiting.queue(), data, memory, waiting.device());
  waiting.half().download(waiting.queue(), memory, found, waiting.device());
  waiting.half().finish(waiting.queue());
  expect(found == data, what + " leaves a queue that does no new work");
}

static void checkLoss(const Subject &subject, const std::function<void(Rank &)> &go, const std::string &what) {
  atPlaces(subject, 2, [&](Places places, int32_t) { checkLossAt(subject, places, go, what); });
}

static void abortsEndWaiting(const Subject &subject) {
  checkLoss(subject, [](Rank &rank) { rank.table().abort(rank.get()); }, "a rank that was aborted");
}

static void departuresEndWaiting(const Subject &subject) {
  checkLoss(subject, [](Rank &rank) { rank.leave(); }, "a rank that was destroyed");
}

/// Another thread aborts the waiting rank.
static void watchersAbort(const Subject &subject) {
  atPlaces(subject, 2, [&](Places places, int32_t) {
    OneThread all(subject, places, 2);
    Rank &waiting = *all.ranks[0];
    void *memory = all.half.allocate(400, waiting.device());
    Task task{SLUICE_ALL_REDUCE, SLUICE_DTYPE_f32, SLUICE_SUM, 0, 100, {}};
    inThreads(2, [&](int32_t thread) {
      if (thread == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        return waiting.table().abort(waiting.get());
      }
      sluice_status status = exchangeAndWait(waiting, task, memory);
      expect(status == SLUICE_PEER_LOST, "a rank that is aborted waits until status " + std::to_string(status));
    });
  });
}

static void refuseSenselessOnes(const Subject &subject, Places places) {
  OneThread all(subject, places, 1);
  Rank &rank = *all.ranks[0];
  void *memory = all.half.allocate(400, rank.device());
  Task task{SLUICE_ALL_REDUCE, SLUICE_DTYPE_f32, SLUICE_SUM, 0, 100, {}};
  auto refuse = [&](const Task &wrong, const std::string &what) {
    sluice_status status = rank.put(wrong, memory, memory);
    expect(status == SLUICE_USAGE || status == SLUICE_UNSUPPORTED,
           what + " is not refused, but status " + std::to_string(status));
    expect(!all.half.lastError().empty(), what + " is refused without a reason");
  };
  Task type = task, reduction = task, root = task, kind = task;
  type.dtype = SLUICE_DTYPE_u8;
  reduction.reduction = 9;
  root.kind = SLUICE_BROADCAST;
  root.root = 1;
  kind.kind = 77;
  refuse(type, "an exchange of bytes");
  refuse(reduction, "an unknown reduction");
  refuse(root, "a root that is no rank");
  refuse(kind, "an unknown kind");
  all.half.check(rank.table().error(rank.get()), "a communicator after what was refused");
  all.check(task, 11);
}

static void senselessOnesAreRefused(const Subject &subject) {
  atPlaces(subject, 1, [&](Places places, int32_t) { refuseSenselessOnes(subject, places); });
}

std::vector<Test> collectiveErrorTests() {
  return {
      {"collective.differences", differencesAreNamed},  {"collective.differences_in_threads", differencesEndWaiting},
      {"collective.late_rank", lateRanksAreWaitedFor},  {"collective.abort", abortsEndWaiting},
      {"collective.abort_by_a_watcher", watchersAbort}, {"collective.departure", departuresEndWaiting},
      {"collective.refusals", senselessOnesAreRefused}};
}

} // namespace sluice::conformance
