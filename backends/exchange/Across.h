// Exchanges whose ranks lie in other processes, in host memory, over a transport. Every rank first tells every other what
// it comes to, and as much of what it sends as fits beside that: small exchanges need no more than this one round.
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
  /// Throws an error of usage if there is no such rank.
  Across(const sluice_transport_link &link, int32_t rank, int32_t size);
  ~Across();
  Across(const Across &) = delete;

  int32_t size() const { return size_; }

  /// Does an exchange, and returns when it is over. After the first that fails all do, with its error.
  void run(const Part &part);
  /// Throws what broke the exchanges, if something did. In any thread, as are all that follow.
  void check() const;
  void abort();
  /// Throws an error of usage for an unknown kind.
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
  uint64_t number_ = 0;
  std::vector<Announcement> announcements_;
  std::vector<sluice_transfer *> sends_, receives_; // of announcements that are under way, or null
  std::vector<std::byte> scratch_;

  mutable std::mutex mutex_; // of what follows
  Roster roster_;            // of this rank alone
};

} // namespace sluice::exchange
