// CUDA C++ as C++: the kernel text that NVRTC gets, run on the CPU. Each thread of a block is a fiber, which gives way
// where it waits for others; blocks run one after the other. Included in front of the text.
//
// What it assumes of the device, beside the language: `__shfl_sync` waits for all threads of its mask, gives the value
// of the source lane modulo the width in its segment, and is undefined for sources outside of the mask. A thread that
// waits for one that has ended, or that never comes, ends the program with what it waits for.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <ucontext.h>
#include <vector>

#define __global__
#define __device__
#define __launch_bounds__(threads)

namespace cuda_emu {

struct Dim {
  unsigned x = 1, y = 1, z = 1;
};

struct Thread {
  Dim index{0, 0, 0};
  unsigned number = 0;        // in the block
  uint64_t exchanges = 0;     // shuffles begun
  unsigned char held[2][8]{}; // what it gave for the last two
  bool ended = false;
  ucontext_t context{};
  std::unique_ptr<char[]> stack;
};

struct Block {
  Dim grid, size, index;
  std::vector<Thread> threads;
  Thread *current = nullptr;
  const std::function<void()> *kernel = nullptr;
  ucontext_t scheduler{};
  bool advanced = false; // whether any thread came further in this round
};

inline Block *&block() {
  static thread_local Block *running = nullptr;
  return running;
}

[[noreturn]] inline void fail(const char *why) {
  Block &b = *block();
  std::fprintf(stderr, "cuda_emu: block %u, thread %u: %s\n", b.index.x, b.current ? b.current->number : 0, why);
  std::abort();
}

/// Lets others run.
inline void giveWay() {
  Block &b = *block();
  swapcontext(&b.current->context, &b.scheduler);
}

inline void runThread() {
  Block &b = *block();
  (*b.kernel)();
  b.current->ended = true;
  b.advanced = true;
  giveWay();
}

/// One block's threads to their ends, each as far as it comes before the next.
inline void runBlock(Block &b) {
  block() = &b;
  constexpr size_t kStack = 256 << 10;
  for (Thread &thread : b.threads) {
    thread.stack.reset(new char[kStack]);
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.get();
    thread.context.uc_stack.ss_size = kStack;
    thread.context.uc_link = nullptr;
    makecontext(&thread.context, runThread, 0);
  }
  for (bool waits = true; waits;) {
    waits = b.advanced = false;
    for (Thread &thread : b.threads) {
      if (thread.ended)
        continue;
      b.current = &thread;
      swapcontext(&b.scheduler, &thread.context);
      waits |= !thread.ended;
    }
    if (waits && !b.advanced)
      fail("all threads wait for each other");
  }
  block() = nullptr;
}

inline void launch(Dim grid, Dim size, const std::function<void()> &kernel) {
  for (unsigned x = 0; x < grid.x; ++x) {
    Block b;
    b.grid = grid;
    b.size = size;
    b.index = {x, 0, 0};
    b.kernel = &kernel;
    b.threads.resize(size.x);
    for (unsigned i = 0; i < size.x; ++i) {
      b.threads[i].number = i;
      b.threads[i].index = {i, 0, 0};
    }
    runBlock(b);
  }
}

/// What thread `from` of the warp gives for this exchange of all threads in `mask`.
template <typename T> T exchange(unsigned mask, T value, unsigned from) {
  static_assert(sizeof(T) <= sizeof(Thread::held[0]));
  Block &b = *block();
  Thread &self = *b.current;
  unsigned warp = self.number / 32 * 32;
  if (!(mask >> (self.number - warp) & 1))
    fail("a shuffle of a mask without this thread");
  if (!(mask >> from & 1))
    fail("a shuffle from a thread outside of the mask");
  uint64_t now = ++self.exchanges;
  std::memcpy(self.held[now % 2], &value, sizeof value);
  b.advanced = true;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    if (warp + lane >= b.threads.size())
      fail("a shuffle with a thread that the block does not have");
    while (b.threads[warp + lane].exchanges < now) {
      if (b.threads[warp + lane].ended)
        fail("a shuffle with a thread that has ended");
      giveWay();
    }
  }
  T result;
  std::memcpy(&result, b.threads[warp + from].held[now % 2], sizeof result);
  return result;
}

} // namespace cuda_emu

#define threadIdx (cuda_emu::block()->current->index)
#define blockIdx (cuda_emu::block()->index)
#define blockDim (cuda_emu::block()->size)
#define gridDim (cuda_emu::block()->grid)

template <typename T> T __shfl_sync(unsigned mask, T value, int from, int width) {
  unsigned lane = threadIdx.x % 32;
  return cuda_emu::exchange(mask, value, lane / unsigned(width) * unsigned(width) + unsigned(from) % unsigned(width));
}

inline float __int_as_float(int bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline double __longlong_as_double(long long bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
