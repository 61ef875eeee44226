#include "backends/transport/tcp/Mesh.h"

#include <poll.h>

namespace sluice::transport {

using exchange::rankText;

static constexpr std::chrono::microseconds kEagerness{20}; // polling without sleep after progress
static constexpr int kSleepMilliseconds = 1;               // maximum sleep, which any event ends
static constexpr std::chrono::seconds kFarewell{2};        // for abort messages, which busy peers may read late

Mesh::Mesh(int32_t rank, std::vector<Socket> sockets, double deadline)
    : rank_(rank), deadline_(deadline), culprit_(rank) {
  for (Socket &socket : sockets)
    peers_.emplace_back(std::move(socket));
}

Mesh::~Mesh() {
  if (broken_)
    sayLastWords();
  else
    for (Peer &peer : peers_)
      peer.leave();
}

void Mesh::sayLastWords() {
  Clock::time_point end = Clock::now() + kFarewell;
  for (bool saidAll = false; !saidAll && Clock::now() < end;) {
    saidAll = true;
    for (Peer &peer : peers_) {
      peer.abort(culprit_);
      saidAll &= peer.hasSaidAll();
    }
    if (!saidAll)
      poll(nullptr, 0, kSleepMilliseconds);
  }
}

sluice_transfer *Mesh::begin(int32_t rank, bool sends, void *memory, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (rank < 0 || rank >= static_cast<int32_t>(peers_.size()) || rank == rank_)
    fail(SLUICE_USAGE, "there is no other ", rankText(rank), " of ", peers_.size());
  sluice_transfer &transfer =
      transfers_.emplace_front(sluice_transfer{rank, sends, static_cast<std::byte *>(memory), bytes});
  transfer.self = transfers_.begin();
  peerOf(transfer).add(transfer);
  if (sends && !broken_) {
    peerOf(transfer).moveNow();
    noteEnds();
  }
  return &transfer;
}

/// Records the error of an ended connection. Lost peers precede aborted ones, whose abort may be a consequence.
void Mesh::noteEnds() {
  for (Peer::End end : {Peer::End::Lost, Peer::End::Aborted})
    for (size_t at = 0; at < peers_.size() && !broken_; ++at) {
      if (peers_[at].end() != end)
        continue;
      auto rank = static_cast<int32_t>(at);
      culprit_ = end == Peer::End::Lost ? rank : peers_[at].culprit();
      broken_.emplace(SLUICE_PEER_LOST, rankText(rank) + (end == Peer::End::Lost ? " went away" : " was aborted") +
                                            (culprit_ == rank ? "" : ", because of " + rankText(culprit_)));
    }
}

bool Mesh::moveAll() {
  bool moved = false;
  for (Peer &peer : peers_)
    moved |= peer.moveNow();
  noteEnds();
  return moved;
}

void Mesh::drop(sluice_transfer &transfer, const Error &error) {
  peerOf(transfer).remove(transfer);
  transfers_.erase(transfer.self);
  throw error;
}

bool Mesh::look(sluice_transfer &transfer) {
  if (transfer.isDone) {
    transfers_.erase(transfer.self);
    return true;
  }
  if (broken_)
    drop(transfer, *broken_);
  const Peer &peer = peerOf(transfer);
  if (const auto &difference = peer.difference())
    drop(transfer,
         Error(SLUICE_INVALID, rankText(transfer.rank) + " sent a message of " + std::to_string(difference->first) +
                                   " bytes, where " + std::to_string(difference->second) + " were to come"));
  if (peer.end() != Peer::End::None)
    drop(transfer, Error(SLUICE_PEER_LOST, rankText(transfer.rank) + " has left"));
  return false;
}

/// Waits until bytes can be moved. An abort by another thread closes the connections, which also ends the wait.
void Mesh::sleep(std::unique_lock<std::mutex> &lock) {
  std::vector<pollfd> polled;
  for (const Peer &peer : peers_) {
    std::optional<short> events = peer.events();
    polled.push_back({events ? peer.descriptor() : -1, events.value_or(0), 0});
  }
  lock.unlock();
  poll(polled.data(), polled.size(), kSleepMilliseconds);
  lock.lock();
  for (size_t at = 0; at < peers_.size(); ++at)
    peers_[at].notice(polled[at].revents);
}

bool Mesh::test(sluice_transfer *transfer) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (look(*transfer))
    return true;
  bool moved = moveAll();
  if (!moved && !broken_ && Clock::now() - lastMove_ > kEagerness) {
    sleep(lock);
    moved = !broken_ && moveAll();
  }
  if (moved)
    lastMove_ = Clock::now();
  return look(*transfer);
}

/// The rank of the oldest transfer, if it is late. Tolerates a tenth of the deadline, because callers measure the
/// deadline with other clocks, and abort when theirs has passed.
std::optional<int32_t> Mesh::whoIsLate() const {
  constexpr double kAlmost = 0.9;
  for (auto oldest = transfers_.rbegin(); oldest != transfers_.rend(); ++oldest)
    if (!oldest->isDone)
      return std::chrono::duration<double>(Clock::now() - oldest->begun).count() >= kAlmost * deadline_
                 ? std::optional(oldest->rank)
                 : std::nullopt;
  return std::nullopt;
}

void Mesh::abort() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!broken_)
    culprit_ = whoIsLate().value_or(rank_);
  for (Peer &peer : peers_)
    peer.abort(culprit_);
  if (!broken_)
    broken_.emplace(SLUICE_PEER_LOST, rankText(rank_) + " was aborted");
}

} // namespace sluice::transport
