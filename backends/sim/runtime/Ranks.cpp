#include "backends/sim/runtime/Ranks.h"

#include "backends/sim/runtime/Arithmetic.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace sluice::sim {

//===- what ranks bring -------------------------------------------------------------------------------------------===//

static constexpr const char *kKinds[] = {"all-reduce", "broadcast", "all-gather", "reduce-scatter"};
static constexpr const char *kReductions[] = {"sum", "max"};

static std::string rankText(int32_t rank) { return "rank " + std::to_string(rank); }

static bool isKnown(int32_t kind) { return kind >= SLUICE_ALL_REDUCE && kind <= SLUICE_REDUCE_SCATTER; }
static bool reduces(int32_t kind) { return kind == SLUICE_ALL_REDUCE || kind == SLUICE_REDUCE_SCATTER; }
static bool isShared(int32_t kind) { return kind == SLUICE_ALL_GATHER || kind == SLUICE_REDUCE_SCATTER; }

size_t Signature::elements() const {
  return isShared(kind) ? std::accumulate(counts.begin(), counts.end(), size_t(0)) : counts.front();
}

size_t Signature::bytes() const { return elements() * exchangedBytes(dtype); }

std::string Signature::text() const { return std::string(kKinds[kind]) + (label.empty() ? "" : " of " + label); }

static const char *typeText(sluice_dtype type) {
#define SLUICE_TEXT(name, number, T, text, ...)                                                                        \
  case SLUICE_DTYPE_##name:                                                                                            \
    return text;
  switch (type) { SLUICE_FOR_EACH_DTYPE(SLUICE_TEXT) }
#undef SLUICE_TEXT
  return "none";
}

static std::string difference(const char *what, const std::string &mine, const std::string &other) {
  return mine == other ? "" : std::string("its ") + what + " is " + mine + ", not " + other;
}

std::string Signature::whyNot(const Signature &other) const {
  std::string why = difference("kind", kKinds[kind], kKinds[other.kind]);
  if (why.empty())
    why = difference("label", "'" + label + "'", "'" + other.label + "'");
  if (why.empty())
    why = difference("element type", typeText(dtype), typeText(other.dtype));
  if (why.empty() && reduces(kind))
    why = difference("reduction", kReductions[reduction], kReductions[other.reduction]);
  if (why.empty() && kind == SLUICE_BROADCAST)
    why = difference("root", std::to_string(root), std::to_string(other.root));
  for (size_t rank = 0; rank < counts.size() && why.empty(); ++rank) {
    std::string what = isShared(kind) ? "count for rank " + std::to_string(rank) : "count";
    why = difference(what.c_str(), std::to_string(counts[rank]), std::to_string(other.counts[rank]));
  }
  return why;
}

static void checkSound(const sluice_exchange &exchange, int32_t size) {
  auto require = [](bool holds, const std::string &what) {
    if (!holds)
      throw Error(SLUICE_USAGE, "sim: an exchange has no " + what);
  };
  require(isKnown(exchange.kind), "known kind");
  require(exchangedBytes(exchange.dtype) > 0,
          std::string("element type that is exchanged, but ") + typeText(exchange.dtype));
  require(!reduces(exchange.kind) || exchange.reduction == SLUICE_SUM || exchange.reduction == SLUICE_MAX,
          "known reduction");
  require(exchange.kind != SLUICE_BROADCAST || (exchange.root >= 0 && exchange.root < size),
          "root from 0 to " + std::to_string(size - 1));
}

Part Ranks::partOf(int32_t rank, const sluice_exchange &exchange) const {
  checkSound(exchange, size());
  const size_t *counts = isShared(exchange.kind) ? exchange.counts : nullptr;
  bool isReduced = reduces(exchange.kind), hasRoot = exchange.kind == SLUICE_BROADCAST;
  Signature signature{static_cast<sluice_exchange_kind>(exchange.kind),
                      exchange.dtype,
                      isReduced ? static_cast<sluice_reduction>(exchange.reduction) : SLUICE_SUM,
                      hasRoot ? exchange.root : 0,
                      counts ? std::vector<size_t>(counts, counts + members_.size())
                             : std::vector<size_t>(members_.size(), exchange.count),
                      exchange.label ? exchange.label : ""};
  size_t whole = signature.bytes();
  size_t own = signature.counts[static_cast<size_t>(rank)] * exchangedBytes(exchange.dtype);
  bool sends = !hasRoot || exchange.root == rank;
  size_t sent = !sends ? 0 : exchange.kind == SLUICE_REDUCE_SCATTER ? whole : own;
  size_t received = exchange.kind == SLUICE_ALL_GATHER ? whole : own;
  Part part{std::move(signature),
            {const_cast<void *>(exchange.send), sent, SLUICE_READ},
            {exchange.receive, received, SLUICE_WRITE}};
  machine_.checkAccesses(part.signature.text(), accessesOf(rank, part));
  return part;
}

