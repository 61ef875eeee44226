#include "backends/cuda/runtime/Ranks.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace sluice::cuda {

using exchange::rankText;
using Lock = std::lock_guard<std::mutex>;

static constexpr std::chrono::microseconds kPollPause{20};
// Timeout of a communicator's finalization, after which it is aborted.
static constexpr std::chrono::seconds kFarewell{10};

//===- ranks ------------------------------------------------------------------------------------------------------===//

void Ranks::join(Rank &rank) {
  Lock lock(mutex_);
  try {
    roster_.join(rank.number, rank.device);
  } catch (const Error &error) {
    if (!isMade_)
      failHeld(error);
    throw;
  }
  here_.push_back(&rank);
}

void Ranks::leave(Rank &rank) {
  {
    Lock lock(mutex_);
    if (std::optional<Error> error = roster_.leave(rank.number))
      failHeld(*error);
  }
  rank.finish();
  Lock lock(mutex_);
  std::erase(here_, &rank);
  forgetOld();
}

void Ranks::check() const {
  Lock lock(mutex_);
  roster_.check();
}

void Ranks::fail(const Error &error) {
  Lock lock(mutex_);
  failHeld(error);
}

void Ranks::failHeld(const Error &error) {
  roster_.breakWith(error);
  for (Rank *rank : here_)
    rank->end();
}

uint64_t Ranks::put(Rank &rank, const exchange::Part &part) {
  Lock lock(mutex_);
  try {
    uint64_t number = roster_.put(rank.number);
    auto &parts = open_.try_emplace(number, size_t(size())).first->second;
    exchange::compare(rank.number, part, number, parts);
    parts[size_t(rank.number)] = part;
  } catch (const Error &error) {
    failHeld(error);
    throw;
  }
  ++rank.put_;
  forgetOld();
  return rank.put_;
}

void Ranks::forgetOld() {
  uint64_t least = UINT64_MAX;
  for (const Rank *rank : here_)
    least = std::min(least, rank->put_);
  open_.erase(open_.begin(), open_.lower_bound(least));
}

//===- one rank ---------------------------------------------------------------------------------------------------===//

std::string Rank::text() const { return rankText(number) + " on cuda:" + std::to_string(device); }

void Rank::end() {
  isEnded_ = true;
  if (NcclCommunicator its = std::exchange(handle_, nullptr))
    Nccl::get().abort(its); // allowed while it is in progress
}

static NcclResult stateOf(NcclCommunicator communicator) {
  NcclResult state = NcclResult::Success, result = Nccl::get().asyncError(communicator, &state);
  return result == NcclResult::Success ? state : result;
}

bool Rank::isReady() {
  Lock lock(ranks->mutex_);
  ranks->roster_.check();
  NcclResult state = handle_ ? stateOf(handle_) : NcclResult::Success;
  if (state == NcclResult::InProgress)
    return false;
  if (state == NcclResult::Success) {
    ranks->isMade_ = true;
    return true;
  }
  Error error = Nccl::get().errorOf(state, handle_, text());
  ranks->failHeld(error);
  throw error;
}

void Rank::waitUntilReady(const std::string &what) {
  auto begin = std::chrono::steady_clock::now();
  while (!isReady()) {
    std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    if (patience_ > 0 && waited.count() > patience_) {
      Error error(SLUICE_DEADLINE,
                  what + " of " + text() + ": not all ranks came within " + std::to_string(patience_) + " s");
      ranks->fail(error);
      throw error;
    }
    std::this_thread::sleep_for(kPollPause);
  }
}

void Rank::watch() noexcept {
  try {
    isReady();
  } catch (const Error &) { // `pass` reports the error to waiters
  }
}

void Rank::pass(uint64_t exchange) {
  Lock lock(ranks->mutex_);
  if (!isEnded_) {
    passed_ = std::max(passed_, exchange);
    return;
  }
  if (exchange <= passed_ || exchange <= told_)
    return;
  told_ = put_;
  ranks->roster_.check();
}

void Rank::tell() {
  Lock lock(ranks->mutex_);
  told_ = put_;
}

void Rank::countIssued(const exchange::Signature &signature) {
  exchange::Roster::Count &count = counts_[signature.kind];
  ++count.exchanges;
  count.bytes += int64_t(signature.bytes());
}

exchange::Roster::Count Rank::count(int32_t kind) const {
  if (!exchange::isKnown(kind))
    throw Error(SLUICE_USAGE, "there are no exchanges of kind " + std::to_string(kind));
  Lock lock(ranks->mutex_);
  return counts_[size_t(kind)];
}

/// Peers may still read the memory of a communicator: it is destroyed only when idle on all ranks, and aborted only
/// after a failure.
void Rank::finish() {
  std::unique_lock<std::mutex> lock(ranks->mutex_);
  if (!handle_)
    return;
  const Nccl &nccl = Nccl::get();
  NcclResult state = nccl.finalize(handle_);
  auto deadline = std::chrono::steady_clock::now() + kFarewell;
  for (bool waits = state == NcclResult::InProgress; waits && handle_;) {
    state = stateOf(handle_);
    waits = state == NcclResult::InProgress && std::chrono::steady_clock::now() < deadline;
    lock.unlock();
    std::this_thread::sleep_for(kPollPause);
    lock.lock();
  }
  if (NcclCommunicator its = std::exchange(handle_, nullptr))
    state == NcclResult::Success ? nccl.destroy(its) : nccl.abort(its);
}

//===- groups -----------------------------------------------------------------------------------------------------===//

std::shared_ptr<Ranks> RankRegistry::ranksOf(const sluice_unique_id &id, int32_t rank, int32_t size) {
  Lock lock(mutex_);
  if (size < 1)
    throw Error(SLUICE_USAGE, "there are no " + std::to_string(size) + " ranks");
  std::erase_if(ranks_, [](const auto &entry) { return entry.second.expired(); });
  std::weak_ptr<Ranks> &known = ranks_[std::string(id.bytes, sizeof id.bytes)];
  std::shared_ptr<Ranks> ranks = known.lock();
  if (!ranks)
    known = ranks = std::make_shared<Ranks>(size);
  if (ranks->size() != size)
    throw Error(SLUICE_USAGE, rankText(rank) + " is one of " + std::to_string(size) + ", but others are of " +
                                  std::to_string(ranks->size()));
  return ranks;
}

} // namespace sluice::cuda
