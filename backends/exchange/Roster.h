// Who the ranks of one id are, how many exchanges each has put in, and what broke them. Its owner calls it from one
// thread at a time.
#pragma once

#include "backends/exchange/Signature.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace sluice::exchange {

class Roster {
public:
  explicit Roster(int32_t size) : members_(static_cast<size_t>(size)) {}

  int32_t size() const { return static_cast<int32_t>(members_.size()); }
  int32_t deviceOf(int32_t rank) const { return members_[static_cast<size_t>(rank)].device; }

  /// Throws an error of usage if there is no such rank, it is there already, or another has its device.
  void join(int32_t rank, int32_t device);
  /// The error of those who wait for the rank, if somebody does.
  std::optional<Error> leave(int32_t rank);

  /// The number of the exchange that a rank puts in now. Throws if one that left will never come to it.
  uint64_t put(int32_t rank);

  /// Throws what broke the ranks' exchanges, if something did.
  void check() const;
  /// Nothing is exchanged any more. The first error is kept, and given.
  const Error &breakWith(const Error &error);

  struct Count {
    int64_t exchanges = 0, bytes = 0;
  };
  void countDone(const Signature &signature);
  /// Throws an error of usage for an unknown kind.
  Count count(int32_t rank, int32_t kind) const;

private:
  struct Member {
    bool isThere = false, isGone = false;
    int32_t device = 0;
    uint64_t next = 0; // number of the exchange that it puts in next
    std::array<Count, 4> counts;
  };

  std::vector<Member> members_;
  std::optional<Error> broken_;
};

} // namespace sluice::exchange
