// Hosts that ask whether an event is done, or wait for it no longer than they have time.
#include "tests/conformance/RunHalf.h"

#include <chrono>

namespace sluice::conformance {

namespace {

/// A queue with bytes on their way to a device and back.
struct RoundTrip {
  explicit RoundTrip(RunHalf &half)
      : sent(pattern(1 << 20)), found(sent.size()), address(half.allocate(sent.size())), queue(half.queue()) {
    half.upload(queue, sent, address);
    half.download(queue, address, found);
    event = half.record(queue);
  }

  Bytes sent, found;
  void *address;
  sluice_queue *queue;
  sluice_event *event;
};

} // namespace

static void queriesTellWhatIsDone(const Subject &subject) {
  RunHalf half(subject);
  if (!half.table().query)
    throw Skipped("it cannot be asked whether an event is done");
  int done = 0;
  half.check(half.table().query(half.event(), &done), "query");
  expect(done, "an event that was never recorded is not done");
  RoundTrip trip(half);
  auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (done = 0; !done;) {
    half.check(half.table().query(trip.event, &done), "query");
    expect(std::chrono::steady_clock::now() < limit, "an event is never done, however often one asks");
  }
  expect(trip.found == trip.sent, "an event is told to be done before the work is");
}

static void deadlinesEndWaiting(const Subject &subject) {
  RunHalf half(subject);
  if (!half.table().synchronize_until)
    throw Skipped("it does not wait until a deadline");
  half.check(half.table().synchronize_until(half.event(), 0), "synchronize_until of an event that was never recorded");
  RoundTrip trip(half);
  sluice_status status = half.table().synchronize_until(trip.event, 0);
  expect(status == SLUICE_OK || status == SLUICE_DEADLINE,
         "no time to wait ends with status " + std::to_string(status));
  expect(status == SLUICE_OK || !half.lastError().empty(), "a deadline that passed gives no reason");
  half.check(half.table().synchronize_until(trip.event, 30), "synchronize_until");
  expect(trip.found == trip.sent, "waiting until a deadline ended before the work did, and before the deadline");
}

std::vector<Test> waitTests() {
  return {{"wait.query", queriesTellWhatIsDone}, {"wait.deadline", deadlinesEndWaiting}};
}

} // namespace sluice::conformance
