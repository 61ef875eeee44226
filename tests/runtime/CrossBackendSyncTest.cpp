// Queues of two backends that wait for each other: two simulators, neither of which knows of the other.
#include "runtime/device/CrossBackendSync.h"
#include "runtime/base/Status.h"
#include "runtime/device/CopyEngine.h"
#include "runtime/plugins/BackendLoader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>

using namespace sluice::runtime;
using testing::HasSubstr;

namespace {

/// The simulator on one side: counts the host's waits, and injects faults for tests.
template <int side> struct Meddled {
  static inline sluice_backend_run sound;
  static inline int waits, signalWaits;
  static inline int ignored;       ///< number of the signal wait to drop; -1: none
  static inline bool fails;        ///< every wait fails, like a lost device, whose queues send no signals
  static inline bool isNumberless; ///< its queues cannot wait for signals
  static inline bool isLost;       ///< its last error is a lost device

  static sluice_backend_run half() {
    waits = signalWaits = 0;
    ignored = -1;
    fails = isNumberless = isLost = false;
    sluice_backend_run half = sound = findRunHalf("sim", {SLUICE_BINARY_DIR "/lib/sluice/backends"});
    half.synchronize = [](sluice_event *event) { return result(sound.synchronize(event)); };
    half.synchronize_until = [](sluice_event *event, double seconds) {
      return result(sound.synchronize_until(event, seconds));
    };
    half.synchronize_queue = [](sluice_queue *queue) { return result(sound.synchronize_queue(queue)); };
    half.query = [](sluice_event *event, int *done) { return result(sound.query(event, done)); };
    half.last_error = [](sluice_run *run) { return isLost ? "side 0 burnt down" : sound.last_error(run); };
    half.signal = [](sluice_queue *queue, uint64_t *place, uint64_t number) {
      return fails ? SLUICE_OK : sound.signal(queue, place, number);
    };
    half.wait_for_signal = [](sluice_queue *queue, const uint64_t *place, uint64_t number) {
      if (isNumberless)
        return SLUICE_UNSUPPORTED;
      return signalWaits++ == ignored ? SLUICE_OK : sound.wait_for_signal(queue, place, number);
    };
    return half;
  }

  static sluice_status result(sluice_status status) {
    ++waits;
    isLost = fails;
    return fails ? SLUICE_EXHAUSTED : status;
  }
};

using First = Meddled<0>;
using Second = Meddled<1>;

constexpr size_t kElements = 16;
using Block = std::array<int, kElements>;

/// Device memory, two queues and host memory of a backend.
struct Side {
  Side(DeviceContext &context)
      : host(context, sizeof(Block), "host memory"), memory(context, 0, sizeof(Block), "memory"),
        queue(context, 0, SLUICE_QUEUE_COPY, "queue"), other(context, 0, SLUICE_QUEUE_COPY, "other"),
        idle(context, 0, SLUICE_QUEUE_COPY, "idle") {}

  void up(DeviceQueue &in, const void *from) {
    in.copy({sizeof(sluice_copy), SLUICE_HOST, 0, from, memory.data(), sizeof(Block), "a block"});
  }
  void down(DeviceQueue &in, void *to) {
    in.copy({sizeof(sluice_copy), 0, SLUICE_HOST, memory.data(), to, sizeof(Block), "a block"});
  }
  /// Lets the backend make progress with all ready work.
  void rouse() {
    idle.copy({sizeof(sluice_copy), SLUICE_HOST, SLUICE_HOST, nullptr, nullptr, 0, "nothing"});
    idle.synchronize();
  }

  CopiedHostMemory host;
  DeviceMemory memory;
  DeviceQueue queue, other, idle;
};

/// Orders all later work of `later` after the work of `earlier`.
DeviceEvent order(DeviceQueue &earlier, DeviceQueue &later) {
  DeviceEvent event(earlier.context());
  earlier.record(event);
  later.wait(event);
  return event;
}

struct Two {
  explicit Two(uint64_t seed = 0, sluice_backend_run half = First::half(),
               sluice_backend_run secondHalf = Second::half())
      : halves{half, secondHalf}, first("one", halves[0], "seed=" + std::to_string(seed), team),
        second("two", halves[1], "seed=" + std::to_string(seed + 100), team) {
    first.setCrossBackendSync(&sync);
    second.setCrossBackendSync(&sync);
    sent.fill(7);
    received.fill(-1);
  }
  ~Two() { sync.settle(); }

  /// From the host through the first backend to the second, and back to the host through the first backend's other
  /// queue.
  void putRoundTrip() {
    a.up(a.queue, sent.data());
    a.down(a.queue, a.host.data());
    order(a.queue, b.queue);
    b.up(b.queue, a.host.data());
    b.down(b.queue, b.host.data());
    order(b.queue, a.other);
    a.up(a.other, b.host.data());
    a.down(a.other, received.data());
    order(a.other, a.queue);
  }
  static int waits() { return First::waits + Second::waits; }
  bool arrived() {
    for (Side *side : {&b, &a, &b})
      side->rouse();
    a.other.synchronize();
    return received == sent;
  }

  Team team{1};
  sluice_backend_run halves[2];
  DeviceContext first, second;
  CrossBackendSync sync;
  Side a{first}, b{second};
  Block sent, received;
};

constexpr uint64_t kSeeds = 20;

/// The code and text of the exception.
Status errorOf(const std::function<void()> &body) { return guarded(body); }

} // namespace

