#include "backends/exchange/Across.h"

#include "backends/exchange/Arithmetic.h"
#include "backends/exchange/Pieces.h"
#include "backends/exchange/Transfer.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace sluice::exchange {

Across::Across(const sluice_transport_link &link, int32_t rank, int32_t size)
    : link_(link), rank_(rank), size_(size), roster_(1) {
  if (rank < 0 || rank >= size)
    throw Error(SLUICE_USAGE, "there is no " + rankText(rank) + " of " + std::to_string(size));
  auto ranks = static_cast<size_t>(size);
  announcements_.resize(ranks);
  sends_.resize(ranks);
  receives_.resize(ranks);
}

/// Transfers in flight use memory of this object, so they must end first.
Across::~Across() {
  auto isUnderWay = [](const sluice_transfer *transfer) { return transfer != nullptr; };
  if (std::any_of(sends_.begin(), sends_.end(), isUnderWay) ||
      std::any_of(receives_.begin(), receives_.end(), isUnderWay))
    link_.abort();
}

void Across::check() const {
  std::lock_guard<std::mutex> lock(mutex_);
  roster_.check();
}

void Across::abort() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    roster_.breakWith(Error(SLUICE_PEER_LOST, rankText(rank_) + " was aborted"));
  }
  link_.abort();
}

Roster::Count Across::count(int32_t kind) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return roster_.count(0, kind);
}

/// Records the error, and throws the first recorded one: another thread may have aborted the rank.
void Across::breakWith(const Error &error) {
  std::lock_guard<std::mutex> lock(mutex_);
  throw roster_.breakWith(error);
}

//===- one exchange -----------------------------------------------------------------------------------------------===//

/// The bytes that each rank sends within its announcement, if every rank's bytes fit.
static size_t smallBytes(const Signature &signature, int32_t rank) {
  size_t element = exchangedBytes(signature.dtype);
  if (signature.kind == SLUICE_ALL_GATHER)
    return signature.counts[static_cast<size_t>(rank)] * element;
  return signature.kind == SLUICE_BROADCAST && rank != signature.root ? 0 : signature.bytes();
}

static bool isSmall(const Signature &signature) {
  for (size_t rank = 0; rank < signature.counts.size(); ++rank)
    if (smallBytes(signature, static_cast<int32_t>(rank)) > Announcement::kMostData)
      return false;
  return true;
}

/// Polls a transfer in flight, and sets it to null once it has completed or failed. A null transfer is done.
static bool isDone(const Link &link, sluice_transfer *&transfer) {
  if (!transfer)
    return true;
  sluice_transfer *tested = std::exchange(transfer, nullptr);
  if (link.test(tested))
    return true;
  transfer = tested;
  return false;
}

void Across::awaitAnnouncements(const Signature &signature) {
  Link::Clock::time_point start = Link::Clock::now();
  while (true) {
    bool sent = true;
    std::vector<int32_t> late;
    for (int32_t rank = 0; rank < size_; ++rank) {
      auto at = static_cast<size_t>(rank);
      sent &= isDone(link_, sends_[at]);
      if (!isDone(link_, receives_[at]))
        late.push_back(rank);
    }
    if (sent && late.empty())
      return;
    if (!link_.isLate(start))
      continue;
    if (late.empty())
      throw Error(SLUICE_DEADLINE,
                  signature.text() + " of " + rankText(rank_) + " cannot be sent for " + secondsText(link_.deadline()));
    throw Error(SLUICE_DEADLINE,
                ranksHave(late) + " not come to " + signature.text() + " for " + secondsText(link_.deadline()));
  }
}

void Across::announceAll(const Part &part) {
  Announcement &own = announcements_[static_cast<size_t>(rank_)];
  announce(part.signature, number_++, own);
  if (size_t bytes = smallBytes(part.signature, rank_); isSmall(part.signature) && bytes > 0)
    std::memcpy(own.data, part.sent, bytes);
  for (int32_t rank = 0; rank < size_; ++rank) {
    auto at = static_cast<size_t>(rank);
    if (rank == rank_)
      continue;
    receives_[at] = link_.receive(rank, &announcements_[at], sizeof(Announcement));
    sends_[at] = link_.send(rank, &own, sizeof(Announcement));
  }
  awaitAnnouncements(part.signature);
  compareAll(announcements_);
}

void Across::reduceSmall(const Part &part) {
  const Signature &signature = part.signature;
  auto own = signature.counts.begin() + rank_;
  size_t first = signature.kind == SLUICE_ALL_REDUCE ? 0 : std::accumulate(signature.counts.begin(), own, size_t(0));
  std::vector<const void *> sent;
  for (const Announcement &announcement : announcements_)
    sent.push_back(announcement.data);
  alignas(16) std::byte result[Announcement::kMostData];
  reduce(signature.dtype, signature.reduction, sent, first, *own, result);
  std::memcpy(part.received, result, part.receivedBytes);
}

void Across::moveSmall(const Part &part) {
  if (part.receivedBytes == 0)
    return;
  if (reduces(part.signature.kind))
    return reduceSmall(part);
  auto *at = static_cast<std::byte *>(part.received);
  for (int32_t rank = 0; rank < size_; ++rank) {
    size_t bytes = smallBytes(part.signature, rank);
    std::memcpy(at, announcements_[static_cast<size_t>(rank)].data, bytes);
    at += bytes;
  }
}

/// After an error, messages may still be in flight. The abort ends them, because the caller may reuse their memory.
void Across::moveLarge(const Part &part) {
  try {
    Pieces(link_, rank_, part, scratch_).run();
  } catch (const Error &) {
    link_.abort();
    throw;
  }
}

void Across::run(const Part &part) {
  check();
  try {
    announceAll(part);
    if (isSmall(part.signature))
      moveSmall(part);
    else if (size_ > 1)
      moveLarge(part);
    else
      Transfer({part}).run(0, part.signature.elements());
  } catch (const Error &error) {
    if (error.status() == SLUICE_PEER_LOST)
      link_.abort(); // others may wait for this rank
    bool saysWhat = error.status() == SLUICE_DEADLINE;
    breakWith(saysWhat ? error
                       : Error(error.status(), part.signature.text() + " of " + rankText(rank_) + ": " + error.what()));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  roster_.countDone(part.signature);
}

} // namespace sluice::exchange
