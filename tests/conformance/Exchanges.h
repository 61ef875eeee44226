// Ranks that exchange, and their expected results, computed in double precision.
#pragma once

#include "sluice/backend/collectives.h"
#include "tests/conformance/RunHalf.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::conformance {

/// The types that are exchanged.
const std::vector<sluice_dtype> &exchangedTypes();
size_t bytesOf(sluice_dtype type);
/// "f32"
std::string textOf(sluice_dtype type);

/// Elements of a type: of floats from -8 to 8, of integers a thousand times as much.
Bytes elements(sluice_dtype type, size_t count, unsigned seed);
double valueOf(sluice_dtype type, const Bytes &elements, size_t at);

/// The reduction of one element of all that was sent, and what a sum in the type may differ by.
struct Reduced {
  double value = 0, allowed = 0;
};
Reduced reduced(sluice_dtype type, int32_t reduction, const std::vector<Bytes> &sent, size_t at);

/// The sum in a tree of what the ranks sent, all of it: of floats, with one rounding of each sum; of f16 and bf16, also
/// that with one rounding of all.
std::vector<Bytes> treeSums(sluice_dtype type, const std::vector<Bytes> &sent);

/// The properties of an exchange, equal on all ranks.
struct Task {
  int32_t kind; ///< a sluice_exchange_kind
  sluice_dtype dtype;
  int32_t reduction = SLUICE_SUM;
  int32_t root = 0;
  size_t count = 0;
  std::vector<size_t> counts; ///< empty: `count` for each rank
  const char *label = "conformance";

  size_t countOf(int32_t rank) const { return counts.empty() ? count : counts[static_cast<size_t>(rank)]; }
  size_t whole(int32_t size) const; ///< elements of all ranks
  size_t sent(int32_t rank, int32_t size) const;
  size_t received(int32_t rank, int32_t size) const;
};

/// Throws Failed unless the ranks received the expected values, and all of them the same bits.
void checkReceived(const Task &task, const std::vector<Bytes> &sent, const std::vector<Bytes> &received);

/// One rank: its communicator and a queue for its exchanges.
class Rank {
public:
  /// `half` must outlive it.
  Rank(RunHalf &half, const sluice_unique_id &id, int32_t rank, int32_t size, int32_t device);
  ~Rank();
  Rank(const Rank &) = delete;

  int32_t number() const { return rank_; }
  int32_t device() const { return device_; }
  sluice_queue *queue() const { return queue_; }
  sluice_communicator *get() const { return communicator_; }
  RunHalf &half() const { return half_; }
  const sluice_backend_collectives &table() const { return *half_.table().collectives; }

  /// Submits an exchange to the queue; the status is that of the call.
  sluice_status put(const Task &task, const void *send, void *receive, sluice_queue *queue = nullptr);
  /// Destroys the rank, if it still exists.
  void leave();

private:
  RunHalf &half_;
  int32_t rank_, device_;
  sluice_queue *queue_;
  sluice_communicator *communicator_ = nullptr;
};

/// Placement of ranks: each on a separate device, from 0 on, or all on the host.
enum class Places { Devices, Host };

/// The most ranks that are tried.
inline constexpr int32_t kMostRanks = 4;

/// Calls `body` with each of the places where there is room for `least` ranks, and how many there are. Skips the test if
/// there is no table, or no room.
void atPlaces(const Subject &subject, int32_t least, const std::function<void(Places places, int32_t most)> &body);

/// A context for ranks at these places.
std::unique_ptr<RunHalf> contextFor(const Subject &subject, Places places, int32_t size, sluice_group *group = nullptr);

inline int32_t deviceOf(Places places, int32_t rank) { return places == Places::Devices ? rank : SLUICE_HOST; }

/// All ranks of one context, driven by one thread.
class OneThread {
public:
  OneThread(const Subject &subject, Places places, int32_t size);

private:
  std::unique_ptr<RunHalf> context_;

public:
  RunHalf &half;
  std::vector<std::unique_ptr<Rank>> ranks;

  int32_t size() const { return static_cast<int32_t>(ranks.size()); }
  /// Runs one exchange of each rank's values, from the host and back, and returns the received values.
  std::vector<Bytes> exchange(const Task &task, const std::vector<Bytes> &sent, bool inPlace = false);
  /// Draws what the ranks send, exchanges it and checks it.
  void check(const Task &task, unsigned seed, bool inPlace = false);
  /// Does `call` for each rank between begin and end, and gives the status of the end.
  sluice_status together(const std::function<void(Rank &)> &call);
};

} // namespace sluice::conformance