TEST(CrossBackendSync, TheHostDoesNotWait) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Two two(seed);
    two.putRoundTrip();
    two.putRoundTrip();
    EXPECT_EQ(Two::waits(), 0);
    EXPECT_TRUE(two.arrived()) << "seed " << seed;
  }
}

TEST(CrossBackendSync, AForgottenWaitIsSeen) {
  int lost[2] = {0, 0};
  for (uint64_t seed = 0; seed < kSeeds; ++seed)
    for (int side : {0, 1}) {
      Two two(seed);
      (side ? Second::ignored : First::ignored) = 0;
      two.putRoundTrip();
      lost[side] += !two.arrived();
    }
  EXPECT_GT(lost[0], 0);
  EXPECT_GT(lost[1], 0);
}

TEST(CrossBackendSync, ErrorsAreToldToWhoeverWaitsBehindThem) {
  Two two;
  First::fails = true;
  two.putRoundTrip();
  Status status = errorOf([&] { two.b.queue.synchronize(); });
  EXPECT_EQ(status.code, ExitCode::exhausted);
  EXPECT_THAT(status.message, HasSubstr("one: side 0 burnt down"));
  First::fails = First::isLost = false;
  two.b.queue.synchronize(); // no queue waits for a signal that never comes
}

TEST(CrossBackendSync, ADeadlinePassesOnTheWay) {
  Two two;
  CopiedHostMemory never(two.first, sizeof(uint64_t), "a number");
  auto *place = reinterpret_cast<uint64_t *>(never.data());
  ASSERT_EQ(First::sound.wait_for_signal(two.a.queue.get(), place, 1), SLUICE_OK);
  two.putRoundTrip();
  two.first.setPatience(0.01);
  DeviceEvent event(two.second);
  two.b.queue.record(event);
  for (int again = 0; again < 2; ++again)
    EXPECT_EQ(errorOf([&] { event.synchronize(); }).code, ExitCode::deadline);
  EXPECT_FALSE(event.isDone());
  std::atomic_ref(*place).store(1);
  two.first.setPatience(30);
  EXPECT_TRUE(two.arrived());
}

TEST(CrossBackendSync, NothingIsLeftWaitingInTheEnd) {
  Two two;
  CopiedHostMemory never(two.first, sizeof(uint64_t), "a number");
  ASSERT_EQ(First::sound.wait_for_signal(two.a.queue.get(), reinterpret_cast<uint64_t *>(never.data()), 1), SLUICE_OK);
  two.putRoundTrip();
  two.first.setPatience(0.01);
  two.sync.settle();
  two.b.queue.synchronize();
}

TEST(CrossBackendSync, AskingIsEnough) {
  Two two;
  two.putRoundTrip();
  DeviceEvent event(two.first);
  two.a.other.record(event);
  for (int i = 0; i < 1000 && !event.isDone(); ++i) {
  }
  EXPECT_TRUE(event.isDone());
  EXPECT_EQ(two.received, two.sent);
}

TEST(CrossBackendSync, WorkThatComesBackIsOrderedInItsBackend) {
  auto overwrite = [](Two &two) { two.a.down(two.a.other, two.a.host.data()); };
  Two two, unordered;
  unordered.a.up(unordered.a.queue, unordered.sent.data());
  unordered.a.down(unordered.a.queue, unordered.a.host.data());
  EXPECT_THAT(errorOf([&] { overwrite(unordered); }).message, HasSubstr("race: "));
  two.putRoundTrip();
  DeviceEvent before(two.first), after(two.first);
  two.a.queue.record(before);
  overwrite(two);
  two.a.other.record(after);
  EXPECT_TRUE(two.arrived());
  before.synchronize();
  after.synchronize();
  EXPECT_LE(before.times().second, after.times().first) << "by the clock of the first";
}

TEST(CrossBackendSync, TheHostWaitsWhereOneCannot) {
  {
    Two two;
    Second::isNumberless = true;
    two.putRoundTrip();
    EXPECT_EQ(Two::waits(), 1);
    EXPECT_TRUE(two.arrived());
  }
  sluice_backend_run eager = Second::half();
  eager.lazy = 0;
  Two two(0, First::half(), eager);
  two.putRoundTrip();
  EXPECT_EQ(First::waits, 1) << "for nobody else makes it go on";
  EXPECT_EQ(Second::waits, 0);
  EXPECT_TRUE(two.arrived());
}

/// Which wait for what those wait for, though nothing else does.
TEST(CrossBackendSync, SignalsComeBehindEarlierOnes) {
  Two two;
  two.putRoundTrip();
  order(two.b.idle, two.a.idle);
  two.a.idle.synchronize();
  EXPECT_TRUE(two.arrived());
}

TEST(CrossBackendSync, StagingIsWrittenAnewWhenItWasRead) {
  Two two;
  StagingBlock block;
  Block values[2], found[2];
  for (int i : {0, 1}) {
    values[i].fill(i + 1);
    two.a.up(two.a.queue, values[i].data());
    std::byte *between = block.take(sizeof(Block), two.a.queue, two.b.queue);
    two.a.down(two.a.queue, between);
    order(two.a.queue, two.b.queue);
    two.b.up(two.b.queue, between);
    two.b.down(two.b.queue, found[i].data());
    block.lend(two.b.queue);
  }
  EXPECT_EQ(Two::waits(), 0);
  two.a.queue.synchronize();
  two.b.queue.synchronize();
  EXPECT_EQ(found[0], values[0]);
  EXPECT_EQ(found[1], values[1]);
}
