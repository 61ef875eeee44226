#include "backends/exchange/Transfer.h"

#include "backends/exchange/Arithmetic.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sluice::exchange {

static constexpr size_t kBlockBytes = 8192; // sums that stay in the first-level cache until they are copied to ranks

static const std::byte *bytesAt(const void *of, size_t offset) { return static_cast<const std::byte *>(of) + offset; }
static std::byte *bytesAt(void *of, size_t offset) { return static_cast<std::byte *>(of) + offset; }

static void copyUnlessInPlace(const void *from, void *to, size_t bytes) {
  if (from != to)
    std::memcpy(to, from, bytes);
}

/// The intersection of the share [begin, begin + elements) with [first, first + count), as first element and count.
static std::pair<size_t, size_t> within(size_t begin, size_t elements, size_t first, size_t count) {
  size_t from = std::max(begin, first), to = std::min(begin + elements, first + count);
  return {from, to > from ? to - from : 0};
}

Transfer::Transfer(std::vector<Part> parts) : parts_(std::move(parts)), element_(exchangedBytes(signature().dtype)) {
  for (const Part &part : parts_)
    sent_.push_back(part.sent);
}

/// Copies one block of sums to all ranks or, in a reduce-scatter, each rank's elements to that rank.
void Transfer::writeReduced(const std::byte *block, size_t first, size_t count) const {
  size_t begin = 0;
  bool scatters = signature().kind == SLUICE_REDUCE_SCATTER;
  for (size_t rank = 0; rank < parts_.size(); ++rank) {
    size_t share = signature().counts[rank];
    auto [from, elements] = within(begin, share, first, count);
    if (elements > 0)
      std::memcpy(bytesAt(parts_[rank].received, (from - begin) * element_), block + (from - first) * element_,
                  elements * element_);
    begin += scatters ? share : 0;
  }
}

void Transfer::reducePiece(size_t first, size_t count) const {
  alignas(64) std::byte block[kBlockBytes];
  size_t most = kBlockBytes / element_;
  for (size_t done = 0; done < count; done += most) {
    size_t elements = std::min(most, count - done);
    reduce(signature().dtype, signature().reduction, sent_, first + done, elements, block);
    writeReduced(block, first + done, elements);
  }
}

void Transfer::broadcastPiece(size_t offset, size_t bytes) const {
  const Part &root = parts_[static_cast<size_t>(signature().root)];
  for (const Part &part : parts_)
    copyUnlessInPlace(bytesAt(root.sent, offset), bytesAt(part.received, offset), bytes);
}

void Transfer::gatherPiece(size_t first, size_t count) const {
  size_t begin = 0;
  for (size_t rank = 0; rank < parts_.size(); ++rank) {
    auto [from, elements] = within(begin, signature().counts[rank], first, count);
    for (size_t other = 0; other < parts_.size() && elements > 0; ++other)
      copyUnlessInPlace(bytesAt(parts_[rank].sent, (from - begin) * element_),
                        bytesAt(parts_[other].received, from * element_), elements * element_);
    begin += signature().counts[rank];
  }
}

void Transfer::run(size_t first, size_t count) const noexcept {
  if (count == 0)
    return; // addresses may be null
  switch (signature().kind) {
  case SLUICE_ALL_REDUCE:
  case SLUICE_REDUCE_SCATTER:
    return reducePiece(first, count);
  case SLUICE_BROADCAST:
    return broadcastPiece(first * element_, count * element_);
  case SLUICE_ALL_GATHER:
    return gatherPiece(first, count);
  }
}

} // namespace sluice::exchange
