// Offsets against a search that compares each buffer with all that were placed before, on random calls.
#include "passes/schedule/TransientMemory.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <random>
#include <utility>
#include <vector>

using namespace sluice::passes;

namespace {

constexpr size_t kDevices = 2;
constexpr unsigned kActions = 60;

/// Actions in random queues, each after a few earlier ones.
HappensBefore randomActions(std::mt19937 &random, unsigned numQueues) {
  HappensBefore known(numQueues);
  for (unsigned i = 0; i < kActions; ++i) {
    llvm::SmallVector<unsigned> after;
    for (unsigned n = i == 0 ? 0 : random() % 3; n > 0; --n)
      after.push_back(random() % i);
    known.issue({unsigned(random() % numQueues)}, after);
  }
  return known;
}

TransientBuffer randomBuffer(std::mt19937 &random) {
  TransientBuffer buffer;
  buffer.device = random() % kDevices;
  buffer.bytes = 64 * int64_t(1 + random() % 6);
  buffer.outlivesCall = random() % 10 == 0;
  buffer.sharesBytes = random() % 10 != 0;
  unsigned first = random() % kActions;
  if (random() % 10 != 0) {
    buffer.begin = first;
    buffer.uses.push_back(first);
  }
  for (unsigned n = 1 + random() % 4; n > 0; --n)
    buffer.uses.push_back(std::min(first + unsigned(random() % 12), kActions - 1));
  return buffer;
}

std::vector<TransientBuffer> randomBuffers(std::mt19937 &random) {
  std::vector<TransientBuffer> buffers;
  for (unsigned i = 0; i < 120; ++i)
    buffers.push_back(randomBuffer(random));
  return buffers;
}

/// Whether all uses of `a` are done when the first action of `b` starts.
bool endsBefore(const TransientBuffer &a, const TransientBuffer &b, const HappensBefore &known) {
  return !a.outlivesCall && b.begin != TransientBuffer::kBeforeCall &&
         std::all_of(a.uses.begin(), a.uses.end(),
                     [&](unsigned use) { return use < b.begin && known.isBefore(use, b.begin); });
}

bool mustDiffer(const TransientBuffer &a, const TransientBuffer &b, const HappensBefore &known) {
  return a.device == b.device &&
         (!a.sharesBytes || !b.sharesBytes || (!endsBefore(a, b, known) && !endsBefore(b, a, known)));
}

bool overlap(const TransientBuffer &a, const TransientBuffer &b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

/// Largest first, each at the lowest multiple of 64 that no conflict rules out.
void placeOneByOne(std::vector<TransientBuffer> &buffers, const HappensBefore &known) {
  std::vector<TransientBuffer *> order, placed;
  for (TransientBuffer &buffer : buffers)
    order.push_back(&buffer);
  std::sort(order.begin(), order.end(),
            [](auto *a, auto *b) { return std::pair(-a->bytes, a) < std::pair(-b->bytes, b); });
  for (TransientBuffer *next : order) {
    auto conflicts = [&](TransientBuffer *other) { return mustDiffer(*next, *other, known) && overlap(*next, *other); };
    for (next->offset = 0; std::any_of(placed.begin(), placed.end(), conflicts);)
      next->offset += 64;
    placed.push_back(next);
  }
}

std::vector<int64_t> offsetsOf(const std::vector<TransientBuffer> &buffers) {
  std::vector<int64_t> offsets;
  for (const TransientBuffer &buffer : buffers)
    offsets.push_back(buffer.offset);
  return offsets;
}

class TransientMemory : public testing::TestWithParam<unsigned> {}; // queues

TEST_P(TransientMemory, TakesTheLowestFreeOffset) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    HappensBefore known = randomActions(random, GetParam());
    std::vector<TransientBuffer> buffers = randomBuffers(random), expected = buffers;
    placeTransients(buffers, known, kDevices);
    placeOneByOne(expected, known);
    EXPECT_EQ(offsetsOf(buffers), offsetsOf(expected)) << "seed " << seed;
  }
}

TEST_P(TransientMemory, ReturnsTheBytesOfEachArena) {
  std::mt19937 random(1);
  HappensBefore known = randomActions(random, GetParam());
  std::vector<TransientBuffer> buffers = randomBuffers(random);
  llvm::SmallVector<int64_t> arenas = placeTransients(buffers, known, kDevices);
  std::vector<int64_t> ends(kDevices, 0);
  for (const TransientBuffer &buffer : buffers)
    ends[buffer.device] = std::max(ends[buffer.device], buffer.offset + buffer.bytes);
  EXPECT_EQ(std::vector<int64_t>(arenas.begin(), arenas.end()), ends);
}

INSTANTIATE_TEST_SUITE_P(Queues, TransientMemory, testing::Values(1u, 2u, 4u));

} // namespace
