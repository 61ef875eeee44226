// Streams and events: order, waits, contexts and timing.
#include "tools/gpu_check/contracts/Machine.h"

#include <atomic>
#include <chrono>
#include <utility>

namespace sluice::gpu_check {

using namespace cuda;

namespace {

/// Two numbers on the device; the second becomes a delayed copy of the first.
struct LateCopy {
  explicit LateCopy(Machine &machine)
      : machine(machine), stream(machine.stream()), from(machine.place(stream, std::vector<int>{1})),
        to(machine.place(stream, std::vector<int>{0})) {}

  void begin() {
    int turns = machine.turns(), zero = 0;
    machine.launch(stream, "copy_late", 1, 1, {&to, &from, &turns, &zero});
  }
  DriverEvent record(unsigned flags = kEventWithoutTimes) {
    DriverEvent event = machine.event(flags);
    machine.check(machine.driver.eventRecord(event, stream), "cuEventRecord");
    return event;
  }
  /// The copy as read by `reader`.
  int readIn(DriverStream reader) { return machine.read<int>(reader, to, 1)[0]; }

  Machine &machine;
  DriverStream stream;
  DeviceAddress from, to;
};

} // namespace

static void keepsItsOrder(Machine &machine) {
  LateCopy copy(machine);
  for (int i = 0; i < 50; ++i) {
    int value = 100 + i;
    machine.launch(copy.stream, "store", 1, 1, {&copy.from, &value});
    copy.machine.check(machine.driver.copyWithin(copy.to, copy.from, 4, copy.stream), "cuMemcpyDtoDAsync");
  }
  expect(copy.readIn(copy.stream) == 149, "work of one stream is not done in order");
}

static void waitsForEvents(Machine &machine) {
  LateCopy copy(machine);
  DriverStream reader = machine.stream();
  copy.begin();
  machine.waitFor(reader, copy.record());
  expect(copy.readIn(reader) == 1, "a stream did not wait for an event of another");
}

static void hostWaitsForEvents(Machine &machine) {
  LateCopy copy(machine);
  copy.begin();
  machine.check(machine.driver.eventSynchronize(copy.record()), "cuEventSynchronize");
  expect(copy.readIn(machine.stream()) == 1, "the host did not wait for an event");
}

static void unrecordedIsDone(Machine &machine) {
  DriverEvent event = machine.event();
  machine.check(machine.driver.eventSynchronize(event), "cuEventSynchronize of an event that was never recorded");
  DriverStream stream = machine.stream();
  machine.waitFor(stream, event);
  machine.finish(stream);
}

/// A wait refers to the event's record at the time of the call.
static void waitMeansTheLastRecord(Machine &machine) {
  LateCopy copy(machine);
  DriverStream reader = machine.stream();
  DriverEvent event = copy.record();
  copy.begin();
  machine.check(machine.driver.eventRecord(event, copy.stream), "cuEventRecord");
  machine.waitFor(reader, event);
  expect(copy.readIn(reader) == 1, "an event that was recorded again stands for its old place");
}

static void destroyedEventsAreWaitedFor(Machine &machine) {
  LateCopy copy(machine);
  DriverStream reader = machine.stream();
  copy.begin();
  DriverEvent event = copy.record();
  machine.waitFor(reader, event);
  machine.check(machine.driver.eventDestroy(event), "cuEventDestroy");
  expect(copy.readIn(reader) == 1, "a wait for an event that was destroyed since is none");
}

static void hostFunctionsKeepTheirPlace(Machine &machine) {
  LateCopy copy(machine);
  void *found = nullptr;
  machine.check(machine.driver.hostAllocate(&found, sizeof(int), kHostMemoryOfAllContexts), "cuMemHostAlloc");
  int seen = -1;
  std::pair<int *, int *> places{static_cast<int *>(found), &seen};
  auto look = [](void *data) {
    auto [from, to] = *static_cast<std::pair<int *, int *> *>(data);
    *to = *from;
  };
  copy.begin();
  machine.download(copy.stream, found, copy.to, sizeof(int));
  machine.check(machine.driver.hostFunction(copy.stream, look, &places), "cuLaunchHostFunc");
  machine.finish(copy.stream);
  expect(seen == 1, "a function of the host came before the work that it stands behind");
}

/// The number comes from the host, and the stream's work must wait for it.
static void waitsForNumbers(Machine &machine) {
  DriverStream stream = machine.stream(), other = machine.stream();
  DriverEvent behind = machine.event();
  void *memory = nullptr;
  machine.check(machine.driver.hostAllocate(&memory, sizeof(uint64_t), kHostMemoryOfAllContexts), "cuMemHostAlloc");
  std::atomic_ref number(*static_cast<uint64_t *>(memory));
  number.store(0);
  machine.check(machine.driver.streamWaitNumber(stream, reinterpret_cast<DeviceAddress>(memory), 2, kWaitUntilNoLess),
                "cuStreamWaitValue64");
  machine.check(machine.driver.eventRecord(behind, stream), "cuEventRecord");
  for (uint64_t early : {0, 1}) {
    number.store(early);
    machine.finish(other); // which does not wait
    int status = machine.driver.eventQuery(behind);
    expect(status == kNotReady,
           "a stream that waits for 2 goes on at " + std::to_string(early) + ": " + machine.driver.textOf(status));
  }
  number.store(3);
  machine.finish(stream);
}

static void waitsAcrossContexts(Machine &machine) {
  machine.needDevices(2);
  LateCopy copy(machine);
  copy.begin();
  DriverEvent event = copy.record();
  machine.makeCurrent(1);
  DriverStream there = machine.stream();
  machine.waitFor(there, event);
  expect(copy.readIn(there) == 1, "a stream did not wait for an event of another device");
}

static void eventsBelongToAContext(Machine &machine) {
  machine.needDevices(2);
  DriverEvent event = machine.event();
  machine.makeCurrent(1);
  expect(machine.driver.eventRecord(event, machine.stream()) != 0, "an event is recorded on another device");
}

static void streamsBelongToAContext(Machine &machine) {
  machine.needDevices(2);
  DeviceAddress to = machine.allocate(4);
  DriverFunction function = machine.function("store");
  machine.makeCurrent(1);
  int value = 1;
  void *arguments[] = {&to, &value};
  DriverStream there = machine.stream();
  expect(machine.driver.launch(function, 1, 1, 1, 1, 1, 1, 0, there, arguments, nullptr) != 0,
         "a kernel is launched in another device's stream");
}

/// Non-blocking streams do not wait for the default stream, and the driver supports many of them.
static void manyAtOnce(Machine &machine) {
  std::vector<DriverStream> streams;
  std::vector<DeviceAddress> numbers;
  for (int i = 0; i < 64; ++i) {
    streams.push_back(machine.stream());
    numbers.push_back(machine.allocate(4));
    machine.launch(streams.back(), "store", 1, 1, {&numbers.back(), &i});
  }
  for (int i = 0; i < 64; ++i)
    expect(machine.read<int>(streams[size_t(i)], numbers[size_t(i)], 1)[0] == i, "a stream's work is not done");
  for (DriverStream stream : streams)
    machine.check(machine.driver.streamDestroy(stream), "cuStreamDestroy");
}

static void destroyingLosesNothing(Machine &machine) {
  LateCopy copy(machine);
  copy.begin();
  DriverEvent event = copy.record();
  machine.check(machine.driver.streamDestroy(copy.stream), "cuStreamDestroy");
  machine.check(machine.driver.eventSynchronize(event), "cuEventSynchronize");
  expect(copy.readIn(machine.stream()) == 1, "work of a stream that was destroyed is lost");
}

static double millisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/// Milliseconds of the work between two events.
static void timesAreTold(Machine &machine) {
  constexpr double kRounding = 1.01, kOverhead = 10; // of the host, which may be busy
  LateCopy copy(machine);
  copy.begin();
  machine.finish(copy.stream); // the code is loaded
  auto start = std::chrono::steady_clock::now();
  DriverEvent before = copy.record(kEventWithTimes);
  copy.begin();
  DriverEvent between = copy.record(kEventWithTimes);
  copy.begin();
  DriverEvent behind = copy.record(kEventWithTimes);
  machine.check(machine.driver.eventSynchronize(behind), "cuEventSynchronize");
  double host = millisecondsSince(start);
  float first = 0, both = 0;
  machine.check(machine.driver.elapsed(&first, before, between), "cuEventElapsedTime");
  machine.check(machine.driver.elapsed(&both, before, behind), "cuEventElapsedTime");
  expect(first > 0 && both > first,
         "one kernel took " + std::to_string(first) + " ms, and that and another one " + std::to_string(both));
  expect(both < kRounding * host && both > host / 2 - kOverhead, "work took " + std::to_string(both) +
                                                                     " ms by events, and " + std::to_string(host) +
                                                                     " ms by the host's clock");
}

static void timesAreOfWhatIsDone(Machine &machine) {
  LateCopy copy(machine);
  DriverEvent before = copy.record(kEventWithTimes);
  copy.begin();
  DriverEvent behind = copy.record(kEventWithTimes);
  float milliseconds = 0;
  int status = machine.driver.elapsed(&milliseconds, before, behind);
  expect(status == kNotReady, "cuEventElapsedTime of an event that is not done gives " + machine.driver.textOf(status));
  machine.finish(copy.stream);
  machine.check(machine.driver.elapsed(&milliseconds, before, behind), "cuEventElapsedTime");
}

static void timesAreOfEventsThatHaveSome(Machine &machine) {
  LateCopy copy(machine);
  DriverEvent timed = copy.record(kEventWithTimes), timeless = copy.record(),
              unrecorded = machine.event(kEventWithTimes);
  machine.finish(copy.stream);
  float milliseconds = 0;
  for (DriverEvent other : {timeless, unrecorded})
    for (auto [from, to] : {std::pair(timed, other), std::pair(other, timed)}) {
      int status = machine.driver.elapsed(&milliseconds, from, to);
      expect(status != 0 && status != kNotReady,
             "cuEventElapsedTime of an event without times gives " + machine.driver.textOf(status));
    }
}

static void timesAreOfOneDevice(Machine &machine) {
  machine.needDevices(2);
  LateCopy copy(machine);
  DriverEvent here = copy.record(kEventWithTimes), there = nullptr;
  machine.finish(copy.stream);
  machine.makeCurrent(1);
  DriverStream stream = machine.stream();
  there = machine.event(kEventWithTimes);
  machine.check(machine.driver.eventRecord(there, stream), "cuEventRecord");
  machine.finish(stream);
  float milliseconds = 0;
  expect(machine.driver.elapsed(&milliseconds, here, there) != 0, "there is a time between events of two devices");
}

/// The host can wait for an event of one stream while another one works.
static void idleStreamsAreNotHeldUp(Machine &machine) {
  if (machine.isEmulated())
    throw NotTried("an emulated device does the work of any stream while the host waits");
  LateCopy copy(machine);
  DriverStream idle = machine.stream();
  DriverEvent there = machine.event(kEventWithTimes);
  copy.begin();
  DriverEvent late = copy.record();
  auto start = std::chrono::steady_clock::now();
  machine.check(machine.driver.eventRecord(there, idle), "cuEventRecord");
  machine.check(machine.driver.eventSynchronize(there), "cuEventSynchronize");
  double milliseconds = millisecondsSince(start);
  int status = machine.driver.eventQuery(late);
  expect(status == kNotReady,
         "an event of an idle stream, which took " + std::to_string(milliseconds) + " ms, waited for another stream");
}

std::vector<Contract> streamContracts() {
  return {{"stream.keeps_its_order", keepsItsOrder},
          {"stream.waits_for_events", waitsForEvents},
          {"stream.many_at_once", manyAtOnce},
          {"stream.destroying_loses_nothing", destroyingLosesNothing},
          {"stream.belongs_to_a_context", streamsBelongToAContext},
          {"stream.host_functions_keep_their_place", hostFunctionsKeepTheirPlace},
          {"stream.waits_for_numbers", waitsForNumbers},
          {"event.host_waits", hostWaitsForEvents},
          {"event.never_recorded_is_done", unrecordedIsDone},
          {"event.wait_means_the_last_record", waitMeansTheLastRecord},
          {"event.destroyed_is_waited_for", destroyedEventsAreWaitedFor},
          {"event.times", timesAreTold},
          {"event.times_of_what_is_done", timesAreOfWhatIsDone},
          {"event.times_of_timed_events", timesAreOfEventsThatHaveSome},
          {"event.times_of_one_device", timesAreOfOneDevice},
          {"event.idle_streams", idleStreamsAreNotHeldUp},
          {"event.waits_across_contexts", waitsAcrossContexts},
          {"event.belongs_to_a_context", eventsBelongToAContext}};
}

} // namespace sluice::gpu_check
