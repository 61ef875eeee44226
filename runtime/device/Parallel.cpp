#include "runtime/device/Parallel.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/files/Process.h"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <sched.h>
#include <thread>
#include <utility>
#include <vector>

namespace sluice::runtime {

using Clock = std::chrono::steady_clock;

static constexpr auto spinLimit = std::chrono::microseconds(100); ///< then a waiting thread sleeps or yields
static constexpr int chunksPerThread = 8;                         ///< chunks of a stage, for balance
static constexpr size_t threadBytes = size_t(10) << 20;           ///< per thread: its stack and TBB's allocations

int availableThreads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

static void pauseBriefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

namespace {

/// The start of the next chunk of a share of the current stage. The epoch counts stages.
struct Ticket {
  uint32_t epoch, next;

  static Ticket unpack(uint64_t bits) { return {static_cast<uint32_t>(bits >> 32), static_cast<uint32_t>(bits)}; }
  uint64_t pack() const { return static_cast<uint64_t>(epoch) << 32 | next; }
};

/// A thread's contiguous part of the tasks. The thread first claims chunks of this share, then of the other shares.
/// Stages number their tasks along the rows, so a thread mostly reads data that it wrote in the previous stage.
struct alignas(64) Share {
  std::atomic<uint64_t> ticket{0};
};

/// One stage. The leader writes it only before its epoch begins; see the note [Two jobs].
struct alignas(64) Job {
  std::atomic<uint32_t> tasks{0}, chunk{1};
  std::atomic<RangeFunction> function{nullptr};
  std::atomic<void *> context{nullptr};
  alignas(64) std::atomic<uint32_t> done{0};
};

/// Backs off: pauses first, then yields the processor.
class Backoff {
public:
  /// `eager` is false if threads outnumber processors: spinning would then delay other threads.
  explicit Backoff(bool eager) : eager_(eager) {}

  /// Returns false once the limit has passed.
  bool wait() {
    if (!eager_)
      std::this_thread::yield();
    for (int i = 0; eager_ && i < 32; ++i)
      pauseBriefly();
    Clock::time_point now = Clock::now();
    if (start_ == Clock::time_point())
      start_ = now;
    return now - start_ < spinLimit;
  }

  void reset() { start_ = {}; }

private:
  bool eager_;
  Clock::time_point start_;
};

} // namespace

struct Team::Impl {
  explicit Impl(int threads)
      : eager(threads <= availableThreads()), shares(static_cast<size_t>(threads)), arena(threads, 1) {}

  uint32_t beginOf(size_t share, uint32_t tasks) const {
    return static_cast<uint32_t>(static_cast<uint64_t>(tasks) * share / shares.size());
  }
  bool runChunkOf(size_t share);
  bool runChunk(size_t own);
  void serve(size_t own);
  void park(size_t own, uint32_t epoch);
  void release();

