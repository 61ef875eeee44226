#include "passes/schedule/TransientMemory.h"

#include "llvm/ADT/STLExtras.h"

namespace sluice::passes {

/// Whether all that touch `a` are done before anything touches `b`.
static bool endsBefore(const TransientBuffer &a, const TransientBuffer &b, const HappensBefore &known) {
  return !a.outlivesCall && b.begin != TransientBuffer::kBeforeCall &&
         llvm::all_of(llvm::reverse(a.uses), [&](unsigned use) { return known.isBefore(use, b.begin); });
}

static bool canShare(const TransientBuffer &a, const TransientBuffer &b, const HappensBefore &known) {
  return a.sharesBytes && b.sharesBytes && (endsBefore(a, b, known) || endsBefore(b, a, known));
}

llvm::SmallVector<int64_t> placeTransients(llvm::MutableArrayRef<TransientBuffer> buffers, const HappensBefore &known,
                                           size_t deviceCount) {
  llvm::SmallVector<TransientBuffer *> order = llvm::to_vector(llvm::make_pointer_range(buffers));
  llvm::sort(order, [](TransientBuffer *a, TransientBuffer *b) {
    return std::pair(-a->bytes, a) < std::pair(-b->bytes, b); // all lie in one array
  });
  std::vector<llvm::SmallVector<TransientBuffer *>> placed(deviceCount); // by offset
  llvm::SmallVector<int64_t> peak(deviceCount, 0);
  for (TransientBuffer *buffer : order) {
    llvm::SmallVector<TransientBuffer *> &others = placed[buffer->device];
    int64_t offset = 0;
    for (TransientBuffer *other : others) {
      bool isApart = other->offset + other->bytes <= offset;
      if (isApart || canShare(*buffer, *other, known))
        continue;
      if (offset + buffer->bytes <= other->offset)
        break;
      offset = other->offset + other->bytes;
    }
    buffer->offset = offset;
    others.insert(
        llvm::upper_bound(others, buffer, [](TransientBuffer *a, TransientBuffer *b) { return a->offset < b->offset; }),
        buffer);
    peak[buffer->device] = std::max(peak[buffer->device], offset + buffer->bytes);
  }
  return peak;
}

} // namespace sluice::passes
