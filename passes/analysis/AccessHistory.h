// Who wrote and read which bytes last, as actions go by: what an action must come after so that it sees what it should
// see, and overwrites nothing that is still wanted.
//
// Memory is cut at the ends of all ranges that will ever be used, so that each piece has one history: its last write,
// and the last read since in each queue.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <vector>

namespace sluice::passes {

/// Bytes [begin, end) of an arena.
struct MemoryRange {
  unsigned arena;
  int64_t begin, end;
};

class AccessHistory {
public:
  /// Every range of a later call must be among `ranges`.
  explicit AccessHistory(llvm::ArrayRef<MemoryRange> ranges);

  /// The numbers of the pieces that a range is made of.
  struct Pieces {
    size_t begin, end;
  };
  Pieces piecesOf(const MemoryRange &range) const;

  /// Appends the earlier actions that conflict with a read or write of these: the last write, and for a write the reads
  /// since.
  void conflicts(Pieces range, bool isWrite, llvm::SmallVectorImpl<unsigned> &after) const;
  /// Notes that `action`, of `queue`, reads or writes them. It must come after all its conflicts.
  void note(Pieces range, bool isWrite, unsigned action, unsigned queue);

private:
  static constexpr unsigned kNone = ~0u;
  struct Piece {
    unsigned write = kNone;
    llvm::SmallVector<std::pair<unsigned, unsigned>, 2> reads; // queue and action
  };

  std::vector<std::pair<unsigned, int64_t>> cuts; // arena and offset where each piece begins
  std::vector<Piece> pieces;
};

} // namespace sluice::passes
