// The last reads and writes of each range of memory. From these follow the dependences of an action: read after write,
// write after read and write after write.
//
// Memory is cut at the boundaries of all ranges that will ever be used. Each piece has one history: its last write, and
// the last read since in each queue.
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
  /// `ranges` must contain every range of a later call.
  explicit AccessHistory(llvm::ArrayRef<MemoryRange> ranges);

  /// The numbers of the pieces that form a range.
  struct Pieces {
    size_t begin, end;
  };
  Pieces piecesOf(const MemoryRange &range) const;

  /// Appends the earlier actions that conflict with an access to these pieces: the last write, and for a write also the
  /// reads since.
  void conflicts(Pieces range, bool isWrite, llvm::SmallVectorImpl<unsigned> &after) const;
  /// Records that `action`, of `queue`, accesses these pieces. It must run after all its conflicts.
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
