#include "backends/cpu/compiler/ParallelFor.h"

#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/Threading.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <pthread.h>
#include <vector>

namespace sluice::cpu {

static constexpr size_t kStackBytes = size_t(16) << 20; // twice what LLVM's own threads have

namespace {
class Loop {
public:
  Loop(size_t count, llvm::function_ref<void(size_t)> body) : count(count), body(body) {}

  void run(size_t threads) {
    std::vector<pthread_t> others(threads - 1);
    size_t started = 0;
    while (started < others.size() && start(others[started]))
      ++started;
    work();
    for (size_t i = 0; i < started; ++i)
      pthread_join(others[i], nullptr);
    if (thrown)
      std::rethrow_exception(thrown);
    if (crashed)
      std::abort(); // into the recovery that the caller is in
  }

private:
  /// False if there cannot be another thread, of which a std::thread could not say how large its stack is.
  bool start(pthread_t &thread) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
      return false;
    auto main = [](void *loop) -> void * { return static_cast<Loop *>(loop)->work(), nullptr; };
    bool started = pthread_attr_setstacksize(&attributes, kStackBytes) == 0 &&
                   pthread_create(&thread, &attributes, main, this) == 0;
    pthread_attr_destroy(&attributes);
    return started;
  }

  /// What every thread does. A crash must not unwind the calling thread while others still read its stack.
  void work() {
    llvm::CrashRecoveryContext recovery;
    if (recovery.RunSafely([this] { takeNumbers(); }))
      return;
    crashed = true;
    next = count;
  }

  void takeNumbers() {
    try {
      for (size_t number = next++; number < count; number = next++)
        body(number);
    } catch (...) {
      std::lock_guard lock(mutex);
      thrown = std::current_exception();
      next = count;
    }
  }

  const size_t count;
  llvm::function_ref<void(size_t)> body;
  std::atomic<size_t> next{0};
  std::atomic<bool> crashed{false};
  std::mutex mutex;
  std::exception_ptr thrown;
};
} // namespace

void parallelFor(size_t count, unsigned threads, llvm::function_ref<void(size_t)> body) {
  size_t most = threads ? threads : llvm::hardware_concurrency().compute_thread_count();
  Loop(count, body).run(std::clamp<size_t>(count, 1, most));
}

} // namespace sluice::cpu
