#include "backends/cuda/runtime/NcclGroup.h"

#include <set>
#include <utility>

namespace sluice::cuda {

/// Locks the ranks of all requests, so that no thread aborts a communicator during an NCCL call. An abort does not wait
/// for long: communicators are nonblocking, so calls of NCCL return at once.
class IssueLock {
public:
  explicit IssueLock(const std::vector<Request> &requests) {
    std::set<Ranks *> all; // in the order of addresses, which is the same for all threads
    for (const Request &request : requests)
      all.insert(request.rank->ranks.get());
    for (Ranks *ranks : all)
      locks.emplace_back(ranks->mutex_);
  }

  static void fail(Ranks &ranks, const Error &error) { ranks.failHeld(error); }

private:
  std::vector<std::unique_lock<std::mutex>> locks;
};

static bool isFine(NcclResult result) { return result == NcclResult::Success || result == NcclResult::InProgress; }

/// Submits all requests to NCCL; those of ended ranks are skipped. A failure ends the ranks of all requests.
static void askForAll(const Driver &driver, const std::vector<Request> &requests) {
  const Nccl &nccl = Nccl::get();
  IssueLock lock(requests);
  std::string failed = "a group of exchanges";
  NcclResult result = nccl.groupStart();
  for (const Request &request : requests) {
    if (!isFine(result))
      break;
    if (request.rank->isEnded())
      continue;
    driver.contextSetCurrent(request.rank->context);
    result = request.call(nccl);
    if (!isFine(result))
      failed = request.what + " of " + request.rank->text();
  }
  NcclResult end = nccl.groupEnd();
  result = isFine(result) ? end : result;
  if (isFine(result))
    return;
  Error error = nccl.errorOf(result, nullptr, failed);
  for (const Request &request : requests)
    IssueLock::fail(*request.rank->ranks, error);
}

/// Submits requests, and waits until NCCL has enqueued their work, so that later work of a queue follows it. NCCL
/// enqueues work when the communicators are ready.
static void ask(const Driver &driver, std::vector<Request> requests) {
  askForAll(driver, requests);
  std::optional<Error> first;
  for (const Request &request : requests)
    try {
      request.rank->waitUntilReady(request.what);
    } catch (const Error &error) {
      request.rank->tell();
      if (!first)
        first = Error(error.status(), request.what + " of " + request.rank->text() + ": " + error.what());
    }
  if (first)
    throw *first;
}

void NcclGroup::end(const Driver &driver) {
  if (depth_ == 0)
    throw Error(SLUICE_USAGE, "exchanges end that did not begin");
  if (--depth_ == 0 && !requests_.empty())
    ask(driver, std::exchange(requests_, {}));
}

void NcclGroup::add(const Driver &driver, Request request) {
  requests_.push_back(std::move(request));
  if (depth_ == 0)
    ask(driver, std::exchange(requests_, {}));
}

} // namespace sluice::cuda
