#include "backends/cpu/compiler/llvm/ParallelFor.h"

#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/Threading.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <vector>

namespace sluice::cpu {

static constexpr size_t kStackBytes = size_t(16) << 20; // twice LLVM's default thread stack

namespace {
class Loop {
public:
  Loop(size_t count, llvm::function_ref<bool(size_t)> prepare, llvm::function_ref<void(size_t)> body)
      : count(count), prepare(prepare), body(body) {}

  /// Whether all numbers were prepared.
  bool run(size_t threads) {
    std::vector<pthread_t> others(threads - 1);
    size_t started = 0;
    while (started < others.size() && start(others[started]))
      ++started;
    work([this] {
      prepareNumbers();
      takeNumbers();
    });
    for (size_t i = 0; i < started; ++i)
      pthread_join(others[i], nullptr);
    if (thrown)
      std::rethrow_exception(thrown);
    if (crashed)
      std::abort(); // into the caller's crash recovery
    return ready == count;
  }

private:
  /// Returns false if a thread cannot be created. std::thread is rejected because it cannot set the stack size.
  bool start(pthread_t &thread) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
      return false;
    auto main = [](void *loop) -> void * {
      auto self = static_cast<Loop *>(loop);
      self->work([self] { self->takeNumbers(); });
      return nullptr;
    };
    bool started = pthread_attr_setstacksize(&attributes, kStackBytes) == 0 &&
                   pthread_create(&thread, &attributes, main, this) == 0;
    pthread_attr_destroy(&attributes);
    return started;
  }

  /// Runs the share of a thread, and catches its crash: the calling thread must not unwind while others use its stack.
  void work(llvm::function_ref<void()> share) {
    llvm::CrashRecoveryContext recovery;
    if (recovery.RunSafely([&] { catching(share); }))
      return;
    crashed = true;
    end();
  }

  void catching(llvm::function_ref<void()> share) {
    try {
      share();
    } catch (...) {
      end();
      std::lock_guard lock(mutex);
      thrown = std::current_exception();
    }
  }

  void prepareNumbers() {
    for (size_t number = 0; number < count && !ended && prepare(number); ++number) {
      std::lock_guard lock(mutex);
      ++ready;
      changed.notify_one();
    }
    std::lock_guard lock(mutex);
    allReady = true;
    changed.notify_all();
  }

  void takeNumbers() {
    while (std::optional<size_t> number = take())
      body(*number);
  }

  /// Waits for the next prepared number. None at the end of the loop.
  std::optional<size_t> take() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return next < ready || allReady || ended; });
    return next < ready && !ended ? std::optional(next++) : std::nullopt;
  }

  void end() {
    std::lock_guard lock(mutex);
    ended = true;
    changed.notify_all();
  }

  const size_t count;
  llvm::function_ref<bool(size_t)> prepare;
  llvm::function_ref<void(size_t)> body;
  std::mutex mutex;
  std::condition_variable changed; // of the members below
  size_t ready = 0, next = 0;
  bool allReady = false;
  std::exception_ptr thrown;
  std::atomic<bool> ended{false}, crashed{false};
};
} // namespace

bool parallelFor(size_t count, unsigned threads, llvm::function_ref<bool(size_t)> prepare,
                 llvm::function_ref<void(size_t)> body) {
  size_t most = threads ? threads : llvm::hardware_concurrency().compute_thread_count();
  return Loop(count, prepare, body).run(std::clamp<size_t>(count, 1, most));
}

} // namespace sluice::cpu
