// Executes an exchange whose ranks share one address space, piece by piece.
#pragma once

#include "backends/exchange/Signature.h"

#include <vector>

namespace sluice::exchange {

class Transfer {
public:
  /// One part per rank, in rank order, with equal signatures.
  explicit Transfer(std::vector<Part> parts);

  const Signature &signature() const { return parts_.front().signature; }
  /// Executes elements [first, first + count) of everything that is reduced, broadcast or gathered, for every rank.
  /// Pieces may run in any order and on several threads at once. Sums are added in ascending order of ranks. A piece is
  /// read completely before any of it is written, as in-place exchanges require.
  void run(size_t first, size_t count) const noexcept;

private:
  void reducePiece(size_t first, size_t count) const;
  void writeReduced(const std::byte *block, size_t first, size_t count) const;
  void broadcastPiece(size_t offset, size_t bytes) const;
  void gatherPiece(size_t first, size_t count) const;

  std::vector<Part> parts_;
  std::vector<const void *> sent_;
  size_t element_; // bytes of one
};

} // namespace sluice::exchange
