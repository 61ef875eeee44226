#include "backends/cpu/runtime/Rendezvous.h"

#include "backends/exchange/Arithmetic.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace sluice::cpu {

using exchange::Error;
using exchange::Part;
using exchange::rankText;

static constexpr size_t kPieceBytes = size_t(128) << 10;   // of each rank's data
static constexpr size_t kPiecesForThreads = 4;             // with more pieces, an instance's threads share them
static constexpr std::chrono::microseconds kEagerness{20}; // time of waiting without sleep

//===- the hall ---------------------------------------------------------------------------------------------------===//

void Hall::change() {
  changes_.fetch_add(1, std::memory_order_release);
  changed_.notify_all();
}

void Hall::waitForMore(uint64_t seen) {
  auto end = std::chrono::steady_clock::now() + kEagerness;
  while (std::chrono::steady_clock::now() < end)
    if (changes() != seen)
      return;
  std::unique_lock<std::mutex> lock(mutex);
  changed_.wait(lock, [&] { return changes() != seen; });
}

std::string Hall::addId() {
  std::lock_guard<std::mutex> lock(mutex);
  std::string text = "cpu " + std::to_string(reinterpret_cast<uintptr_t>(this)) + " " + std::to_string(ranks_.size());
  ranks_.try_emplace(text);
  return text;
}

std::shared_ptr<Ranks> Hall::ranksOf(const std::string &id, int32_t rank, int32_t size) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = ranks_.find(id);
  if (found == ranks_.end())
    throw Error(SLUICE_USAGE, "the id was not made by a context of this group");
  if (size < 1)
    throw Error(SLUICE_USAGE, "there are no " + std::to_string(size) + " ranks");
  if (!found->second)
    found->second = std::make_shared<Ranks>(*this, size);
  if (found->second->size() != size)
    throw Error(SLUICE_USAGE, rankText(rank) + " is one of " + std::to_string(size) + ", but others are of " +
                                  std::to_string(found->second->size()));
  return found->second;
}

//===- one exchange -----------------------------------------------------------------------------------------------===//

bool Rendezvous::doPiece() {
  size_t piece = taken.fetch_add(1, std::memory_order_relaxed);
  if (piece >= pieces)
    return false;
  size_t first = piece * pieceElements;
  transfer->run(first, std::min(pieceElements, elements - first));
  return done.fetch_add(1, std::memory_order_acq_rel) + 1 == pieces;
}

bool Rendezvous::help(const sluice_run_services &services) {
  struct Helpers {
    Rendezvous &rendezvous;
    std::atomic<bool> didLast = false;
  } helpers{*this};
  auto doPieces = [](void *argument, int64_t begin, int64_t end) {
    auto &its = *static_cast<Helpers *>(argument);
    for (int64_t task = begin; task < end; ++task)
      if (its.rendezvous.doPiece())
        its.didLast = true;
  };
  auto tasks = static_cast<int64_t>(pieces - std::min(pieces, taken.load(std::memory_order_relaxed)));
  if (static_cast<size_t>(tasks) > kPiecesForThreads)
    services.parallel_for(services.context, tasks, doPieces, &helpers);
  else
    doPieces(&helpers, 0, tasks);
  return helpers.didLast;
}

//===- ranks ------------------------------------------------------------------------------------------------------===//

void Ranks::join(int32_t rank, int32_t device) {
  std::lock_guard<std::mutex> lock(hall_.mutex);
  roster_.join(rank, device);
}

void Ranks::leave(int32_t rank) {
  std::lock_guard<std::mutex> lock(hall_.mutex);
  if (std::optional<Error> error = roster_.leave(rank))
    failGathering(*error);
}

void Ranks::check() const {
  std::lock_guard<std::mutex> lock(hall_.mutex);
  roster_.check();
}

void Ranks::fail(const Error &error) {
  std::lock_guard<std::mutex> lock(hall_.mutex);
  failGathering(error);
}

void Ranks::failGathering(const Error &error) {
  const Error &broken = roster_.breakWith(error);
  for (auto at = open_.begin(); at != open_.end();) {
    Rendezvous &rendezvous = *at->second;
    if (rendezvous.state() != Rendezvous::State::Gathering) {
      ++at;
      continue;
    }
    rendezvous.error = broken;
    rendezvous.state_.store(Rendezvous::State::Failed, std::memory_order_release);
    at = open_.erase(at);
  }
  hall_.change();
}

exchange::Roster::Count Ranks::count(int32_t rank, int32_t kind) const {
  std::lock_guard<std::mutex> lock(hall_.mutex);
  return roster_.count(rank, kind);
}

std::shared_ptr<Rendezvous> Ranks::put(int32_t rank, const void *queue, Part part) {
  std::lock_guard<std::mutex> lock(hall_.mutex);
  auto at = static_cast<size_t>(rank);
  try {
    uint64_t number = roster_.put(rank);
    auto ranks = static_cast<size_t>(size());
    std::shared_ptr<Rendezvous> &rendezvous = open_[number];
    if (!rendezvous)
      rendezvous = std::make_shared<Rendezvous>(number, ranks);
    exchange::compare(rank, part, number, rendezvous->parts);
    if (auto same = std::find(rendezvous->queues.begin(), rendezvous->queues.end(), queue);
        same != rendezvous->queues.end())
      throw Error(SLUICE_USAGE, rankText(rank) + " and " +
                                    rankText(static_cast<int32_t>(same - rendezvous->queues.begin())) +
                                    " exchange in one queue");
    rendezvous->parts[at] = std::move(part);
    rendezvous->queues[at] = queue;
    return rendezvous;
  } catch (const Error &error) {
    failGathering(error);
    throw;
  }
}

void Ranks::prepare(Rendezvous &rendezvous) {
  std::vector<Part> parts;
  for (std::optional<Part> &part : rendezvous.parts)
    parts.push_back(std::move(*part));
  rendezvous.transfer.emplace(std::move(parts));
  const exchange::Signature &signature = rendezvous.transfer->signature();
  rendezvous.elements = signature.elements();
  rendezvous.pieceElements = kPieceBytes / exchange::exchangedBytes(signature.dtype);
  size_t whole = (rendezvous.elements + rendezvous.pieceElements - 1) / rendezvous.pieceElements;
  rendezvous.pieces = std::max<size_t>(whole, 1); // also completes exchanges without elements
}

void Ranks::arrive(Rendezvous &rendezvous) {
  std::lock_guard<std::mutex> lock(hall_.mutex);
  if (rendezvous.state() != Rendezvous::State::Gathering || ++rendezvous.arrived < rendezvous.parts.size())
    return;
  prepare(rendezvous);
  rendezvous.state_.store(Rendezvous::State::Running, std::memory_order_release);
  if (rendezvous.pieces > 1) // otherwise the rank that starts it executes it at once
    hall_.change();
}

void Ranks::finish(Rendezvous &rendezvous) {
  std::lock_guard<std::mutex> lock(hall_.mutex);
  roster_.countDone(rendezvous.transfer->signature());
  open_.erase(rendezvous.number);
  rendezvous.state_.store(Rendezvous::State::Done, std::memory_order_release);
  hall_.change();
}

Error Ranks::errorOf(const Rendezvous &rendezvous) const {
  std::lock_guard<std::mutex> lock(hall_.mutex);
  return *rendezvous.error;
}

} // namespace sluice::cpu
