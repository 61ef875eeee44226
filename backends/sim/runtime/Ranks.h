// Ranks that exchange. Each rank puts its exchanges into a queue; the ones of one number belong together and are
// compared as soon as they are put in. An exchange that every rank has come to is work of all their queues at once.
//
// Sums are added in the order of ranks, whoever came first. The time is that of a ring: n ranks pass n - 1 parts of the
// largest share on, or for an all-reduce twice as many, each taking the link's latency and its bytes; a broadcast
// passes its bytes on as they come.
#pragma once

#include "backends/sim/runtime/Machine.h"
#include "sluice/backend/collectives.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice::sim {

/// What must be equal for all ranks.
struct Signature {
  sluice_exchange_kind kind;
  sluice_dtype dtype;
  sluice_reduction reduction;
  int32_t root;
  std::vector<size_t> counts; // elements of each rank
  std::string label;

  size_t elements() const; // of all that is reduced, broadcast or gathered
  size_t bytes() const;
  std::string text() const; // "all-reduce of dw1"
  /// "its element type is f32, not f64"; empty if nothing differs.
  std::string whyNot(const Signature &other) const;
};

/// What one rank brings to an exchange.
struct Part {
  Signature signature;
  Buffer sent, received; // without bytes where the rank sends or receives nothing
};

class Ranks {
public:
  Ranks(Machine &machine, int32_t size) : machine_(machine), members_(static_cast<size_t>(size)) {}
  Ranks(const Ranks &) = delete;

  int32_t size() const { return static_cast<int32_t>(members_.size()); }
  void join(int32_t rank, int32_t device);
  /// Nothing that the rank did not come to will ever have all ranks.
  void leave(int32_t rank);
  /// The same for whoever uses a queue that goes away before what is in it is done.
  void leave(const Queue &queue);

  /// Throws what broke the ranks' exchanges, if something did.
  void check() const;
  /// Every exchange that waits for a rank ends with this error, as every later one does.
  void fail(const Error &error);

  /// The part of a rank in an exchange, checked as far as can be done without the others.
  Part partOf(int32_t rank, const sluice_exchange &exchange) const;
  void put(int32_t rank, Queue &queue, Part part, const Host &host);

  struct Count {
    int64_t exchanges = 0, bytes = 0;
  };
  Count count(int32_t rank, int32_t kind) const;

private:
  struct Member {
    bool isThere = false, isGone = false;
    int32_t device = 0;
    uint64_t next = 0; // number of the exchange that it puts in next
    std::array<Count, 4> counts;
  };
  struct Exchange {
    Exchange(uint64_t number, size_t size) : number(number), parts(size), queues(size), arrivals(size) {}

    uint64_t number;
    std::vector<std::optional<Part>> parts; // of ranks that have put it in
    std::vector<Queue *> queues;
    std::vector<std::optional<Arrival>> arrivals; // of ranks whose queues have come to it
  };

  static void compare(int32_t rank, const Part &part, const Exchange &exchange);
  std::vector<Access> accessesOf(int32_t rank, const Part &part) const;
  void arrive(int32_t rank, const std::shared_ptr<Exchange> &exchange, const Host &host);
  void complete(const std::shared_ptr<Exchange> &exchange);
  double secondsOf(const Signature &signature) const;
  /// "waits for rank 1": the first that has not come.
  static std::string missingText(const Exchange &exchange);

  Machine &machine_;
  std::vector<Member> members_;
  std::map<uint64_t, std::shared_ptr<Exchange>> open_; // those that not every rank has come to
  std::optional<Error> broken_;
};

} // namespace sluice::sim
