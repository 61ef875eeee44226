#include "passes/schedule/TransientMemory.h"

#include "llvm/ADT/STLExtras.h"

namespace sluice::passes {

namespace {

/// A buffer, and what is asked of it often.
struct Placed {
  TransientBuffer *buffer;
  int64_t offset, end;
  unsigned begin, last; // to touch it, in the order of issue
  bool sharesBytes, canEnd;
};

} // namespace

static Placed lookAt(TransientBuffer &buffer) {
  unsigned last = 0;
  for (unsigned use : buffer.uses)
    last = std::max(last, use);
  return {&buffer, 0, 0, buffer.begin, last, buffer.sharesBytes, !buffer.outlivesCall};
}

/// Whether all that touch `a` are done before anything touches `b`; never if any of it is issued later.
static bool endsBefore(const Placed &a, const Placed &b, const HappensBefore &known) {
  return a.canEnd && b.begin != TransientBuffer::kBeforeCall && a.last < b.begin &&
         (known.isOneQueue() ||
          llvm::all_of(llvm::reverse(a.buffer->uses), [&](unsigned use) { return known.isBefore(use, b.begin); }));
}

static bool canShare(const Placed &a, const Placed &b, const HappensBefore &known) {
  return a.sharesBytes && b.sharesBytes && (endsBefore(a, b, known) || endsBefore(b, a, known));
}

llvm::SmallVector<int64_t> placeTransients(llvm::MutableArrayRef<TransientBuffer> buffers, const HappensBefore &known,
                                           size_t deviceCount) {
  llvm::SmallVector<Placed> order = llvm::map_to_vector(buffers, lookAt);
  llvm::sort(order, [](const Placed &a, const Placed &b) {
    return std::pair(-a.buffer->bytes, a.buffer) < std::pair(-b.buffer->bytes, b.buffer); // all lie in one array
  });
  std::vector<std::vector<Placed>> placed(deviceCount); // by offset
  llvm::SmallVector<int64_t> peak(deviceCount, 0);
  for (Placed &next : order) {
    TransientBuffer &buffer = *next.buffer;
    std::vector<Placed> &others = placed[buffer.device];
    int64_t offset = 0;
    for (const Placed &other : others) {
      if (offset + buffer.bytes <= other.offset)
        break; // as all others lie behind
      if (offset < other.end && !canShare(next, other, known))
        offset = other.end;
    }
    buffer.offset = next.offset = offset;
    next.end = offset + buffer.bytes;
    auto isLower = [](const Placed &a, const Placed &b) { return a.offset < b.offset; };
    others.insert(llvm::upper_bound(others, next, isLower), next);
    peak[buffer.device] = std::max(peak[buffer.device], next.end);
  }
  return peak;
}

} // namespace sluice::passes