std::vector<Access> Ranks::accessesOf(int32_t rank, const Part &part) const {
  std::vector<Access> accesses;
  int32_t device = members_[static_cast<size_t>(rank)].device;
  for (auto [what, buffer] : {std::pair("what it sends", &part.sent), std::pair("what it receives", &part.received)})
    if (buffer->bytes > 0)
      accesses.push_back({what, device, *buffer});
  return accesses;
}

//===- who is there -----------------------------------------------------------------------------------------------===//

void Ranks::join(int32_t rank, int32_t device) {
  check();
  if (rank < 0 || rank >= size())
    throw Error(SLUICE_USAGE, "sim: there is no " + rankText(rank) + " of " + std::to_string(size()));
  Member &member = members_[static_cast<size_t>(rank)];
  if (member.isThere)
    throw Error(SLUICE_USAGE, "sim: " + rankText(rank) + " is there already");
  for (size_t other = 0; other < members_.size() && device != SLUICE_HOST; ++other)
    if (members_[other].isThere && members_[other].device == device)
      throw Error(SLUICE_USAGE, "sim: " + rankText(rank) + " is to be on " + deviceText(device) + ", where " +
                                    rankText(static_cast<int32_t>(other)) + " is");
  member.isThere = true;
  member.device = device;
}

void Ranks::leave(int32_t rank) {
  Member &member = members_[static_cast<size_t>(rank)];
  member.isGone = true;
  if (!open_.empty() && open_.rbegin()->first >= member.next)
    fail(Error(SLUICE_PEER_LOST, rankText(rank) + " left after " + std::to_string(member.next) + " exchanges"));
}

void Ranks::leave(const Queue &queue) {
  for (const auto &[number, exchange] : open_)
    for (size_t rank = 0; rank < exchange->queues.size(); ++rank)
      if (exchange->queues[rank] == &queue)
        return fail(Error(SLUICE_PEER_LOST,
                          "queue " + queue.name + " of " + rankText(static_cast<int32_t>(rank)) + " was destroyed"));
}

void Ranks::check() const {
  if (broken_)
    throw *broken_;
}

void Ranks::fail(const Error &error) {
  if (!broken_)
    broken_ = error;
  for (const auto &[number, exchange] : std::exchange(open_, {}))
    for (const std::optional<Arrival> &arrival : exchange->arrivals) {
      if (!arrival)
        continue;
      std::string why = arrival->what + " in queue " + arrival->queue->name + ": " + broken_->what();
      arrival->queue->failures.push_back(std::make_shared<Failure>(Error(broken_->status(), why)));
      machine_.free(*arrival->queue);
    }
}

Ranks::Count Ranks::count(int32_t rank, int32_t kind) const {
  if (!isKnown(kind))
    throw Error(SLUICE_USAGE, "sim: there are no exchanges of kind " + std::to_string(kind));
  return members_[static_cast<size_t>(rank)].counts[static_cast<size_t>(kind)];
}

//===- exchanges --------------------------------------------------------------------------------------------------===//

void Ranks::compare(int32_t rank, const Part &part, const Exchange &exchange) {
  for (size_t other = 0; other < exchange.parts.size(); ++other)
    if (const std::optional<Part> &theirs = exchange.parts[other])
      if (std::string why = part.signature.whyNot(theirs->signature); !why.empty())
        throw Error(SLUICE_INVALID, rankText(rank) + " differs from " + rankText(static_cast<int32_t>(other)) +
                                        " in exchange " + std::to_string(exchange.number) + ", " +
                                        theirs->signature.text() + ": " + why);
}

