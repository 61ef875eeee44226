// Exchanges in host memory between ranks in other processes, over a transport. Every rank first announces its exchange
// to every other rank, with as much of its data as fits in the announcement. Small exchanges need only this one round.
#pragma once

#include "backends/exchange/Announcement.h"
#include "backends/exchange/Link.h"
#include "backends/exchange/Roster.h"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace sluice::exchange {

class Across {
public:
  /// Throws a usage error if `rank` is not in [0, size).
  Across(const sluice_transport_link &link, int32_t rank, int32_t size);
  ~Across();
  Across(const Across &) = delete;

  int32_t size() const { return size_; }

  /// Runs an exchange, and returns when it has completed. The first failure breaks the communicator: every later
  /// exchange throws the same error.
  void run(const Part &part);
  /// Throws the error that broke the exchanges, if any. Thread-safe, like all functions below.
  void check() const;
  void abort();
  /// Throws a usage error for an unknown kind.
  Roster::Count count(int32_t kind) const;

private:
  void announceAll(const Part &part);
  void awaitAnnouncements(const Signature &signature);
  void moveSmall(const Part &part);
  void reduceSmall(const Part &part);
  void moveLarge(const Part &part);
  [[noreturn]] void breakWith(const Error &error);

  Link link_;
  int32_t rank_, size_;
  uint64_t number_ = 0; // of the next exchange
  std::vector<Announcement> announcements_;
  std::vector<sluice_transfer *> sends_, receives_; // of announcements in flight, or null
  std::vector<std::byte> scratch_;

  mutable std::mutex mutex_; // of the members below
  Roster roster_;            // has one entry, for this rank
};

} // namespace sluice::exchange
