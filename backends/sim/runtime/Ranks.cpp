#include "backends/sim/runtime/Ranks.h"

#include "backends/exchange/Arithmetic.h"
#include "backends/exchange/Transfer.h"

#include <algorithm>
#include <utility>

namespace sluice::sim {

using exchange::Part;
using exchange::rankText;
using exchange::Signature;

//===- what ranks bring -------------------------------------------------------------------------------------------===//

Part Ranks::partOf(int32_t rank, const sluice_exchange &exchange) const {
  Part part = exchange::partOf(exchange, rank, size());
  machine_.checkAccesses(part.signature.text(), accessesOf(rank, part));
  return part;
}

static Buffer sentOf(const Part &part) { return {const_cast<void *>(part.sent), part.sentBytes, SLUICE_READ}; }
static Buffer receivedOf(const Part &part) { return {part.received, part.receivedBytes, SLUICE_WRITE}; }

std::vector<Access> Ranks::accessesOf(int32_t rank, const Part &part) const {
  std::vector<Access> accesses;
  int32_t device = roster_.deviceOf(rank);
  for (auto [what, buffer] :
       {std::pair("what it sends", sentOf(part)), std::pair("what it receives", receivedOf(part))})
    if (buffer.bytes > 0)
      accesses.push_back({what, device, buffer});
  return accesses;
}

//===- who is there -----------------------------------------------------------------------------------------------===//

void Ranks::leave(int32_t rank) {
  if (std::optional<Error> error = roster_.leave(rank))
    fail(*error);
}

void Ranks::leave(const Queue &queue) {
  for (const auto &[number, exchange] : open_)
    for (size_t rank = 0; rank < exchange->queues.size(); ++rank)
      if (exchange->queues[rank] == &queue)
        return fail(Error(SLUICE_PEER_LOST,
                          "queue " + queue.name + " of " + rankText(static_cast<int32_t>(rank)) + " was destroyed"));
}

void Ranks::fail(const Error &error) {
  const Error &broken = roster_.breakWith(error);
  for (const auto &[number, exchange] : std::exchange(open_, {}))
    for (const std::optional<Arrival> &arrival : exchange->arrivals) {
      if (!arrival)
        continue;
      std::string why = arrival->what + " in queue " + arrival->queue->name + ": " + broken.what();
      arrival->queue->failures.push_back(std::make_shared<Failure>(Error(broken.status(), why)));
      machine_.free(*arrival->queue);
    }
}

//===- exchanges --------------------------------------------------------------------------------------------------===//

void Ranks::put(int32_t rank, Queue &queue, Part part, const Host &host) {
  std::shared_ptr<Exchange> exchange;
  try {
    uint64_t number = roster_.put(rank);
    auto members = static_cast<size_t>(size());
    exchange = open_.try_emplace(number, std::make_shared<Exchange>(number, members)).first->second;
    exchange::compare(rank, part, number, exchange->parts);
    for (size_t other = 0; other < members; ++other)
      if (exchange->queues[other] == &queue)
        throw Error(SLUICE_USAGE, rankText(rank) + " and " + rankText(static_cast<int32_t>(other)) +
                                      " exchange in one queue, " + queue.name);
  } catch (const Error &error) {
    fail(error);
    throw;
  }
  exchange->parts[static_cast<size_t>(rank)] = std::move(part);
  exchange->queues[static_cast<size_t>(rank)] = &queue;
  machine_.putInOrder(queue, host, [this, rank, exchange](const Host &then) { arrive(rank, exchange, then); });
}

std::string Ranks::missingText(const Exchange &exchange) {
  auto missing = std::find(exchange.arrivals.begin(), exchange.arrivals.end(), std::nullopt);
  auto rank = static_cast<size_t>(missing - exchange.arrivals.begin());
  Queue *queue = rank < exchange.queues.size() ? exchange.queues[rank] : nullptr;
  return "waits for " + rankText(static_cast<int32_t>(rank)) +
         (queue && queue->heldBy ? ", whose " + queue->heldBy() : std::string());
}

void Ranks::arrive(int32_t rank, const std::shared_ptr<Exchange> &exchange, const Host &host) {
  check(); // it may have been broken since submission
  auto at = static_cast<size_t>(rank);
  Queue &queue = *exchange->queues[at];
  const Part &part = *exchange->parts[at];
  Arrival arrival{&queue, host, part.signature.text() + " of " + rankText(rank), accessesOf(rank, part)};
  exchange->arrivals[at] = std::move(arrival);
  if (std::find(exchange->arrivals.begin(), exchange->arrivals.end(), std::nullopt) == exchange->arrivals.end())
    return complete(exchange);
  machine_.hold(queue, [exchange = exchange.get(), what = exchange->arrivals[at]->what, name = queue.name] {
    return what + " in queue " + name + " " + missingText(*exchange);
  });
}

double Ranks::secondsOf(const Signature &signature) const {
  auto others = static_cast<double>(size() - 1);
  double latency = machine_.settings().linkLatency, bandwidth = machine_.settings().linkBandwidth;
  auto whole = static_cast<double>(signature.bytes());
  auto element = static_cast<double>(exchange::exchangedBytes(signature.dtype));
  double share = static_cast<double>(*std::max_element(signature.counts.begin(), signature.counts.end())) * element;
  if (others == 0)
    return kAcceleratorRates.launchSeconds + 2 * whole / kAcceleratorRates.memoryBandwidth;
  if (signature.kind == SLUICE_BROADCAST)
    return others * latency + whole / bandwidth;
  if (signature.kind == SLUICE_ALL_REDUCE)
    return 2 * others * (latency + whole / (others + 1) / bandwidth);
  return others * (latency + share / bandwidth);
}

void Ranks::complete(const std::shared_ptr<Exchange> &exchange) {
  std::vector<Arrival> arrivals;
  std::vector<Part> parts;
  for (size_t rank = 0; rank < exchange->parts.size(); ++rank) {
    arrivals.push_back(*exchange->arrivals[rank]);
    parts.push_back(*exchange->parts[rank]);
  }
  try {
    for (const Arrival &arrival : arrivals)
      machine_.checkAccesses(arrival.what, arrival.accesses); // the memory may have been released since submission
  } catch (const Error &error) {
    return fail(error);
  }
  double seconds = secondsOf(parts.front().signature);
  auto work = [this, parts] {
    std::vector<Buffer> locked;
    for (size_t rank = 0; rank < parts.size(); ++rank)
      for (const Buffer &buffer : {sentOf(parts[rank]), receivedOf(parts[rank])})
        if (roster_.deviceOf(static_cast<int32_t>(rank)) != SLUICE_HOST && buffer.bytes > 0)
          locked.push_back(buffer);
    Unlocked unlocked(std::move(locked));
    exchange::Transfer(parts).run(0, parts.front().signature.elements());
    roster_.countDone(parts.front().signature);
  };
  machine_.putJointly(arrivals, seconds, work);
  for (const Arrival &arrival : arrivals)
    machine_.free(*arrival.queue);
  open_.erase(exchange->number);
}

} // namespace sluice::sim
