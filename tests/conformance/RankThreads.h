// Ranks that are driven by threads, and rounds of exchanges in memory that they use again and again.
#pragma once

#include "tests/conformance/Exchanges.h"
#include "tests/conformance/Group.h"

#include <functional>
#include <memory>

namespace sluice::conformance {

/// Calls `body` for each rank in a separate thread; rethrows an exception of one of them when all have ended.
void inThreads(int32_t size, const std::function<void(int32_t rank)> &body);

/// Calls a function in its destructor, whatever is thrown.
class Last {
public:
  explicit Last(std::function<void()> act) : act_(std::move(act)) {}
  ~Last() { act_(); }
  Last(const Last &) = delete;

private:
  std::function<void()> act_;
};

/// Ranks with a context and a thread each, in one group.
struct ManyThreads {
  ManyThreads(const Subject &subject, Places places, int32_t size);

  Group group;
  std::vector<std::unique_ptr<RunHalf>> halves;
  std::vector<std::unique_ptr<Rank>> ranks;
};

/// A rank that exchanges in one queue what another uploads and downloads, round after round in the same memory.
struct Rounds {
  static constexpr unsigned kRounds = 12;

  explicit Rounds(Rank &rank);
  void upload(unsigned round);
  sluice_status exchange() { return rank.put(task, memory, memory); }
  void download(unsigned round);

  /// Throws Failed unless all have received the expected values in the first `rounds`.
  static void check(const std::vector<std::unique_ptr<Rounds>> &ranks, unsigned rounds = kRounds);

  Rank &rank;
  Task task;
  void *memory;
  sluice_queue *work;
  std::vector<Bytes> sent, received;
};

/// One for each rank.
std::vector<std::unique_ptr<Rounds>> roundsOf(const std::vector<std::unique_ptr<Rank>> &ranks);

} // namespace sluice::conformance
