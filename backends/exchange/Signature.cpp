#include "backends/exchange/Signature.h"

#include "backends/exchange/Arithmetic.h"

#include <numeric>
#include <utility>

namespace sluice::exchange {

static constexpr const char *kKinds[] = {"all-reduce", "broadcast", "all-gather", "reduce-scatter"};
static constexpr const char *kReductions[] = {"sum", "max", "tree sum"};

bool isKnown(int32_t kind) { return kind >= SLUICE_ALL_REDUCE && kind <= SLUICE_REDUCE_SCATTER; }
bool reduces(int32_t kind) { return kind == SLUICE_ALL_REDUCE || kind == SLUICE_REDUCE_SCATTER; }
bool isKnownReduction(int32_t reduction) { return reduction >= SLUICE_SUM && reduction <= SLUICE_TREE_SUM; }
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

/// Throws "an exchange has no <what>" unless the condition holds.
static void require(bool holds, const std::string &what) {
  if (!holds)
    throw Error(SLUICE_USAGE, "an exchange has no " + what);
}

static void checkSound(const sluice_exchange &exchange, int32_t size) {
  require(isKnown(exchange.kind), "known kind");
  require(exchangedBytes(exchange.dtype) > 0,
          std::string("element type that exchanges support: it is ") + typeText(exchange.dtype));
  require(!reduces(exchange.kind) || isKnownReduction(exchange.reduction), "known reduction");
  require(exchange.kind != SLUICE_BROADCAST || (exchange.root >= 0 && exchange.root < size),
          "root from 0 to " + std::to_string(size - 1));
}

static Signature signatureOf(const sluice_exchange &exchange, int32_t size) {
  const size_t *counts = isShared(exchange.kind) ? exchange.counts : nullptr;
  auto ranks = static_cast<size_t>(size);
  return {static_cast<sluice_exchange_kind>(exchange.kind),
          exchange.dtype,
          reduces(exchange.kind) ? static_cast<sluice_reduction>(exchange.reduction) : SLUICE_SUM,
          exchange.kind == SLUICE_BROADCAST ? exchange.root : 0,
          counts ? std::vector<size_t>(counts, counts + ranks) : std::vector<size_t>(ranks, exchange.count),
          exchange.label ? exchange.label : ""};
}

Part partOf(const sluice_exchange &exchange, int32_t rank, int32_t size) {
  checkSound(exchange, size);
  Signature signature = signatureOf(exchange, size);
  size_t whole = signature.bytes();
  size_t own = signature.counts[static_cast<size_t>(rank)] * exchangedBytes(exchange.dtype);
  bool sends = exchange.kind != SLUICE_BROADCAST || exchange.root == rank;
  size_t sent = !sends ? 0 : exchange.kind == SLUICE_REDUCE_SCATTER ? whole : own;
  size_t received = exchange.kind == SLUICE_ALL_GATHER ? whole : own;
  require(sent == 0 || exchange.send, "address of what it sends");
  require(received == 0 || exchange.receive, "address for what it receives");
  return {std::move(signature), exchange.send, sent, exchange.receive, received};
}

void compare(int32_t rank, const Part &part, uint64_t number, const std::vector<std::optional<Part>> &others) {
  for (size_t other = 0; other < others.size(); ++other)
    if (const std::optional<Part> &theirs = others[other])
      if (std::string why = part.signature.whyNot(theirs->signature); !why.empty())
        throw Error(SLUICE_INVALID, rankText(rank) + " differs from " + rankText(static_cast<int32_t>(other)) +
                                        " in exchange " + std::to_string(number) + ", " + theirs->signature.text() +
                                        ": " + why);
}

} // namespace sluice::exchange
