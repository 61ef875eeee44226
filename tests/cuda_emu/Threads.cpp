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
constexpr unsigned kMostBytes = 8;                            // of a shuffle
constexpr unsigned kRows = 16, kColumns = 8, kMostTerms = 16; // of a tensor core's product
constexpr size_t kPage = 4096, kSharedPages = 64;             // no launch gives more

struct Copy {
  void (*copy)(void *, const void *);
  void *to;
  const void *from;
  uint64_t group;
};

struct Thread {
  Place place;
  unsigned number = 0;      // in the block
  uint64_t barriers = 0;    // come to
  uint64_t gathers = 0;     // begun
  std::vector<Copy> copies; // that are late
  uint64_t groups = 0;      // of copies, ended
  bool ended = false;
  void *stack = nullptr; // its top while others run
  void *fiber = nullptr;
};

/// What its threads give each other. Of what they give there are two, which take turns: all have come to an exchange, and so
/// have read what was given for the last, before one of them gives anything for the next but one.
struct Warp {
  uint64_t exchanges[kWarp] = {}; // begun by each
  unsigned ended = 0;             // a bit for each
  unsigned char shuffled[2][kWarp][kMostBytes];
  struct {
    void *addresses[kWarp];
    double a[kRows][kMostTerms], b[kColumns][kMostTerms];
  } gathered[2];

  /// A bit for each that has begun fewer exchanges.
  unsigned behind(uint64_t count) const {
    unsigned bits = 0;
    for (unsigned lane = 0; lane < kWarp; ++lane)
      bits |= unsigned(exchanges[lane] < count) << lane;
    return bits;
  }
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

[[noreturn]] void fail(const char *why);

struct Block {
  std::vector<Thread> threads;
  std::unique_ptr<Warp[]> warps;
  std::vector<unsigned> turns; // of threads
  size_t turn;
  size_t left;    // that have not ended
  Thread outside; // who runs the block
  Thread *current = &outside;
  void (*kernel)(void *) = nullptr;
  void *argument = nullptr;
  BarrierOrder order, begins, ends;
  uint64_t arrivals = 0; // at barriers
  bool advanced = true;  // whether any thread came further in this round

  Block(Dim gridSize, Dim size, Dim index, std::vector<unsigned> turns, void (*kernel)(void *), void *argument)
      : threads(size.x), warps(new Warp[(size.x + kWarp - 1) / kWarp]), turns(std::move(turns)), turn(size.x - 1),
        left(size.x), kernel(kernel), argument(argument) {
    outside.fiber = Fiber::current();
    for (unsigned i = 0; i < size.x; ++i) {
      threads[i].number = i;
      threads[i].place = {{i, 0, 0}, index, size, gridSize};
    }
  }

  Warp &warpOf(const Thread &thread) { return warps[thread.number / kWarp]; }

  /// Fetches what a thread goes on with: stacks lie far apart.
  void prefetch(size_t turn) const {
    auto *top = static_cast<const char *>(threads[turns[turn]].stack);
    __builtin_prefetch(top);
    __builtin_prefetch(top + 64);
  }

  /// The thread whose turn comes next, or who runs the block once all have ended.
  Thread *next() {
    if (left == 0)
      return &outside;
    do {
      if (++turn == turns.size()) {
        if (!advanced)
          fail("all threads that have not ended wait for others");
        turn = 0, advanced = false;
      }
    } while (threads[turns[turn]].ended);
    prefetch(turn + 1 < turns.size() ? turn + 1 : 0);
    return &threads[turns[turn]];
  }
};

[[gnu::tls_model("initial-exec")]] thread_local Block *running = nullptr;
constexpr unsigned kWithoutEnd = ~0u;
thread_local unsigned sharedBytes = kWithoutEnd; // that the launch gives

void fail(const char *why) {
  Thread &thread = *running->current;
  std::fprintf(stderr, "cuda_emu: block %u, thread %u: %s\n", thread.place.block.x, thread.number, why);
  std::abort();
}

/// Lets others run, one after the other, until it is this one's turn again.
void giveWay() {
  Thread &self = *running->current, &next = *running->next();
  if (&next == &self)
    return;
  running->current = &next;
  Fiber::switchTo(next.fiber);
  cuda_emu_switch(&self.stack, next.stack);
}

/// Not `memcpy`, which sanitizers watch: the device's exchange is no memory of anybody's.
void copyBytes(void *to, const void *from, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i)
    static_cast<volatile unsigned char *>(to)[i] = static_cast<const volatile unsigned char *>(from)[i];
}