  const bool eager;
  std::vector<Share> shares; // one per thread; the leader's share is first
  tbb::task_arena arena;
  Job jobs[2];
  alignas(64) std::atomic<bool> stop{true};
  std::atomic<int> parked{0};
  std::mutex mutex;
  std::condition_variable wake;
};

/// Claims and runs one chunk of a share of the current stage; false if the share is empty.
bool Team::Impl::runChunkOf(size_t share) {
  std::atomic<uint64_t> &ticket = shares[share].ticket;
  uint64_t bits = ticket.load(std::memory_order_acquire);
  while (true) {
    Ticket current = Ticket::unpack(bits);
    Job &job = jobs[current.epoch & 1];
    uint32_t last = beginOf(share + 1, job.tasks.load(std::memory_order_relaxed));
    if (current.next >= last)
      return false;
    uint32_t chunk = job.chunk.load(std::memory_order_relaxed);
    RangeFunction function = job.function.load(std::memory_order_relaxed);
    void *context = job.context.load(std::memory_order_relaxed);
    uint32_t end = current.next + std::min(chunk, last - current.next);
    if (!ticket.compare_exchange_weak(bits, Ticket{current.epoch, end}.pack(), std::memory_order_acq_rel,
                                      std::memory_order_acquire))
      continue;
    function(context, current.next, end);
    job.done.fetch_add(end - current.next, std::memory_order_acq_rel);
    return true;
  }
}

/// Runs one chunk, from the thread's own share first; false if all shares are empty.
bool Team::Impl::runChunk(size_t own) {
  for (size_t i = 0; i < shares.size(); ++i)
    if (runChunkOf((own + i) % shares.size()))
      return true;
  return false;
}

/// The loop of every thread but the leader during a step.
void Team::Impl::serve(size_t own) {
  Backoff backoff(eager);
  while (!stop.load(std::memory_order_acquire)) {
    uint32_t epoch = Ticket::unpack(shares[own].ticket.load(std::memory_order_acquire)).epoch;
    if (runChunk(own)) {
      backoff.reset();
      continue;
    }
    if (backoff.wait())
      continue;
    park(own, epoch);
    backoff.reset();
  }
}

/// Sleeps until a stage after `epoch` begins or the step ends.
void Team::Impl::park(size_t own, uint32_t epoch) {
  std::unique_lock lock(mutex);
  // Sequentially consistent, like the leader's store of the ticket: at least one of the two threads sees the other's
  // store. So either the leader wakes this thread, or this thread does not wait.
  parked.fetch_add(1);
  wake.wait(lock, [&] { return stop.load() || Ticket::unpack(shares[own].ticket.load()).epoch != epoch; });
  parked.fetch_sub(1);
}

/// Wakes the sleeping threads.
void Team::Impl::release() {
  if (parked.load() == 0)
    return;
  std::lock_guard lock(mutex);
  wake.notify_all();
}

/// TBB aborts the process if it cannot create a thread. This check therefore starts the same number of threads first;
/// each waits for the others. The C library caches their stacks for the next threads.
static void checkThreads(int count) {
  if (!files::memoryIsLeft(static_cast<size_t>(count) * threadBytes))
    failExhausted(concat("out of memory: ", count, " threads cannot be started"));
  std::promise<void> allThere;
  std::shared_future<void> wait = allThere.get_future().share();
  std::vector<std::thread> started;
  Status status = guarded([&] {
    for (int i = 0; i < count; ++i)
      started.emplace_back([wait] { wait.wait(); });
  });
  allThere.set_value();
  for (std::thread &thread : started)
    thread.join();
  if (!status.ok())
    failExhausted(concat("out of memory: ", started.size() + 1, " of ", count + 1,
                         " threads can be started; --threads asks for fewer"));
}

/// Lets TBB use as many threads as there are processors, or as the largest team of this process has. TBB obeys the
/// smallest of all limits, so there is one for all teams.
static void allowThreads(int threads) {
  static std::mutex mutex;
  static size_t allowed = static_cast<size_t>(availableThreads());
  static tbb::global_control *limit = nullptr; // lives as long as TBB
  std::lock_guard lock(mutex);
  if (limit && static_cast<size_t>(threads) <= allowed)
    return;
  allowed = std::max(allowed, static_cast<size_t>(threads));
  delete std::exchange(limit, nullptr);
  limit = new tbb::global_control(tbb::global_control::max_allowed_parallelism, allowed);
}

Team::Team(int threads) : threads_(std::max(threads, 1)) {
  if (threads_ == 1)
    return;
  checkThreads(threads_ - 1);
  allowThreads(threads_);
  impl_ = std::make_unique<Impl>(threads_);
}

Team::~Team() = default;

void Team::enter(const std::function<void()> &body) {
  if (!impl_ || !impl_->stop.load(std::memory_order_relaxed))
    return body();
  impl_->arena.execute([&] {
    impl_->stop.store(false);
    tbb::task_group group;
    auto letGo = [&] {
      impl_->stop.store(true);
      impl_->release();
      group.wait();
    };
    try { // an exception must also release the threads that already serve
      for (int i = 1; i < threads_; ++i)
        group.run([this, i] { impl_->serve(static_cast<size_t>(i)); });
      body();
    } catch (...) {
      letGo();
      throw;
    }
    letGo();
  });
}

void Team::forEach(int64_t tasks, RangeFunction function, void *context) {
  if (tasks <= 0)
    return;
  if (tasks == 1 || !impl_ || impl_->stop.load(std::memory_order_relaxed))
    return function(context, 0, tasks);
  uint32_t epoch = Ticket::unpack(impl_->shares[0].ticket.load(std::memory_order_relaxed)).epoch + 1;
  Job &job = impl_->jobs[epoch & 1];
  int64_t chunk = std::max<int64_t>(1, tasks / (static_cast<int64_t>(threads_) * chunksPerThread));
  job.done.store(0, std::memory_order_relaxed);
  job.tasks.store(static_cast<uint32_t>(tasks), std::memory_order_relaxed);
  job.chunk.store(static_cast<uint32_t>(chunk), std::memory_order_relaxed);
  job.function.store(function, std::memory_order_relaxed);
  job.context.store(context, std::memory_order_relaxed);
  for (size_t i = 0; i < impl_->shares.size(); ++i)
    impl_->shares[i].ticket.store(Ticket{epoch, impl_->beginOf(i, static_cast<uint32_t>(tasks))}.pack());
  impl_->release();
  while (impl_->runChunk(0)) {
  }
  Backoff backoff(impl_->eager);
  while (job.done.load(std::memory_order_acquire) != static_cast<uint32_t>(tasks))
    if (!backoff.wait())
      std::this_thread::yield();
}

// [Two jobs] A thread reads a job, then claims a chunk by advancing a share's ticket. The claim succeeds only if the
// ticket, and so the epoch, has not changed since the job was read. The leader writes the job of epoch e + 1 into the
// other job. It writes the job of epoch e + 2 only after every chunk of e + 1 is done. All tickets have then advanced
// to e + 1. A job that is being overwritten can therefore not be claimed. With a single job, a thread could claim a
// chunk of the next stage under a ticket of this stage.

} // namespace sluice::runtime
