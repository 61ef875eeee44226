// Does an exchange whose ranks lie in one address space, piece by piece.
#pragma once

#include "backends/exchange/Signature.h"

#include <vector>

namespace sluice::exchange {

class Transfer {
public:
  /// One part for each rank, in their order, with equal signatures.
  explicit Transfer(std::vector<Part> parts);

  const Signature &signature() const { return parts_.front().signature; }
  /// Does elements `first` to `first + count` of all that is reduced, broadcast or gathered, for every rank: pieces may
  /// be done in any order and by several threads at once. Sums are added in ascending order of ranks. What is sent of a
  /// piece is read before anything of it is written, as exchanges in place need.
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
