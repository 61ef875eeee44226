// Contexts of a group: their shared state, and the ordering of their work.
#include "tests/conformance/RankThreads.h"

#include <atomic>
#include <memory>

namespace sluice::conformance {

namespace {

constexpr size_t kBytes = 1 << 16;
constexpr unsigned kRounds = 20;

/// Memory that two contexts use in turns, the first with uploads and the second with copies to separate memory.
struct Ends {
  Ends(RunHalf &first, RunHalf &second) : Ends(first, second, second.devices() - 1) {}
  Ends(RunHalf &first, RunHalf &second, int32_t its)
      : first(first), second(second), its(its), shared(first.allocate(kBytes)), copied(second.allocate(kBytes, its)),
        up(first.queue()), over(second.queue(its)) {}

  void upload(const Bytes &data) { first.upload(up, data, shared); }
  void download(Bytes &found) {
    second.copy(over, {sizeof(sluice_copy), 0, its, shared, copied, kBytes, "over"});
    second.download(over, copied, found, its);
  }

  RunHalf &first, &second;
  int32_t its; // the second's device
  void *shared, *copied;
  sluice_queue *up, *over;
};

} // namespace

static std::vector<Bytes> patterns() {
  std::vector<Bytes> all;
  for (unsigned round = 0; round < kRounds; ++round)
    all.push_back(pattern(kBytes, round + 1));
  return all;
}

static void eventsOrderContexts(const Subject &subject) {
  Group group(subject);
  RunHalf first(subject, 1, group.get()), second(subject, 1, group.get());
  Ends ends(first, second);
  std::vector<Bytes> sent = patterns(), found(kRounds, Bytes(kBytes));
  for (unsigned round = 0; round < kRounds; ++round) {
    ends.upload(sent[round]);
    second.wait(ends.over, first.record(ends.up));
    ends.download(found[round]);
    first.wait(ends.up, second.record(ends.over));
  }
  first.finish(ends.up);
  expect(found == sent, "a queue did not wait for an event of another context");
}

/// The number of the last round that one thread has submitted to its queue, for the other thread.
static void awaitRound(const std::atomic<unsigned> &reached, unsigned round) {
  for (unsigned now = reached.load(); now < round; now = reached.load())
    reached.wait(now);
}

static void reach(std::atomic<unsigned> &reached, unsigned round) {
  reached = round;
  reached.notify_all();
}

static void groupsSpanThreads(const Subject &subject) {
  Group group(subject);
  RunHalf first(subject, 1, group.get()), second(subject, 1, group.get());
  Ends ends(first, second);
  std::vector<Bytes> sent = patterns(), found(kRounds, Bytes(kBytes));
  std::vector<sluice_event *> uploaded(kRounds), downloaded(kRounds); // null behind a failure
  std::atomic<unsigned> uploads = 0, downloads = 0;
  auto upload = [&] {
    Last over([&] { reach(uploads, kRounds); });
    for (unsigned round = 0; round < kRounds; ++round) {
      ends.upload(sent[round]);
      uploaded[round] = first.record(ends.up);
      reach(uploads, round + 1);
      awaitRound(downloads, round + 1);
      if (!downloaded[round])
        return;
      first.wait(ends.up, downloaded[round]);
    }
    first.finish(ends.up);
  };
  auto download = [&] {
    Last over([&] { reach(downloads, kRounds); });
    for (unsigned round = 0; round < kRounds; ++round) {
      awaitRound(uploads, round + 1);
      if (!uploaded[round])
        return;
      second.wait(ends.over, uploaded[round]);
      ends.download(found[round]);
      downloaded[round] = second.record(ends.over);
      reach(downloads, round + 1);
    }
    second.finish(ends.over);
  };
  inThreads(2, [&](int32_t thread) { thread == 0 ? upload() : download(); });
  expect(found == sent, "two threads, each with its context, did not wait for each other's events");
}

/// How long after work of one context work of another one begins that waits for it, on the first device or on the last.
static double secondsBetween(const Subject &subject, bool onFirst) {
  Group group(subject);
  RunHalf first(subject, 1, group.get()), second(subject, 1, group.get());
  Ends ends(first, second, onFirst ? 0 : second.devices() - 1);
  first.noteTimes(ends.up);
  second.noteTimes(ends.over);
  Bytes sent = pattern(kBytes), found(kBytes);
  for (unsigned round = 0; round < kRounds; ++round)
    ends.upload(sent);
  sluice_event *uploaded = first.record(ends.up);
  second.wait(ends.over, uploaded);
  ends.download(found);
  sluice_event *downloaded = second.record(ends.over);
  second.finish(ends.over);
  first.finish(ends.up);
  return second.times(downloaded).first - first.times(uploaded).second;
}

static void groupsHaveOneClock(const Subject &subject) {
  constexpr double kClocksApart = 1e-4; // of two devices
  expect(secondsBetween(subject, /*onFirst=*/true) >= 0,
         "work begins before what it waits for in another context ends, by their clocks");
  expect(secondsBetween(subject, /*onFirst=*/false) >= -kClocksApart,
         "work begins before what it waits for on another device ends, by their clocks");
}

static void contextsOutliveEachOther(const Subject &subject) {
  Group group(subject);
  auto first = std::make_unique<RunHalf>(subject, 1, group.get());
  RunHalf second(subject, 1, group.get());
  Bytes sent = pattern(kBytes);
  void *address = second.allocate(kBytes);
  sluice_queue *queue = second.queue();
  second.upload(queue, sent, address);
  first->read(first->allocate(kBytes), kBytes);
  first.reset();
  second.finish(queue);
  RunHalf third(subject, 1, group.get());
  third.wait(third.queue(), second.record(queue));
  expect(second.read(address, kBytes) == sent, "memory changed when another context was closed");
}

/// A context owns memory, and others use it one after another, as programs of a process do.
static void memoryOutlivesItsUsers(const Subject &subject) {
  Group group(subject);
  RunHalf owner(subject, 1, group.get());
  if (!owner.table().clear)
    throw Skipped("it does not clear memory");
  void *address = owner.allocate(kBytes);
  for (unsigned round = 0; round < kRounds; ++round) {
    RunHalf user(subject, 1, group.get());
    Bytes sent = pattern(kBytes, round + 1), found(kBytes);
    expect(user.read(address, kBytes) == Bytes(kBytes, 0), "memory has the bytes of an earlier user");
    sluice_queue *queue = user.queue();
    user.upload(queue, sent, address);
    user.download(queue, address, found);
    user.finish(queue);
    expect(found == sent, "memory of another context does not hold the bytes written to it");
    owner.check(owner.table().clear(owner.get(), 0, address), "clear");
  }
}

std::vector<Test> groupTests() {
  return {{"group.events", eventsOrderContexts},
          {"group.threads", groupsSpanThreads},
          {"group.clock", groupsHaveOneClock},
          {"group.closing", contextsOutliveEachOther},
          {"group.memory", memoryOutlivesItsUsers}};
}

} // namespace sluice::conformance
