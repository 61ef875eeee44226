#include "backends/exchange/Roster.h"

#include "sluice/backend/run.h"

namespace sluice::exchange {

void Roster::join(int32_t rank, int32_t device) {
  check();
  if (rank < 0 || rank >= size())
    throw Error(SLUICE_USAGE, "there is no " + rankText(rank) + " of " + std::to_string(size()));
  Member &member = members_[static_cast<size_t>(rank)];
  if (member.isThere)
    throw Error(SLUICE_USAGE, rankText(rank) + " is there already");
  for (size_t other = 0; other < members_.size() && device != SLUICE_HOST; ++other)
    if (members_[other].isThere && members_[other].device == device)
      throw Error(SLUICE_USAGE, rankText(rank) + " is to be on device " + std::to_string(device) + ", where " +
                                    rankText(static_cast<int32_t>(other)) + " is");
  member.isThere = true;
  member.device = device;
}

static Error departure(size_t rank, uint64_t exchanges) {
  return {SLUICE_PEER_LOST,
          rankText(static_cast<int32_t>(rank)) + " left after " + std::to_string(exchanges) + " exchanges"};
}

std::optional<Error> Roster::leave(int32_t rank) {
  Member &member = members_[static_cast<size_t>(rank)];
  member.isGone = true;
  for (const Member &other : members_)
    if (other.next > member.next)
      return departure(static_cast<size_t>(rank), member.next);
  return std::nullopt;
}

uint64_t Roster::put(int32_t rank) {
  check();
  uint64_t number = members_[static_cast<size_t>(rank)].next++;
  for (size_t other = 0; other < members_.size(); ++other)
    if (members_[other].isGone && members_[other].next <= number)
      throw departure(other, members_[other].next);
  return number;
}

void Roster::check() const {
  if (broken_)
    throw *broken_;
}

const Error &Roster::breakWith(const Error &error) {
  if (!broken_)
    broken_ = error;
  return *broken_;
}

void Roster::countDone(const Signature &signature) {
  for (Member &member : members_) {
    Count &count = member.counts[signature.kind];
    ++count.exchanges;
    count.bytes += static_cast<int64_t>(signature.bytes());
  }
}

Roster::Count Roster::count(int32_t rank, int32_t kind) const {
  if (!isKnown(kind))
    throw Error(SLUICE_USAGE, "there are no exchanges of kind " + std::to_string(kind));
  return members_[static_cast<size_t>(rank)].counts[static_cast<size_t>(kind)];
}

} // namespace sluice::exchange
