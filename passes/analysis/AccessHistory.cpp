#include "passes/analysis/AccessHistory.h"
#include "llvm/ADT/STLExtras.h"

namespace sluice::passes {

AccessHistory::AccessHistory(llvm::ArrayRef<MemoryRange> ranges) {
  for (const MemoryRange &range : ranges) {
    cuts.push_back({range.arena, range.begin});
    cuts.push_back({range.arena, range.end});
  }
  llvm::sort(cuts);
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  pieces.resize(cuts.size());
}

AccessHistory::Pieces AccessHistory::piecesOf(const MemoryRange &range) const {
  auto find = [&](int64_t offset) {
    return size_t(llvm::lower_bound(cuts, std::pair(range.arena, offset)) - cuts.begin());
  };
  return {find(range.begin), find(range.end)};
}

void AccessHistory::conflicts(Pieces range, bool isWrite, llvm::SmallVectorImpl<unsigned> &after) const {
  for (const Piece &piece : llvm::ArrayRef(pieces).slice(range.begin, range.end - range.begin)) {
    if (piece.write != kNone)
      after.push_back(piece.write);
    if (isWrite)
      for (auto [queue, action] : piece.reads)
        after.push_back(action);
  }
}

void AccessHistory::note(Pieces range, bool isWrite, unsigned action, unsigned queue) {
  for (Piece &piece : llvm::MutableArrayRef(pieces).slice(range.begin, range.end - range.begin)) {
    if (isWrite) {
      piece.write = action;
      piece.reads.clear();
      continue;
    }
    auto read = llvm::find_if(piece.reads, [&](auto pair) { return pair.first == queue; });
    if (read == piece.reads.end())
      piece.reads.push_back({queue, action});
    else
      read->second = action;
  }
}

} // namespace sluice::passes
