#include "backends/exchange/Pieces.h"

#include "backends/exchange/Arithmetic.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace sluice::exchange {

static constexpr size_t kMostPieceBytes = size_t(256) << 10, kLeastPieceBytes = size_t(16) << 10;
static constexpr size_t kScratchBytes = size_t(8) << 20; // limit of all buffers, unless pieces have the minimum size
static constexpr size_t kDistance = 2;                   // pieces by which contributions run ahead of results
static constexpr size_t kBuffers = 4;                    // pieces per rank that are in flight or wait for addition
static constexpr size_t kMostMoves = 4;                  // messages in flight, per rank and direction
// Bytes of sums that stay in the first-level cache until they are copied to the result.
static constexpr size_t kBlock = 8192;

Sequence::Message Sequence::next() const {
  bool contributes = contributed_ < contributions_ && (contributed_ < finished_ + kDistance || finished_ == results_);
  return {!contributes, contributes ? contributed_ : finished_};
}

Pieces::Pieces(const Link &link, int32_t rank, const Part &part, std::vector<std::byte> &scratch)
    : link_(link), rank_(rank), size_(static_cast<int32_t>(part.signature.counts.size())), part_(part),
      signature_(part.signature), element_(exchangedBytes(signature_.dtype)), scatters_(reduces(signature_.kind)),
      gathers_(signature_.kind != SLUICE_REDUCE_SCATTER), scratch_(scratch) {
  auto others = static_cast<size_t>(size_ - 1);
  size_t pieceBytes = std::clamp(kScratchBytes / (kBuffers * others), kLeastPieceBytes, kMostPieceBytes);
  pieceElements_ = pieceBytes / element_;
  toReduce_ = scatters_ ? piecesOf(rank) : 0;
  if (scatters_ && scratch_.size() < kBuffers * others * pieceBytes)
    scratch_.resize(kBuffers * others * pieceBytes);
  for (int32_t other = 0; other < size_; ++other)
    if (other != rank)
      flows_.push_back({other, flows_.size() * kBuffers, sequence(rank, other), sequence(other, rank), {}, {}});
}

//===- ownership --------------------------------------------------------------------------------------------------===//

/// The elements that the rank owns: it computes or provides their results.
Pieces::Range Pieces::regionOf(int32_t rank) const {
  auto at = static_cast<size_t>(rank), ranks = static_cast<size_t>(size_);
  const std::vector<size_t> &counts = signature_.counts;
  switch (signature_.kind) {
  case SLUICE_ALL_REDUCE: {
    size_t share = counts[0] / ranks, rest = counts[0] % ranks; // the first ranks have one more
    return {at * share + std::min(at, rest), share + (at < rest ? 1 : 0)};
  }
  case SLUICE_BROADCAST:
    return {0, rank == signature_.root ? counts[0] : 0};
  case SLUICE_ALL_GATHER:
  case SLUICE_REDUCE_SCATTER:
    break;
  }
  auto end = counts.begin() + static_cast<std::ptrdiff_t>(at);
  return {std::accumulate(counts.begin(), end, size_t(0)), counts[at]};
}

size_t Pieces::piecesOf(int32_t rank) const { return (regionOf(rank).count + pieceElements_ - 1) / pieceElements_; }

Pieces::Range Pieces::pieceOf(int32_t rank, size_t piece) const {
  Range region = regionOf(rank);
  size_t before = piece * pieceElements_;
  return {region.first + before, std::min(pieceElements_, region.count - before)};
}

Sequence Pieces::sequence(int32_t from, int32_t to) const {
  return {scatters_ ? piecesOf(to) : 0, gathers_ ? piecesOf(from) : 0};
}

//===- addresses --------------------------------------------------------------------------------------------------===//

/// In a reduce-scatter, `received` holds the rank's region only.
std::byte *Pieces::receivedAt(size_t element) const {
  size_t before = gathers_ ? 0 : regionOf(rank_).first;
  return static_cast<std::byte *>(part_.received) + (element - before) * element_;
}

const std::byte *Pieces::source(const Flow &flow, Message message) const {
  Range range = pieceOf(message.isResult ? rank_ : flow.rank, message.piece);
  if (message.isResult && scatters_)
    return receivedAt(range.first);
  size_t before = message.isResult ? regionOf(rank_).first : 0;
  return static_cast<const std::byte *>(part_.sent) + (range.first - before) * element_;
}

std::byte *Pieces::buffer(const Flow &flow, size_t piece) const {
  return scratch_.data() + (flow.firstBuffer + piece % kBuffers) * pieceElements_ * element_;
}

std::byte *Pieces::target(const Flow &flow, Message message) const {
  return message.isResult ? receivedAt(pieceOf(flow.rank, message.piece).first) : buffer(flow, message.piece);
}

