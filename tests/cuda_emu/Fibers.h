// Annotates emulated threads for ThreadSanitizer if its runtime is loaded. Each thread of a block is a separate thread.
// Its accesses happen after those of all earlier blocks and before those of all later blocks; within a block, only
// barriers order anything: a shuffle is none for memory (CUDA C++ Programming Guide, "Warp Shuffle Functions").
#pragma once

#include <cstdint>

extern "C" {
[[gnu::weak]] void *__tsan_get_current_fiber();
[[gnu::weak]] void *__tsan_create_fiber(unsigned flags);
[[gnu::weak]] void __tsan_destroy_fiber(void *fiber);
[[gnu::weak]] void __tsan_switch_to_fiber(void *fiber, unsigned flags);
[[gnu::weak]] void __tsan_acquire(void *address);
[[gnu::weak]] void __tsan_release(void *address);
}

namespace cuda_emu {

inline bool isWatched() { return __tsan_create_fiber != nullptr; }

/// A thread as the sanitizer knows it.
struct Fiber {
  Fiber() : own(isWatched() ? __tsan_create_fiber(0) : nullptr) {}
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;
  ~Fiber() {
    if (own)
      __tsan_destroy_fiber(own);
  }

  /// The one that runs now.
  static void *current() { return isWatched() ? __tsan_get_current_fiber() : nullptr; }

  /// Switches to this thread, without ordering anything.
  static void switchTo(void *fiber) {
    constexpr unsigned kWithoutOrder = 1;
    if (fiber)
      __tsan_switch_to_fiber(fiber, kWithoutOrder);
  }

  void *const own;
};

/// Barriers of a block, its begin and its end. What a thread did before one comes before what others do behind it. Two places
/// take turns, so that a thread that is already at the next barrier orders nothing for one that still leaves this one.
class BarrierOrder {
public:
  void arrive(uint64_t number) {
    if (isWatched())
      __tsan_release(&places[number % 2]);
  }
  void leave(uint64_t number) {
    if (isWatched())
      __tsan_acquire(&places[number % 2]);
  }

private:
  uint64_t places[2] = {};
};

} // namespace cuda_emu
