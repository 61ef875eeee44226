#include "backends/cpu/compiler/llvm/ParallelFor.h"

#include "llvm/Support/CrashRecoveryContext.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <gtest/gtest.h>
#include <new>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace sluice::cpu {
namespace {

bool always(size_t) { return true; }

/// Two numbers on different threads: `other` runs on the thread that does not call, while this one is in its body.
void onTheOtherThread(llvm::function_ref<void()> other) {
  std::atomic<int> there{0};
  std::thread::id caller = std::this_thread::get_id();
  parallelFor(2, 2, always, [&](size_t) {
    ++there;
    while (there < 2)
      std::this_thread::yield();
    if (std::this_thread::get_id() != caller)
      other();
  });
}

// Every number runs once, with more threads than numbers and with fewer.
TEST(ParallelFor, TakesEveryNumberOnce) {
  for (unsigned threads : {0, 1, 3, 200}) {
    std::array<std::atomic<int>, 100> taken{};
    EXPECT_TRUE(parallelFor(taken.size(), threads, always, [&](size_t number) { ++taken[number]; }));
    for (std::atomic<int> &times : taken)
      EXPECT_EQ(times, 1) << threads << " threads";
  }
  parallelFor(0, 4, always, [](size_t) { FAIL() << "there is no number"; });
}

// The calling thread prepares numbers in order, each before its body, while other threads run bodies.
TEST(ParallelFor, PreparesInOrderOnTheCallingThread) {
  std::thread::id caller = std::this_thread::get_id();
  std::array<std::atomic<bool>, 100> ready{};
  size_t next = 0;
  std::atomic<bool> begun{false};
  auto prepare = [&](size_t number) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(number, next++);
    while (number == 1 && !begun) // the body of 0, while this is being prepared
      std::this_thread::yield();
    return ready[number] = true;
  };
  parallelFor(ready.size(), 2, prepare, [&](size_t number) {
    EXPECT_TRUE(ready[number]);
    begun = true;
  });
  EXPECT_EQ(next, ready.size());
}

// A number that cannot be prepared is the last; those before it are finished.
TEST(ParallelFor, EndsWherePreparingDoes) {
  for (unsigned threads : {1, 3}) {
    std::atomic<int> finished{0};
    auto prepare = [](size_t number) {
      EXPECT_LE(number, 5U);
      return number < 5;
    };
    EXPECT_FALSE(parallelFor(20, threads, prepare, [&](size_t) { ++finished; }));
    EXPECT_EQ(finished, 5) << threads << " threads";
  }
}

// Exceptions of prepare are rethrown, and other threads do not wait for numbers that never come.
TEST(ParallelFor, ThrowsWhatPreparingThrows) {
  auto prepare = [](size_t) -> bool { throw std::bad_alloc(); };
  EXPECT_THROW(parallelFor(20, 3, prepare, [](size_t) {}), std::bad_alloc);
}

// Exceptions of other threads are rethrown to the caller.
TEST(ParallelFor, ThrowsWhatAnotherThreadThrows) {
  EXPECT_THROW(onTheOtherThread([] { throw std::bad_alloc(); }), std::bad_alloc);
}

/// Exits with 0 if the recovery gets the crash, at once, because memory held by the crashed thread cannot be freed.
[[noreturn]] void recoverFromAnotherThread() {
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext recovery;
  _exit(recovery.RunSafely([] { onTheOtherThread([] { std::abort(); }); }) ? 1 : 0);
}

// A crash of another thread reaches the caller's recovery.
TEST(ParallelFor, CrashesWhereAnotherThreadCrashes) {
  EXPECT_EXIT(recoverFromAnotherThread(), testing::ExitedWithCode(0), "");
}

/// Exits with the number of remaining tasks if no thread can be created.
[[noreturn]] void loopWithoutThreads() {
  rlimit none{0, 0};
  constexpr uid_t kNobody = 65534; // root has no limit
  if (setrlimit(RLIMIT_NPROC, &none) != 0 || (geteuid() == 0 && setuid(kNobody) != 0))
    _exit(100);
  std::atomic<int> left{20};
  std::thread::id caller = std::this_thread::get_id();
  parallelFor(20, 4, always, [&](size_t) { left -= std::this_thread::get_id() == caller; });
  _exit(left);
}

// Failure to create threads is not an error: the calling thread runs all numbers.
TEST(ParallelFor, RunsWithoutOtherThreads) { EXPECT_EXIT(loopWithoutThreads(), testing::ExitedWithCode(0), ""); }

} // namespace
} // namespace sluice::cpu
