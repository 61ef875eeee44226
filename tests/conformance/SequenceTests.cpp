// Captured work is recorded, and executed at each replay, in order with other work. Tests of ops and graphs run kernels
// in sequences.
#include "tests/conformance/RunHalf.h"

#include <algorithm>

namespace sluice::conformance {

namespace {

/// Three blocks of one device, and a queue that captures.
struct Blocks {
  static constexpr size_t kBytes = 5000;

  explicit Blocks(const Subject &subject) : half(subject) {
    if (!half.captures())
      throw Skipped("its queues keep no sequences");
    for (void *&block : block)
      block = half.allocate(kBytes);
    queue = half.queue(0, SLUICE_QUEUE_COMPUTE);
  }

  void move(size_t from, size_t to) {
    half.copy(queue, {sizeof(sluice_copy), 0, 0, block[from], block[to], kBytes, "within"});
  }
  /// Copies from the first block to the second and on to the third.
  Sequence captureChain() {
    return half.capture(queue, [&] {
      move(0, 1);
      move(1, 2);
    });
  }
  Bytes read(size_t number) { return half.read(block[number], kBytes); }

  RunHalf half;
  void *block[3];
  sluice_queue *queue;
};

} // namespace

static void areKeptAndNotDone(const Subject &subject) {
  Blocks blocks(subject);
  Bytes data = pattern(Blocks::kBytes);
  blocks.half.upload(blocks.queue, data, blocks.block[0]);
  Sequence sequence = blocks.captureChain();
  blocks.half.finish(blocks.queue);
  expect(blocks.read(1) == Bytes(Blocks::kBytes, 0), "what was captured was done before it was replayed");
  blocks.half.replay(blocks.queue, sequence);
  blocks.half.finish(blocks.queue);
  expect(blocks.read(2) == data, "what was captured was not done when it was replayed");
}

/// Nobody waits in between: each replay finds what the work before it left, and leaves what the work behind it finds.
static void areReplayedInOrder(const Subject &subject) {
  Blocks blocks(subject);
  RunHalf &half = blocks.half;
  Sequence sequence = blocks.captureChain();
  std::vector<Bytes> sent, received(20, Bytes(Blocks::kBytes));
  for (unsigned i = 0; i < received.size(); ++i)
    sent.push_back(pattern(Blocks::kBytes, i));
  for (size_t i = 0; i < received.size(); ++i) {
    half.upload(blocks.queue, sent[i], blocks.block[0]);
    half.replay(blocks.queue, sequence);
    half.download(blocks.queue, blocks.block[2], received[i]);
  }
  half.finish(blocks.queue);
  expect(sent == received, "replays were not done in order with the work around them");
}

static void keepTheirArguments(const Subject &subject) {
  Blocks blocks(subject);
  Bytes data = pattern(Blocks::kBytes);
  blocks.half.upload(blocks.queue, data, blocks.block[0]);
  std::string label = "within";
  sluice_copy copy{sizeof(sluice_copy), 0, 0, blocks.block[0], blocks.block[1], Blocks::kBytes, label.c_str()};
  Sequence sequence = blocks.half.capture(blocks.queue, [&] { blocks.half.copy(blocks.queue, copy); });
  copy.to = blocks.block[2];
  copy.bytes = 1;
  label = "changed";
  blocks.half.replay(blocks.queue, sequence);
  blocks.half.finish(blocks.queue);
  expect(blocks.read(1) == data, "a copy was not replayed as it was when it was captured");
}

/// Events order replays in one queue with what another does.
static void areOrderedByEvents(const Subject &subject) {
  Blocks blocks(subject);
  RunHalf &half = blocks.half;
  Sequence sequence = blocks.captureChain();
  sluice_queue *copies = half.queue(), *replays = half.queue(0, SLUICE_QUEUE_COMPUTE);
  std::vector<Bytes> sent, received(20, Bytes(Blocks::kBytes));
  for (unsigned i = 0; i < received.size(); ++i)
    sent.push_back(pattern(Blocks::kBytes, i));
  for (size_t i = 0; i < received.size(); ++i) {
    half.upload(copies, sent[i], blocks.block[0]);
    half.wait(replays, half.record(copies));
    half.replay(replays, sequence);
    half.wait(copies, half.record(replays));
    half.download(copies, blocks.block[2], received[i]);
  }
  half.finish(copies);
  half.finish(replays);
  expect(sent == received, "events did not order a replay in another queue than the one that captured");
}

static void mayHaveNothingInThem(const Subject &subject) {
  Blocks blocks(subject);
  Sequence sequence = blocks.half.capture(blocks.queue, [] {});
  blocks.half.replay(blocks.queue, sequence);
  blocks.half.finish(blocks.queue);
}

static void mayHoldDiscards(const Subject &subject) {
  Blocks blocks(subject);
  if (!blocks.half.table().discard)
    throw Skipped("it does not look at what is discarded");
  Bytes data = pattern(Blocks::kBytes);
  Sequence sequence = blocks.half.capture(blocks.queue, [&] {
    blocks.move(0, 1);
    blocks.half.check(blocks.half.table().discard(blocks.queue, blocks.block[0], Blocks::kBytes), "discard");
  });
  for (int replay = 0; replay < 2; ++replay) {
    blocks.half.upload(blocks.queue, data, blocks.block[0]);
    blocks.half.replay(blocks.queue, sequence);
  }
  blocks.half.finish(blocks.queue);
  expect(blocks.read(1) == data, "what was discarded in a sequence was discarded before its place");
}

/// After `refused` a capture has ended: the copy before it is neither executed nor recorded, and the queue accepts
/// work.
static void expectRefused(Blocks &blocks, const char *what, const std::function<sluice_status()> &refused) {
  RunHalf &half = blocks.half;
  Bytes data = pattern(Blocks::kBytes), other = pattern(Blocks::kBytes, 2);
  half.upload(blocks.queue, data, blocks.block[0]);
  half.upload(blocks.queue, other, blocks.block[1]);
  half.finish(blocks.queue);
  half.check(half.table().capture_begin(blocks.queue), "capture_begin");
  blocks.move(0, 1);
  sluice_status status = refused();
  expect(status == SLUICE_USAGE, std::string(what) + " within a capture ends with status " + std::to_string(status));
  expect(!half.lastError().empty(), std::string(what) + " within a capture gives no reason");
  sluice_sequence *sequence = nullptr;
  expect(half.table().capture_end(blocks.queue, &sequence) == SLUICE_USAGE,
         std::string("a capture goes on after ") + what);
  blocks.move(1, 2);
  half.finish(blocks.queue);
  expect(blocks.read(1) == other, std::string("a capture that ended with ") + what + " was done");
  expect(blocks.read(2) == other, std::string("the queue does nothing after ") + what);
}

static void refuseAllElse(const Subject &subject) {
  Blocks blocks(subject);
  RunHalf &half = blocks.half;
  const sluice_backend_run &table = half.table();
  Bytes host(Blocks::kBytes);
  sluice_copy up{sizeof(sluice_copy), SLUICE_HOST, 0, host.data(), blocks.block[0], Blocks::kBytes, "up"};
  sluice_event *event = half.record(half.queue());
  Sequence sequence = blocks.captureChain();
  expectRefused(blocks, "a copy from the host", [&] { return table.copy(blocks.queue, &up); });
  expectRefused(blocks, "record", [&] { return table.record(blocks.queue, event); });
  expectRefused(blocks, "wait", [&] { return table.wait(blocks.queue, event); });
  expectRefused(blocks, "waiting for the queue", [&] { return table.synchronize_queue(blocks.queue); });
  expectRefused(blocks, "a replay", [&] { return table.replay(blocks.queue, sequence.get()); });
  uint64_t number = 0;
  if (table.signal)
    expectRefused(blocks, "a signal", [&] { return table.signal(blocks.queue, &number, 1); });
  if (table.wait_for_signal)
    expectRefused(blocks, "waiting for a signal", [&] { return table.wait_for_signal(blocks.queue, &number, 1); });
  expectRefused(blocks, "another capture", [&] { return table.capture_begin(blocks.queue); });
}

/// The error comes at once, when the capture ends, or when it is replayed.
static void tellErrors(const Subject &subject) {
  Blocks blocks(subject);
  RunHalf &half = blocks.half;
  sluice_call call{sizeof(call), 1, 0, 1};
  sluice_launch launch = launchOf("conformance", call);
  launch.function = "a function that no backend has";
  half.check(half.table().capture_begin(blocks.queue), "capture_begin");
  sluice_sequence *sequence = nullptr;
  sluice_status status = half.table().launch(blocks.queue, &launch);
  if (status == SLUICE_OK)
    status = half.table().capture_end(blocks.queue, &sequence);
  if (status == SLUICE_OK)
    status = half.table().replay(blocks.queue, sequence);
  if (status == SLUICE_OK)
    status = half.table().synchronize_queue(blocks.queue);
  expect(status == SLUICE_UNSUPPORTED,
         "capturing a launch of an unknown function ends with status " + std::to_string(status));
  expect(!half.lastError().empty(), "capturing a launch of an unknown function gives no reason");
  if (sequence)
    half.table().sequence_destroy(sequence);
  Sequence sound = blocks.captureChain();
  half.replay(blocks.queue, sound);
  half.finish(blocks.queue);
}

static int64_t copiesWithin(const RunHalf &half) {
  Larger<sluice_copy_count> counts[16];
  size_t count = 0;
  half.check(half.table().copy_counts(half.get(), &counts[0].known, sizeof(counts[0]), std::size(counts), &count),
             "copy_counts");
  for (size_t i = 0; i < std::min(count, std::size(counts)); ++i)
    if (counts[i].known.from_device == 0 && counts[i].known.to_device == 0)
      return counts[i].known.copies;
  return 0;
}

static void countAtEachReplay(const Subject &subject) {
  Blocks blocks(subject);
  if (!blocks.half.table().copy_counts)
    throw Skipped("it does not count copies");
  Sequence sequence = blocks.captureChain();
  blocks.half.finish(blocks.queue);
  expect(copiesWithin(blocks.half) == 0, "copies were counted when they were captured");
  for (int replay = 0; replay < 3; ++replay)
    blocks.half.replay(blocks.queue, sequence);
  blocks.half.finish(blocks.queue);
  expect(copiesWithin(blocks.half) == 6, "copies are not counted at each replay");
}

/// The least seconds of several replays of so many copies; `end` is when the work before them ended.
static double secondsOfReplay(Blocks &blocks, int copies, double end) {
  constexpr int kReplays = 5;
  Sequence sequence = blocks.half.capture(blocks.queue, [&] {
    for (int copy = 0; copy < copies; ++copy)
      blocks.move(0, 1);
  });
  std::vector<double> seconds;
  for (int replay = 0; replay < kReplays; ++replay) {
    blocks.half.replay(blocks.queue, sequence);
    sluice_event *event = blocks.half.record(blocks.queue);
    blocks.half.finish(blocks.queue);
    auto [nextStart, nextEnd] = blocks.half.times(event);
    expect(nextStart >= end, "a replay begins before the work before it ends");
    seconds.push_back(nextEnd - nextStart);
    end = nextEnd;
  }
  return *std::min_element(seconds.begin(), seconds.end());
}

static void areTimedAsOnePiece(const Subject &subject) {
  Blocks blocks(subject);
  blocks.half.noteTimes(blocks.queue);
  blocks.move(0, 1);
  Sequence chain = blocks.captureChain();
  sluice_event *behindTheCopy = blocks.half.record(blocks.queue); // and what was kept is none
  blocks.half.finish(blocks.queue);
  double end = blocks.half.times(behindTheCopy).second;
  double one = secondsOfReplay(blocks, 1, end), many = secondsOfReplay(blocks, 100, end);
  expect(many > 3 * one, "a replay of a hundred copies takes " + std::to_string(many * 1e6) + " us, and of one " +
                             std::to_string(one * 1e6));
}

std::vector<Test> sequenceTests() {
  return {{"sequence.kept", areKeptAndNotDone},        {"sequence.order", areReplayedInOrder},
          {"sequence.arguments", keepTheirArguments},  {"sequence.event_order", areOrderedByEvents},
          {"sequence.empty", mayHaveNothingInThem},    {"sequence.discard", mayHoldDiscards},
          {"sequence.refusals", refuseAllElse},        {"sequence.errors", tellErrors},
          {"sequence.copy_counts", countAtEachReplay}, {"sequence.times", areTimedAsOnePiece}};
}

} // namespace sluice::conformance
