// Ranks that exchange. Each rank submits its exchanges to a queue. Exchanges of the same number belong together and are
// compared on submission. An exchange that every rank has reached is work of all their queues at once.
//
// Sums are added in the order of ranks, independent of the order of arrival. The time is that of a ring: n ranks pass
// on n - 1 parts of the largest share, or twice as many for an all-reduce, and each pass takes the link's latency and
// its bytes. A broadcast passes its bytes on as they arrive.
#pragma once

#include "backends/exchange/Roster.h"
#include "backends/sim/runtime/Machine.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice::sim {

class Ranks {
public:
  Ranks(Machine &machine, int32_t size) : machine_(machine), roster_(size) {}
  Ranks(const Ranks &) = delete;

  int32_t size() const { return roster_.size(); }
  void join(int32_t rank, int32_t device) { roster_.join(rank, device); }
  /// Fails every exchange that the rank has not joined: those can never complete.
  void leave(int32_t rank);
  /// The same for the users of a queue that is destroyed before its work has completed.
  void leave(const Queue &queue);

  /// Throws the error that broke the ranks' exchanges, if any.
  void check() const { roster_.check(); }
  /// Fails every exchange that waits for a rank, and every later one, with this error.
  void fail(const Error &error);

  /// The part of a rank in an exchange, validated without regard to the other ranks.
  exchange::Part partOf(int32_t rank, const sluice_exchange &exchange) const;
  void put(int32_t rank, Queue &queue, exchange::Part part, const Host &host);

  exchange::Roster::Count count(int32_t rank, int32_t kind) const { return roster_.count(rank, kind); }

private:
  struct Exchange {
    Exchange(uint64_t number, size_t size) : number(number), parts(size), queues(size), arrivals(size) {}

    uint64_t number;
    std::vector<std::optional<exchange::Part>> parts; // ranks that have submitted it
    std::vector<Queue *> queues;
    std::vector<std::optional<Arrival>> arrivals; // ranks whose queues have reached it
  };

  std::vector<Access> accessesOf(int32_t rank, const exchange::Part &part) const;
  void arrive(int32_t rank, const std::shared_ptr<Exchange> &exchange, const Host &host);
  void complete(const std::shared_ptr<Exchange> &exchange);
  double secondsOf(const exchange::Signature &signature) const;
  /// Text of the first missing rank: "waits for rank 1".
  static std::string missingText(const Exchange &exchange);

  Machine &machine_;
  exchange::Roster roster_;
  std::map<uint64_t, std::shared_ptr<Exchange>> open_; // exchanges that not every rank has reached
};

} // namespace sluice::sim