void runThread() {
  running->begins.leave(0);
  running->kernel(running->argument);
  if (!running->current->copies.empty())
    fail("ends before its copies");
  running->ends.arrive(0);
  Thread &self = *running->current;
  self.ended = true;
  running->warpOf(self).ended |= 1u << self.number % kWarp;
  --running->left;
  running->advanced = true;
  giveWay();
}

/// Fibers are taken again by the next block, too.
void *fiberOf(size_t thread) {
  thread_local std::deque<Fiber> fibers;
  while (fibers.size() <= thread)
    fibers.emplace_back();
  return fibers[thread].own;
}

/// A stack that goes on with `runThread`; stacks are taken again by the next block.
void *stackOf(size_t thread) {
  thread_local std::vector<std::unique_ptr<char[]>> stacks;
  while (stacks.size() <= thread)
    stacks.emplace_back(new char[kStackBytes]);
  size_t apart = thread % 16 * 256; // or all tops would share a few lines of the cache
  auto end = reinterpret_cast<uintptr_t>(stacks[thread].get() + kStackBytes - apart) & ~uintptr_t(15);
  void **top = reinterpret_cast<void **>(end);
  *--top = nullptr; // where a function finds its return address
  *--top = reinterpret_cast<void *>(runThread);
  constexpr int kRegisters = 6;
  for (int i = 0; i < kRegisters; ++i)
    *--top = nullptr;
  return top;
}

/// Shared memory of this size, followed by an inaccessible page.
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
  block.begins.arrive(0);
  giveWay();
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

/// Waits until all threads of the warp in `mask` have begun as many exchanges as this one, which begins another.
static void meet(unsigned mask) {
  Block &block = *running;
  Thread &self = *block.current;
  Warp &warp = block.warpOf(self);
  uint64_t now = ++warp.exchanges[self.number % kWarp];
  block.advanced = true;
  size_t lanes = block.threads.size() - self.number / kWarp * kWarp;
  if (lanes < kWarp && mask >> lanes)
    fail("a shuffle with a thread that the block does not have");
  while (unsigned awaited = warp.behind(now) & mask) {
    if (awaited & warp.ended)
      fail("a shuffle with a thread that has ended");
    giveWay();
  }
}

extern "C" void cuda_emu_exchange(unsigned mask, const void *value, unsigned bytes, unsigned from, void *result) {
  Thread &self = *running->current;
  Warp &warp = running->warpOf(self);
  unsigned lane = self.number % kWarp;
  if (bytes > kMostBytes)
    fail("a shuffle of more than 8 bytes");
  if (!(mask >> lane & 1))
    fail("a shuffle of a mask without this thread");
  if (!(mask >> from & 1))
    fail("a shuffle from a thread outside of the mask");
  auto &shuffled = warp.shuffled[warp.exchanges[lane] % 2];
  copyBytes(shuffled[lane], value, bytes);
  meet(mask);
  copyBytes(result, shuffled[from], bytes);
}

extern "C" void *const *cuda_emu_gather(void *address) {
  Thread &self = *running->current;
  auto &gathered = running->warpOf(self).gathered[self.gathers++ % 2];
  gathered.addresses[self.number % kWarp] = address;
  meet(~0u);
  return gathered.addresses;
}

extern "C" void cuda_emu_multiply(unsigned terms, const float *a, const float *b, float *c) {
  Thread &self = *running->current;
  auto &gathered = running->warpOf(self).gathered[self.gathers++ % 2];
  unsigned lane = self.number % kWarp, held = terms / 8; // in a register
  for (unsigned i = 0; i < 4 * held; ++i)
    gathered.a[lane / 4 + i / held % 2 * 8][lane % 4 * held + i % held + i / held / 2 * (terms / 2)] = a[i];
  for (unsigned i = 0; i < 2 * held; ++i)
    gathered.b[lane / 4][lane % 4 * held + i % held + i / held * (terms / 2)] = b[i];
  meet(~0u);
  for (unsigned i = 0; i < 4; ++i) {
    const double *row = gathered.a[lane / 4 + i / 2 * 8], *column = gathered.b[lane % 4 * 2 + i % 2];
    double total = 0;
    for (unsigned k = 0; k < terms; ++k)
      total += row[k] * column[k];
    c[i] = float(c[i] + total);
  }
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
  auto awaited = self.copies.begin();
  for (; awaited != self.copies.end() && awaited->group + groups < self.groups; ++awaited)
    awaited->copy(awaited->to, awaited->from);
  self.copies.erase(self.copies.begin(), awaited);
}

} // namespace cuda_emu
