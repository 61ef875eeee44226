// Each buffer takes the lowest free offset, so an offset depends on all buffers that were placed before. Two structures
// find it without a look at each of them:
//
// 1. A tree over the actions, in the order of issue, holds the bytes that are taken at some time of each subtree. It
//    rejects offsets of buffers that exist at the same time.
// 2. If there are several queues, buffers whose times differ may still conflict. Those at the offset that the tree
//    found are compared one by one.
#include "passes/schedule/TransientMemory.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <map>
#include <vector>

namespace sluice::passes {

namespace {

/// A buffer with its frequently used properties.
struct Placed {
  TransientBuffer *buffer;
  int64_t offset, end;
  unsigned begin, last; // accesses, in issue order
  bool sharesBytes, canEnd;
};

/// The actions from a buffer's first to its last access, in issue order. Buffers whose lives meet never share bytes;
/// other buffers may, if the order of the queues allows it.
struct Life {
  unsigned first, last;

  bool covers(const Life &other) const { return first <= other.first && other.last <= last; }
  bool meets(const Life &other) const { return first <= other.last && other.first <= last; }
};

/// Bytes that are taken, as ranges that neither overlap nor touch. There are few ranges, because most buffers extend
/// one.
class TakenBytes {
public:
  /// The lowest offset from `from` on at which so many bytes are free.
  int64_t findFree(int64_t from, int64_t bytes) const {
    for (auto range = firstBeyond(from); range != ranges.end() && range->begin < from + bytes; ++range)
      from = std::max(from, range->end);
    return from;
  }

  void add(int64_t begin, int64_t end) {
    auto first = ranges.begin() + (firstBeyond(begin - 1) - ranges.cbegin()), behind = first;
    for (; behind != ranges.end() && behind->begin <= end; ++behind) {
      begin = std::min(begin, behind->begin);
      end = std::max(end, behind->end);
    }
    if (first == behind) {
      ranges.insert(first, {begin, end});
      return;
    }
    *first = {begin, end};
    ranges.erase(first + 1, behind);
  }

private:
  struct Range {
    int64_t begin, end;
  };

  /// The first range that ends after `offset`.
  std::vector<Range>::const_iterator firstBeyond(int64_t offset) const {
    return llvm::partition_point(ranges, [&](const Range &range) { return range.end <= offset; });
  }

  std::vector<Range> ranges;
};

/// The bytes that are taken during each action.
class TakenOverTime {
public:
  explicit TakenOverTime(unsigned actions) : whole{0, unsigned(llvm::PowerOf2Ceil(actions)) - 1} {
    nodes.resize(2 * size_t(whole.last + 1));
  }

  void add(const Life &life, int64_t begin, int64_t end) {
    forEachNode(1, whole, life, [&](size_t number, bool isCovered) {
      if (isCovered)
        nodes[number].always.add(begin, end);
      nodes[number].sometimes.add(begin, end);
    });
  }

  /// The lowest offset from `from` on at which so many bytes are free all the time.
  int64_t findFree(const Life &life, int64_t from, int64_t bytes) const {
    llvm::SmallVector<const TakenBytes *> taken;
    forEachNode(1, whole, life, [&](size_t number, bool isCovered) {
      taken.push_back(isCovered ? &nodes[number].sometimes : &nodes[number].always);
    });
    for (int64_t before = -1; before != from;) {
      before = from;
      for (const TakenBytes *its : taken)
        from = its->findFree(from, bytes);
    }
    return from;
  }

private:
  struct Node {
    TakenBytes sometimes; ///< by buffers that exist during part of the node's actions, or all of them
    TakenBytes always;    ///< by buffers that exist during all of them, but not during all of its parent's
  };

  /// Calls `body` for the fewest nodes that make up a life, and for the nodes above them. The children of node n are
  /// 2 n and 2 n + 1.
  template <typename Body> static void forEachNode(size_t number, const Life &range, const Life &life, Body body) {
    bool isCovered = life.covers(range);
    body(number, isCovered);
    if (isCovered)
      return;
    unsigned middle = range.first + (range.last - range.first) / 2;
    for (size_t half : {0, 1}) {
      Life part = half ? Life{middle + 1, range.last} : Life{range.first, middle};
      if (life.meets(part))
        forEachNode(2 * number + half, part, life, body);
    }
  }

