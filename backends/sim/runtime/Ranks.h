// Ranks that exchange. Each rank puts its exchanges into a queue; the ones of one number belong together and are
// compared as soon as they are put in. An exchange that every rank has come to is work of all their queues at once.
//
// Sums are added in the order of ranks, whoever came first. The time is that of a ring: n ranks pass n - 1 parts of the
// largest share on, or for an all-reduce twice as many, each taking the link's latency and its bytes; a broadcast
// passes its bytes on as they come.
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
  /// Nothing that the rank did not come to will ever have all ranks.
  void leave(int32_t rank);
  /// The same for whoever uses a queue that goes away before what is in it is done.
  void leave(const Queue &queue);

  /// Throws what broke the ranks' exchanges, if something did.
  void check() const { roster_.check(); }
  /// Every exchange that waits for a rank ends with this error, as every later one does.
  void fail(const Error &error);

  /// The part of a rank in an exchange, checked as far as can be done without the others.
  exchange::Part partOf(int32_t rank, const sluice_exchange &exchange) const;
  void put(int32_t rank, Queue &queue, exchange::Part part, const Host &host);

  exchange::Roster::Count count(int32_t rank, int32_t kind) const { return roster_.count(rank, kind); }

private:
  struct Exchange {
    Exchange(uint64_t number, size_t size) : number(number), parts(size), queues(size), arrivals(size) {}

    uint64_t number;
    std::vector<std::optional<exchange::Part>> parts; // of ranks that have put it in
    std::vector<Queue *> queues;
    std::vector<std::optional<Arrival>> arrivals; // of ranks whose queues have come to it
  };

  std::vector<Access> accessesOf(int32_t rank, const exchange::Part &part) const;
  void arrive(int32_t rank, const std::shared_ptr<Exchange> &exchange, const Host &host);
  void complete(const std::shared_ptr<Exchange> &exchange);
  double secondsOf(const exchange::Signature &signature) const;
  /// "waits for rank 1": the first that has not come.
  static std::string missingText(const Exchange &exchange);

  Machine &machine_;
  exchange::Roster roster_;
  std::map<uint64_t, std::shared_ptr<Exchange>> open_; // those that not every rank has come to
};

} // namespace sluice::sim