/// Copies the rank's share of gathered or broadcast data to its result.
void Pieces::keepOwn() const {
  Range own = regionOf(rank_);
  if (!scatters_ && own.count > 0 && receivedAt(own.first) != part_.sent)
    std::memcpy(receivedAt(own.first), part_.sent, own.count * element_);
}

//===- moving -----------------------------------------------------------------------------------------------------===//

bool Pieces::maySend(Message message) const { return !message.isResult || !scatters_ || message.piece < reduced_; }

/// A contribution requires a free buffer. If the exchange is in place, a result overwrites the contribution that this
/// rank sends for the same elements, which must therefore have been sent.
bool Pieces::mayReceive(const Flow &flow, Message message) const {
  if (message.isResult)
    return !scatters_ || message.piece < flow.sent;
  return message.piece < reduced_ + kBuffers;
}

bool Pieces::beginSends(Flow &flow) {
  bool began = false;
  for (; !flow.out.isOver() && flow.sends.size() < kMostMoves && maySend(flow.out.next()); began = true) {
    Message message = flow.out.next();
    size_t bytes = pieceOf(message.isResult ? rank_ : flow.rank, message.piece).count * element_;
    flow.sends.push_back({link_.send(flow.rank, source(flow, message), bytes), message});
    flow.out.advance();
  }
  return began;
}

bool Pieces::beginReceives(Flow &flow) {
  bool began = false;
  for (; !flow.in.isOver() && flow.receives.size() < kMostMoves && mayReceive(flow, flow.in.next()); began = true) {
    Message message = flow.in.next();
    size_t bytes = pieceOf(message.isResult ? flow.rank : rank_, message.piece).count * element_;
    flow.receives.push_back({link_.receive(flow.rank, target(flow, message), bytes), message});
    flow.in.advance();
  }
  return began;
}

/// Returns whether any message completed. Messages of one direction complete in order.
bool Pieces::finishMoves(Flow &flow) {
  bool finished = false;
  for (; !flow.sends.empty() && link_.test(flow.sends.front().transfer); finished = true) {
    flow.sent += flow.sends.front().message.isResult ? 0 : 1;
    flow.sends.pop_front();
  }
  for (; !flow.receives.empty() && link_.test(flow.receives.front().transfer); finished = true) {
    flow.received += flow.receives.front().message.isResult ? 0 : 1;
    flow.receives.pop_front();
  }
  return finished;
}

//===- adding -----------------------------------------------------------------------------------------------------===//

void Pieces::reducePiece(size_t piece) {
  Range range = pieceOf(rank_, piece);
  std::vector<const void *> contributions;
  for (const Flow &flow : flows_)
    contributions.push_back(buffer(flow, piece));
  const std::byte *own = static_cast<const std::byte *>(part_.sent) + range.first * element_;
  contributions.insert(contributions.begin() + rank_, own);
  alignas(64) std::byte block[kBlock];
  size_t most = kBlock / element_;
  for (size_t done = 0; done < range.count; done += most) {
    size_t elements = std::min(most, range.count - done);
    reduce(signature_.dtype, signature_.reduction, contributions, done, elements, block);
    std::memcpy(receivedAt(range.first + done), block, elements * element_);
  }
}

bool Pieces::reduceNext() {
  auto hasCome = [this](const Flow &flow) { return flow.received > reduced_; };
  if (reduced_ == toReduce_ || !std::all_of(flows_.begin(), flows_.end(), hasCome))
    return false;
  reducePiece(reduced_++);
  return true;
}

//===- all of it --------------------------------------------------------------------------------------------------===//

bool Pieces::isOver() const {
  auto isDone = [](const Flow &flow) {
    return flow.out.isOver() && flow.in.isOver() && flow.sends.empty() && flow.receives.empty();
  };
  return reduced_ == toReduce_ && std::all_of(flows_.begin(), flows_.end(), isDone);
}

void Pieces::failLate() const {
  std::vector<int32_t> late;
  for (const Flow &flow : flows_)
    if (!flow.sends.empty() || !flow.receives.empty())
      late.push_back(flow.rank);
  throw Error(SLUICE_DEADLINE,
              ranksHave(late) + " not gone on with " + signature_.text() + " for " + secondsText(link_.deadline()));
}

void Pieces::run() {
  keepOwn();
  Link::Clock::time_point lastMove = Link::Clock::now();
  while (!isOver()) {
    bool moved = reduceNext();
    for (Flow &flow : flows_) {
      moved |= beginReceives(flow);
      moved |= beginSends(flow);
      moved |= finishMoves(flow);
    }
    if (moved)
      lastMove = Link::Clock::now();
    else if (link_.isLate(lastMove))
      failLate();
  }
}

} // namespace sluice::exchange