void Ranks::put(int32_t rank, Queue &queue, Part part, const Host &host) {
  check();
  Member &member = members_[static_cast<size_t>(rank)];
  uint64_t number = member.next++;
  std::shared_ptr<Exchange> exchange =
      open_.try_emplace(number, std::make_shared<Exchange>(number, members_.size())).first->second;
  try {
    compare(rank, part, *exchange);
    for (size_t other = 0; other < members_.size(); ++other) {
      if (exchange->queues[other] == &queue)
        throw Error(SLUICE_USAGE, rankText(rank) + " and " + rankText(static_cast<int32_t>(other)) +
                                      " exchange in one queue, " + queue.name);
      if (members_[other].isGone && members_[other].next <= number)
        throw Error(SLUICE_PEER_LOST, rankText(static_cast<int32_t>(other)) + " left after " +
                                          std::to_string(members_[other].next) + " exchanges");
    }
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
  check(); // it may have been broken since it was put in
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
  auto others = static_cast<double>(members_.size() - 1);
  double latency = machine_.settings().linkLatency, bandwidth = machine_.settings().linkBandwidth;
  auto whole = static_cast<double>(signature.bytes());
  auto element = static_cast<double>(exchangedBytes(signature.dtype));
  double share = static_cast<double>(*std::max_element(signature.counts.begin(), signature.counts.end())) * element;
  if (others == 0)
    return kAcceleratorRates.launchSeconds + 2 * whole / kAcceleratorRates.memoryBandwidth;
  if (signature.kind == SLUICE_BROADCAST)
    return others * latency + whole / bandwidth;
  if (signature.kind == SLUICE_ALL_REDUCE)
    return 2 * others * (latency + whole / (others + 1) / bandwidth);
  return others * (latency + share / bandwidth);
}

/// Does an exchange, all of whose memory may be touched. What is received may be what is sent, so all of it is computed
/// before any of it is written.
static void doExchange(const std::vector<Part> &parts) {
  const Signature &signature = parts.front().signature;
  size_t at = 0;
  std::vector<std::byte> whole(signature.bytes());
  std::vector<const void *> sent;
  for (const Part &part : parts) {
    sent.push_back(part.sent.address);
    if (!reduces(signature.kind) && part.sent.bytes > 0) {
      std::memcpy(whole.data() + at, part.sent.address, part.sent.bytes);
      at += part.sent.bytes;
    }
  }
  if (reduces(signature.kind) && !whole.empty())
    reduce(signature.dtype, signature.reduction, sent, signature.elements(), whole.data());
  at = 0;
  for (const Part &part : parts) {
    if (part.received.bytes > 0)
      std::memcpy(part.received.address, whole.data() + at, part.received.bytes);
    at += signature.kind == SLUICE_REDUCE_SCATTER ? part.received.bytes : 0;
  }
}

void Ranks::complete(const std::shared_ptr<Exchange> &exchange) {
  std::vector<Arrival> arrivals;
  std::vector<Part> parts;
  for (size_t rank = 0; rank < members_.size(); ++rank) {
    arrivals.push_back(*exchange->arrivals[rank]);
    parts.push_back(*exchange->parts[rank]);
  }
  try {
    for (const Arrival &arrival : arrivals)
      machine_.checkAccesses(arrival.what, arrival.accesses); // the memory may be gone since it was put in
  } catch (const Error &error) {
    return fail(error);
  }
  double seconds = secondsOf(parts.front().signature);
  auto work = [this, parts] {
    std::vector<Buffer> locked;
    for (size_t rank = 0; rank < parts.size(); ++rank)
      for (const Buffer &buffer : {parts[rank].sent, parts[rank].received})
        if (members_[rank].device != SLUICE_HOST && buffer.bytes > 0)
          locked.push_back(buffer);
    Unlocked unlocked(std::move(locked));
    doExchange(parts);
    for (Member &member : members_) {
      Count &count = member.counts[parts.front().signature.kind];
      ++count.exchanges;
      count.bytes += static_cast<int64_t>(parts.front().signature.bytes());
    }
  };
  machine_.putJointly(arrivals, seconds, work);
  for (const Arrival &arrival : arrivals)
    machine_.free(*arrival.queue);
  open_.erase(exchange->number);
}

} // namespace sluice::sim