  Life whole;
  std::vector<Node> nodes;
};

/// The buffers of one device's arena.
struct Arena {
  explicit Arena(unsigned actions) : taken(actions) {}

  TakenOverTime taken;
  std::multimap<int64_t, const Placed *> byOffset;
  int64_t largest = 0, peak = 0; // bytes
};

} // namespace

static Placed lookAt(TransientBuffer &buffer) {
  unsigned last = 0;
  for (unsigned use : buffer.uses)
    last = std::max(last, use);
  return {&buffer, 0, 0, buffer.begin, last, buffer.sharesBytes, !buffer.outlivesCall};
}

/// The life of a buffer in a call with this many actions.
static Life lifeOf(const Placed &buffer, unsigned actions) {
  bool isFromStart = !buffer.sharesBytes || buffer.begin == TransientBuffer::kBeforeCall;
  bool isToEnd = !buffer.sharesBytes || !buffer.canEnd;
  return {isFromStart ? 0 : buffer.begin, isToEnd ? actions - 1 : buffer.last};
}

/// Whether all accesses of `a` are done before the first write of `b`, and are issued before it.
static bool endsBefore(const Placed &a, const Placed &b, const HappensBefore &known) {
  return a.canEnd && b.begin != TransientBuffer::kBeforeCall && a.last < b.begin &&
         llvm::all_of(llvm::reverse(a.buffer->uses), [&](unsigned use) { return known.isBefore(use, b.begin); });
}

static bool canShare(const Placed &a, const Placed &b, const HappensBefore &known) {
  return a.sharesBytes && b.sharesBytes && (endsBefore(a, b, known) || endsBefore(b, a, known));
}

/// The first buffer with which `next` cannot share its bytes if it is placed at `offset`; null if there is none.
static const Placed *findConflict(const Arena &arena, const Placed &next, int64_t offset, const HappensBefore &known) {
  int64_t end = offset + next.buffer->bytes;
  auto other = arena.byOffset.upper_bound(offset - arena.largest);
  for (; other != arena.byOffset.end() && other->first < end; ++other)
    if (offset < other->second->end && !canShare(next, *other->second, known))
      return other->second;
  return nullptr;
}

/// The lowest offset at which `next` can be placed.
static int64_t findOffset(const Arena &arena, const Placed &next, const Life &life, const HappensBefore &known) {
  int64_t offset = 0;
  while (true) {
    offset = arena.taken.findFree(life, offset, next.buffer->bytes);
    const Placed *conflict = known.isOneQueue() ? nullptr : findConflict(arena, next, offset, known);
    if (!conflict)
      return offset;
    offset = conflict->end;
  }
}

llvm::SmallVector<int64_t> placeTransients(llvm::MutableArrayRef<TransientBuffer> buffers, const HappensBefore &known,
                                           size_t deviceCount) {
  llvm::SmallVector<Placed> order = llvm::map_to_vector(buffers, lookAt);
  llvm::sort(order, [](const Placed &a, const Placed &b) {
    return std::pair(-a.buffer->bytes, a.buffer) < std::pair(-b.buffer->bytes, b.buffer); // all are in one array
  });
  unsigned actions = 1;
  for (const Placed &buffer : order)
    actions = std::max(actions, buffer.last + 1);
  std::vector<Arena> arenas(deviceCount, Arena(actions));
  for (Placed &next : order) {
    TransientBuffer &buffer = *next.buffer;
    Arena &arena = arenas[buffer.device];
    Life life = lifeOf(next, actions);
    buffer.offset = next.offset = findOffset(arena, next, life, known);
    next.end = buffer.offset + buffer.bytes;
    arena.taken.add(life, next.offset, next.end);
    arena.byOffset.insert({next.offset, &next});
    arena.largest = std::max(arena.largest, buffer.bytes);
    arena.peak = std::max(arena.peak, next.end);
  }
  return llvm::map_to_vector(arenas, [](const Arena &arena) { return arena.peak; });
}

} // namespace sluice::passes
