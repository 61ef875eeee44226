// Queues keep their order, events order queues, and the properties that a backend reports of its queues are true.
#include "tests/conformance/RunHalf.h"

#include <algorithm>
#include <limits>

namespace sluice::conformance {

static void keepTheirOrder(const Subject &subject) {
  RunHalf half(subject);
  void *address = half.allocate(1000);
  sluice_queue *queue = half.queue();
  std::vector<Bytes> in, out(20, Bytes(1000));
  for (unsigned i = 0; i < out.size(); ++i)
    in.push_back(pattern(1000, i));
  for (size_t i = 0; i < out.size(); ++i) {
    half.upload(queue, in[i], address);
    half.download(queue, address, out[i]);
  }
  half.finish(queue);
  expect(in == out, "work of one queue was not done in order");
}

static void takeWorkOfEveryKind(const Subject &subject) {
  RunHalf half(subject);
  Bytes data = pattern(100);
  for (sluice_queue_kind kind : {SLUICE_QUEUE_COMPUTE, SLUICE_QUEUE_COPY, SLUICE_QUEUE_COMMUNICATION}) {
    Bytes found(100);
    void *address = half.allocate(100);
    sluice_queue *queue = half.queue(0, kind);
    half.upload(queue, data, address);
    half.download(queue, address, found);
    half.finish(queue);
    expect(found == data, "a queue of kind " + std::to_string(kind) + " does not copy");
  }
}

static void eventsOrderThem(const Subject &subject) {
  RunHalf half(subject);
  void *address = half.allocate(100000);
  sluice_queue *in = half.queue(), *out = half.queue();
  std::vector<Bytes> sent, received(20, Bytes(100000));
  for (unsigned i = 0; i < received.size(); ++i)
    sent.push_back(pattern(100000, i));
  for (size_t i = 0; i < received.size(); ++i) {
    half.upload(in, sent[i], address);
    half.wait(out, half.record(in));
    half.download(out, address, received[i]);
    half.wait(in, half.record(out));
  }
  half.finish(out);
  expect(sent == received, "work did not wait for an event of another queue");
}

static void eventsCanBeRecordedAgain(const Subject &subject) {
  RunHalf half(subject);
  Bytes first = pattern(1000, 1), second = pattern(1000, 2), found(1000);
  void *address = half.allocate(1000);
  sluice_queue *in = half.queue(), *out = half.queue();
  sluice_event *event = half.event();
  half.upload(in, first, address);
  half.check(half.table().record(in, event), "record");
  half.upload(in, second, address);
  half.check(half.table().record(in, event), "record");
  half.wait(out, event);
  half.download(out, address, found);
  half.finish(out);
  expect(found == second, "an event that was recorded again stands for its old place");
}

static void unrecordedEventsAreDone(const Subject &subject) {
  RunHalf half(subject);
  sluice_event *event = half.event();
  half.wait(half.queue(), event);
  half.check(half.table().synchronize(event), "synchronize");
}

static void theHostWaitsForEvents(const Subject &subject) {
  RunHalf half(subject);
  Bytes data = pattern(1 << 20), found(1 << 20);
  void *address = half.allocate(data.size());
  sluice_queue *queue = half.queue();
  half.upload(queue, data, address);
  half.download(queue, address, found);
  half.check(half.table().synchronize(half.record(queue)), "synchronize");
  expect(found == data, "the host did not wait");
}

static void holdMuchWork(const Subject &subject) {
  RunHalf half(subject);
  Bytes data = pattern(64), found(64);
  void *address = half.allocate(64);
  sluice_queue *queue = half.queue();
  for (int i = 0; i < 2000; ++i)
    half.upload(queue, data, address);
  half.download(queue, address, found);
  half.finish(queue);
  expect(found == data, "a long queue lost its work");
}

static void eventsTellTimes(const Subject &subject) {
  RunHalf half(subject);
  Bytes little = pattern(64), much = pattern(1 << 24);
  void *address = half.allocate(much.size());
  sluice_queue *queue = half.queue();
  half.noteTimes(queue);
  std::vector<sluice_event *> events;
  for (const Bytes *data : {&little, &much, &little, &little, &little}) {
    half.upload(queue, *data, address);
    events.push_back(half.record(queue));
  }
  half.finish(queue);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double previous = -kInfinity, least = kInfinity, most = 0; // something else may hold up one of the little ones
  for (size_t i = 0; i < events.size(); ++i) {
    auto [start, end] = half.times(events[i]);
    expect(start <= end, "work ends before it begins");
    expect(start >= previous, "work of one queue overlaps");
    previous = end;
    if (i == 1)
      most = end - start;
    else
      least = std::min(least, end - start);
  }
  expect(most > 0 && most > 20 * least, "16 MiB are uploaded about as fast as 64 bytes");
}

/// Of an event that has none.
static void expectNoTimes(const RunHalf &half, sluice_event *event, const char *which) {
  double start = 0, end = 0;
  sluice_status status = half.table().event_times(event, &start, &end);
  expect(status == SLUICE_USAGE,
         std::string("event_times of ") + which + " ends with status " + std::to_string(status));
  expect(!half.lastError().empty(), std::string("event_times of ") + which + " gives no reason");
}

static void timesAreNotedWhenAskedFor(const Subject &subject) {
  RunHalf half(subject);
  if (!half.table().note_times)
    throw Skipped(half.table().event_times ? "all its events have times" : "it does not tell times");
  Bytes data = pattern(1000);
  void *address = half.allocate(data.size());
  sluice_queue *queue = half.queue();
  auto work = [&] {
    half.upload(queue, data, address);
    return half.record(queue);
  };
  sluice_event *before = work();
  half.noteTimes(queue);
  sluice_event *behindOld = half.record(queue), *noted = work();
  half.check(half.table().note_times(queue, 0), "note_times");
  sluice_event *behindNoted = half.record(queue), *after = work();
  half.noteTimes(queue);
  sluice_event *again = work();
  half.finish(queue);
  expectNoTimes(half, before, "work that nobody wanted to be noted");
  expectNoTimes(half, behindOld, "what was put in before times were noted");
  expectNoTimes(half, behindNoted, "an event that was recorded when they no longer were");
  expectNoTimes(half, after, "work that was put in then");
  expectNoTimes(half, half.event(), "an event that was never recorded");
  auto [start, end] = half.times(noted);
  auto [nextStart, nextEnd] = half.times(again);
  expect(start <= end && end <= nextStart && nextStart <= nextEnd, "work that was noted overlaps");
}

static void discardingHarmsNothingElse(const Subject &subject) {
  RunHalf half(subject);
  if (!half.table().discard)
    throw Skipped("it does not look at what is discarded");
  Bytes data = pattern(3 * 64);
  auto *address = static_cast<unsigned char *>(half.allocate(data.size()));
  sluice_queue *queue = half.queue();
  half.upload(queue, data, address);
  half.check(half.table().discard(queue, address + 64, 64), "discard");
  half.finish(queue);
  Bytes found = half.read(address, data.size());
  expect(std::equal(data.begin(), data.begin() + 64, found.begin()), "bytes before what was discarded changed");
  expect(std::equal(data.end() - 64, data.end(), found.end() - 64), "bytes after what was discarded changed");
}

/// The host's code: sets every byte of its tasks to one more than it was.
static void addOne(void *const *buffers, int64_t, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    ++static_cast<unsigned char *>(buffers[0])[i];
}

static void launchOnTheHost(RunHalf &half, sluice_queue *queue, Bytes &bytes) {
  void *address = bytes.data();
  Larger<sluice_buffer> buffer{{bytes.size(), SLUICE_READ_WRITE}};
  Larger<sluice_launch_stage> stage{{addOne, int64_t(bytes.size())}};
  sluice_call call{sizeof(call), 1, 0, 1};
  sluice_launch launch = launchOf("add_one", call);
  launch.addresses = &address;
  launch.buffers = &buffer.known;
  launch.num_buffers = 1;
  launch.stages = &stage.known;
  launch.num_stages = 1;
  half.check(half.table().launch(queue, &launch), "launch");
}

static void takeTheHostsWork(const Subject &subject) {
  RunHalf half(subject);
  if (!half.table().takes_host_queues)
    throw Skipped("it takes no work of the host");
  Bytes data = pattern(1000), copied(1000), expected = data;
  for (unsigned char &byte : expected)
    byte = static_cast<unsigned char>(byte + 2);
  sluice_queue *host = half.queue(SLUICE_HOST, SLUICE_QUEUE_COMPUTE), *device = half.queue();
  void *address = half.allocate(1000);
  launchOnTheHost(half, host, data);
  half.wait(device, half.record(host));
  half.upload(device, data, address);
  half.download(device, address, copied);
  half.wait(host, half.record(device));
  launchOnTheHost(half, host, copied);
  half.copy(host, {sizeof(sluice_copy), SLUICE_HOST, SLUICE_HOST, copied.data(), data.data(), 1000, "on the host"});
  half.finish(host);
  expect(data == expected, "the host's launches and copies were not done in order");
}

/// What it says to be immediate is looked at before anybody has waited.
static void areImmediateIfTheySaySo(const Subject &subject) {
  RunHalf half(subject);
  if (!half.table().immediate)
    throw Skipped("its work may be done later");
  Bytes data = pattern(1000), found(1000);
  void *address = half.allocate(1000);
  half.upload(half.queue(), data, address);
  half.download(half.queue(), address, found);
  expect(found == data, "its copies are not done when the call returns");
  if (!half.table().takes_host_queues)
    return;
  launchOnTheHost(half, half.queue(SLUICE_HOST, SLUICE_QUEUE_COMPUTE), found);
  expect(found[0] == static_cast<unsigned char>(data[0] + 1), "its launches are not done when the call returns");
}

std::vector<Test> queueTests() {
  return {{"queue.order", keepTheirOrder},
          {"queue.of_every_kind", takeWorkOfEveryKind},
          {"queue.event_order", eventsOrderThem},
          {"queue.event_recorded_again", eventsCanBeRecordedAgain},
          {"queue.event_never_recorded", unrecordedEventsAreDone},
          {"queue.host_waits_for_event", theHostWaitsForEvents},
          {"queue.much_work", holdMuchWork},
          {"queue.event_times", eventsTellTimes},
          {"queue.noted_times", timesAreNotedWhenAskedFor},
          {"queue.discard", discardingHarmsNothingElse},
          {"queue.of_the_host", takeTheHostsWork},
          {"queue.immediate", areImmediateIfTheySaySo}};
}

} // namespace sluice::conformance
