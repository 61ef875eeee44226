// The threads that emulated kernels run in: each thread of a block is a fiber, which gives way where it waits for
// others. A thread that waits for one that has ended, or that never comes, ends the program with what it waits for.
#include "tests/cuda_emu/Fibers.h"
#include "tests/cuda_emu/cuda_emu.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <utility>
#include <vector>

/// Keeps the registers that calls keep on the running stack, whose top goes to `*from`, and goes on with another's.
extern "C" void cuda_emu_switch(void **from, void *to);
asm(R"(
.text
.local cuda_emu_switch
.type cuda_emu_switch, @function
cuda_emu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");

namespace cuda_emu {

namespace {

constexpr size_t kStackBytes = 256 << 10;
constexpr unsigned kWarp = 32;
constexpr unsigned kMostBytes = 24, kMostOfShuffle = 8; // of an exchange
constexpr size_t kPage = 4096, kSharedPages = 64;       // no launch gives more

struct Copy {
  void (*copy)(void *, const void *);
  void *to;
  const void *from;
  uint64_t group;
};

struct Thread {
  Place place;
  unsigned number = 0;                 // in the block
  uint64_t exchanges = 0;              // shuffles begun
  uint64_t barriers = 0;               // come to
  unsigned char held[2][kMostBytes]{}; // what it gave for the last two
  std::deque<Copy> copies;             // that are late
  uint64_t groups = 0;                 // of copies, ended
  bool begun = false, ended = false;
  void *stack = nullptr; // its top while others run
  const Fiber *fiber = nullptr;
};

/// The order in which blocks, or the threads of one, take their turns. CUDA_EMU_SCHEDULE is "ascending", "descending", or a
/// number, by which they are shuffled, each block's threads in another way.
class Schedule {
public:
  Schedule() {
    const char *named = std::getenv("CUDA_EMU_SCHEDULE");
    std::string name = named ? named : "ascending";
    isDescending = name == "descending";
    isShuffled = !isDescending && name != "ascending";
    random = std::strtoul(name.c_str(), nullptr, 10);
  }

  std::vector<unsigned> orderOf(unsigned count) {
    std::vector<unsigned> order(count);
    for (unsigned i = 0; i < count; ++i)
      order[i] = isDescending ? count - 1 - i : i;
    for (unsigned i = count; isShuffled && i > 1; --i)
      std::swap(order[i - 1], order[next() % i]);
    return order;
  }

private:
  unsigned next() { // MMIX's generator; the header of the library's own has functions that kernels declare otherwise
    random = random * 6364136223846793005ull + 1442695040888963407ull;
    return unsigned(random >> 33);
  }

  bool isDescending, isShuffled;
  uint64_t random;
};

struct Block {
  std::vector<Thread> threads;
  std::vector<unsigned> turns; // of threads
  Thread *current = nullptr;
  void (*kernel)(void *) = nullptr;
  void *argument = nullptr;
  void *scheduler = nullptr; // its stack
  void *schedulerFiber = Fiber::current();
  BarrierOrder order, ends;
  uint64_t arrivals = 0; // at barriers
  bool advanced = false; // whether any thread came further in this round

  Block(Dim gridSize, Dim size, Dim index, std::vector<unsigned> turns, void (*kernel)(void *), void *argument)
      : threads(size.x), turns(std::move(turns)), kernel(kernel), argument(argument) {
    for (unsigned i = 0; i < size.x; ++i) {
      threads[i].number = i;
      threads[i].place = {{i, 0, 0}, index, size, gridSize};
    }
  }
};

thread_local Block *running = nullptr;
constexpr unsigned kWithoutEnd = ~0u;
thread_local unsigned sharedBytes = kWithoutEnd; // that the launch gives

[[noreturn]] void fail(const char *why) {
  Thread &thread = *running->current;
  std::fprintf(stderr, "cuda_emu: block %u, thread %u: %s\n", thread.place.block.x, thread.number, why);
  std::abort();
}

/// Lets others run.
void giveWay() {
  Fiber::switchTo(running->schedulerFiber, /*isOrdered=*/false);
  cuda_emu_switch(&running->current->stack, running->scheduler);
}

/// Lets a thread run until it gives way.
void goOn(Thread &thread) {
  running->current = &thread;
  thread.fiber->goOn(/*isOrdered=*/!thread.begun);
  thread.begun = true;
  cuda_emu_switch(&running->scheduler, thread.stack);
}

/// Not `memcpy`, which sanitizers watch: the device's exchange is no memory of anybody's.
void copyBytes(void *to, const void *from, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i)
    static_cast<volatile unsigned char *>(to)[i] = static_cast<const volatile unsigned char *>(from)[i];
}

void runThread() {
  running->kernel(running->argument);
  if (!running->current->copies.empty())
    fail("ends before its copies");
  running->ends.arrive(0);
  running->current->ended = true;
  running->advanced = true;
  giveWay();
}

/// Fibers are taken again by the next block, too.
const Fiber *fiberOf(size_t thread) {
  thread_local std::deque<Fiber> fibers;
  while (fibers.size() <= thread)
    fibers.emplace_back();
  return &fibers[thread];
}

/// A stack that goes on with `runThread`; stacks are taken again by the next block.
void *stackOf(size_t thread) {
  thread_local std::vector<std::unique_ptr<char[]>> stacks;
  while (stacks.size() <= thread)
    stacks.emplace_back(new char[kStackBytes]);
  auto end = reinterpret_cast<uintptr_t>(stacks[thread].get() + kStackBytes) & ~uintptr_t(15);
  void **top = reinterpret_cast<void **>(end);
  *--top = nullptr; // where a function finds its return address
  *--top = reinterpret_cast<void *>(runThread);
  constexpr int kRegisters = 6;
  for (int i = 0; i < kRegisters; ++i)
    *--top = nullptr;
  return top;
}

/// So many bytes of shared memory, behind which there is none.
unsigned char *sharedAt(unsigned bytes) {
  constexpr size_t kBytes = kPage * kSharedPages, kMultiple = 16;
  thread_local auto *pages = static_cast<unsigned char *>(
      mmap(nullptr, kBytes + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  thread_local int guarded = mprotect(pages + kBytes, kPage, PROT_NONE);
  size_t taken = (bytes + kMultiple - 1) / kMultiple * kMultiple;
  if (pages == MAP_FAILED || guarded != 0 || taken > kBytes) {
    std::fprintf(stderr, "cuda_emu: there are no %u bytes of shared memory\n", bytes);
    std::abort();
  }
  return pages + kBytes - taken;
}

/// One block's threads to their ends, each as far as it comes before the next.
void runBlock(Block &block) {
  running = &block;
  for (Thread &thread : block.threads) {
    thread.stack = stackOf(thread.number);
    thread.fiber = fiberOf(thread.number);
  }
  for (bool waits = true; waits;) {
    waits = block.advanced = false;
    for (unsigned number : block.turns) {
      Thread &thread = block.threads[number];
      if (thread.ended)
        continue;
      goOn(thread);
      waits |= !thread.ended;
    }
    if (waits && !block.advanced)
      fail("all threads that have not ended wait for others");
  }
  block.ends.leave(0);
  running = nullptr;
}

} // namespace

extern "C" const Place *cuda_emu_place() { return &running->current->place; }

extern "C" void cuda_emu_launch(Dim gridSize, Dim blockSize, void (*kernel)(void *), void *argument) {
  Schedule schedule;
  for (unsigned x : schedule.orderOf(gridSize.x)) {
    if (sharedBytes != kWithoutEnd) // nothing is left of the block before
      std::memset(sharedAt(sharedBytes), 0xff, sharedBytes);
    Block block(gridSize, blockSize, {x, 0, 0}, schedule.orderOf(blockSize.x), kernel, argument);
    runBlock(block);
  }
}

/// Gives `value` to all threads of the warp in `mask`, and waits for theirs. The number of this exchange.
static uint64_t exchange(unsigned mask, const void *value, unsigned bytes) {
  Block &block = *running;
  Thread &self = *block.current;
  unsigned warp = self.number / kWarp * kWarp;
  uint64_t now = ++self.exchanges;
  copyBytes(self.held[now % 2], value, bytes);
  block.advanced = true;
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    if (warp + lane >= block.threads.size())
      fail("a shuffle with a thread that the block does not have");
    while (block.threads[warp + lane].exchanges < now) {
      if (block.threads[warp + lane].ended)
        fail("a shuffle with a thread that has ended");
      giveWay();
    }
  }
  return now;
}

extern "C" void cuda_emu_exchange(unsigned mask, const void *value, unsigned bytes, unsigned from, void *result) {
  unsigned number = running->current->number, warp = number / kWarp * kWarp;
  if (bytes > kMostOfShuffle)
    fail("a shuffle of more than 8 bytes");
  if (!(mask >> (number - warp) & 1))
    fail("a shuffle of a mask without this thread");
  if (!(mask >> from & 1))
    fail("a shuffle from a thread outside of the mask");
  uint64_t now = exchange(mask, value, bytes);
  copyBytes(result, running->threads[warp + from].held[now % 2], bytes);
}

extern "C" void cuda_emu_gather(const void *value, unsigned bytes, void *all) {
  if (bytes > kMostBytes)
    fail("fragments of more than 24 bytes");
  uint64_t now = exchange(~0u, value, bytes);
  unsigned warp = running->current->number / kWarp * kWarp;
  for (unsigned lane = 0; lane < kWarp; ++lane)
    copyBytes(static_cast<char *>(all) + lane * bytes, running->threads[warp + lane].held[now % 2], bytes);
}

extern "C" void cuda_emu_require(bool holds, const char *what) {
  if (!holds)
    fail(what);
}

extern "C" void cuda_emu_barrier() {
  Block &block = *running;
  uint64_t now = ++block.current->barriers;
  ++block.arrivals;
  block.advanced = true;
  block.order.arrive(now);
  while (block.arrivals < now * block.threads.size())
    giveWay();
  block.order.leave(now);
}

extern "C" unsigned char *cuda_emu_shared(unsigned bytes) {
  if (sharedBytes < bytes)
    fail("too little shared memory is given");
  return sharedAt(sharedBytes == kWithoutEnd ? bytes : sharedBytes);
}

extern "C" void cuda_emu_give_shared_bytes(unsigned bytes) { sharedBytes = bytes; }

extern "C" void cuda_emu_begin_copy(void (*copy)(void *, const void *), void *to, const void *from) {
  Thread &self = *running->current;
  bool isLate = self.number % 2 == 1;
  if (isLate)
    self.copies.push_back({copy, to, from, self.groups});
  else
    copy(to, from);
}

extern "C" void cuda_emu_end_group_of_copies() { ++running->current->groups; }

extern "C" void cuda_emu_await_copies(unsigned groups) {
  Thread &self = *running->current;
  for (; !self.copies.empty() && self.copies.front().group + groups < self.groups; self.copies.pop_front())
    self.copies.front().copy(self.copies.front().to, self.copies.front().from);
}

} // namespace cuda_emu
