// The ranks of one id, the number of exchanges that each has submitted, and the error that broke them. Not thread-safe.
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

  /// Throws a usage error if there is no such rank, if it has joined already, or if another rank has its device.
  void join(int32_t rank, int32_t device);
  /// Marks the rank as gone. If another rank has submitted an exchange that this rank has not, returns the error for
  /// the waiting ranks.
  std::optional<Error> leave(int32_t rank);

  /// The number of the exchange that a rank submits now. Throws if another rank has left without submitting it.
  uint64_t put(int32_t rank);

  /// Throws the error that broke the ranks' exchanges, if any.
  void check() const;
  /// Ends all exchanges. Keeps and returns the first error.
  const Error &breakWith(const Error &error);

  struct Count {
    int64_t exchanges = 0, bytes = 0;
  };
  void countDone(const Signature &signature);
  /// Throws a usage error for an unknown kind.
  Count count(int32_t rank, int32_t kind) const;

private:
  struct Member {
    bool isThere = false, isGone = false; // has joined; has left
    int32_t device = 0;
    uint64_t next = 0; // number of its next exchange
    std::array<Count, 4> counts;
  };

  std::vector<Member> members_;
  std::optional<Error> broken_;
};

} // namespace sluice::exchange
