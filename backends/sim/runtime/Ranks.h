// Ranks that exchange. Each rank submits its exchanges to a queue. Exchanges of the same number belong together and are
// compared on submission. An exchange that every rank has reached is work of all their queues at once.
//
// Sums are added in the order of ranks, independent of the order of arrival. The virtual time is that of a ring of n
// ranks. An all-gather or a reduce-scatter takes n - 1 steps, each of which transfers the largest share over every
// link. An all-reduce takes 2 (n - 1) steps with an n-th of the bytes. A step takes the latency of a link and its bytes
// over the bandwidth. A broadcast is pipelined: it takes n - 1 latencies, and its bytes once.
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
  /// Marks the rank as gone. Fails every exchange that it has not submitted: those can never complete.
  void leave(int32_t rank);
  /// Fails every exchange if one was submitted to this queue, which is destroyed before the exchange has completed.
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
    std::vector<std::optional<exchange::Part>> parts; // of ranks that have submitted it
    std::vector<Queue *> queues;                      // of these ranks
    std::vector<std::optional<Arrival>> arrivals;     // of ranks whose queues have reached it
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
