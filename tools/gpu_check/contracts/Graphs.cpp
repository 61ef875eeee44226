// Graphs: the operations that a stream captures, the arguments and order of a replay, rejected captures, and when
// objects may be destroyed.
#include "tools/gpu_check/contracts/Machine.h"

namespace sluice::gpu_check {

using namespace cuda;

namespace {

/// A capturing stream, and numbers on the device. As in the backend, captured work has run once before.
struct Capture {
  explicit Capture(Machine &machine)
      : machine(machine), stream(machine.stream()), first(machine.place(stream, std::vector<int>{1})),
        second(machine.place(stream, std::vector<int>{0})) {
    copyLate(/*turns=*/0);
    store(second, 0);
    machine.finish(stream);
    machine.check(machine.driver.captureBegin(stream, kCaptureOfThread), "cuStreamBeginCapture");
  }

  void store(DeviceAddress to, int value) { machine.launch(stream, "store", 1, 1, {&to, &value}); }
  /// Copies the first to the second.
  void copyLate(int turns) {
    int zero = 0;
    machine.launch(stream, "copy_late", 1, 1, {&second, &first, &turns, &zero});
  }
  void copy() {
    machine.check(machine.driver.copyWithin(second, first, sizeof(int), stream), "cuMemcpyDtoDAsync in a capture");
  }
  DriverExecutable end() {
    DriverGraph graph = nullptr;
    DriverExecutable executable = nullptr;
    machine.check(machine.driver.captureEnd(stream, &graph), "cuStreamEndCapture");
    machine.check(machine.driver.graphInstantiate(&executable, graph, 0), "cuGraphInstantiateWithFlags");
    machine.check(machine.driver.graphDestroy(graph), "cuGraphDestroy");
    return executable;
  }
  void launch(DriverExecutable executable, DriverStream into) {
    machine.check(machine.driver.graphLaunch(executable, into), "cuGraphLaunch");
  }
  int read(DeviceAddress from) { return machine.read<int>(stream, from, 1)[0]; }

  Machine &machine;
  DriverStream stream;
  DeviceAddress first, second;
};

} // namespace

static void captureDoesNothing(Machine &machine) {
  Capture capture(machine);
  capture.store(capture.first, 7);
  capture.end();
  expect(capture.read(capture.first) == 1, "what a stream captured was done");
}

/// Also after the stream's earlier work and before its later work.
static void launchesKeepTheirOrder(Machine &machine) {
  Capture capture(machine);
  capture.store(capture.first, 7);
  capture.copy();
  capture.store(capture.first, 8);
  DriverExecutable graph = capture.end();
  for (int turn = 0; turn < 20; ++turn) {
    capture.store(capture.second, -1);
    capture.launch(graph, capture.stream);
    expect(capture.read(capture.second) == 7 && capture.read(capture.first) == 8,
           "a graph's work, or what stands around it, is not done in order");
  }
}

/// The memory of the arguments may be reused before the launch.
static void argumentsAreKept(Machine &machine) {
  Capture capture(machine);
  int value = 7;
  DeviceAddress to = capture.first;
  machine.launch(capture.stream, "store", 1, 1, {&to, &value});
  value = 9;
  to = 0;
  capture.launch(capture.end(), capture.stream);
  expect(capture.read(capture.first) == 7, "a graph's arguments are not those of the capture");
}

static void otherStreamsTakeIt(Machine &machine) {
  Capture capture(machine);
  capture.store(capture.first, 7);
  DriverExecutable graph = capture.end();
  DriverStream other = machine.stream();
  capture.launch(graph, other);
  machine.finish(other);
  expect(capture.read(capture.first) == 7, "a graph that one stream captured is not done in another");
}

/// Launches of one graph run one after the other, in any streams.
static void launchesDoNotOverlap(Machine &machine) {
  Capture capture(machine);
  capture.copyLate(machine.turns());
  capture.store(capture.first, 5);
  DriverExecutable graph = capture.end();
  capture.launch(graph, capture.stream);
  capture.launch(graph, capture.stream);
  expect(capture.read(capture.second) == 5, "the second launch of a graph did not see what the first one did");
}

static void eventsStandBehindIt(Machine &machine) {
  Capture capture(machine);
  capture.copyLate(machine.turns());
  capture.launch(capture.end(), capture.stream);
  DriverEvent event = machine.event();
  machine.check(machine.driver.eventRecord(event, capture.stream), "cuEventRecord");
  DriverStream reader = machine.stream();
  machine.waitFor(reader, event);
  expect(machine.read<int>(reader, capture.second, 1)[0] == 1, "an event behind a graph did not wait for it");
}

static void graphsMayGoBeforeTheirExecutables(Machine &machine) {
  Capture capture(machine);
  capture.store(capture.first, 7);
  DriverExecutable graph = capture.end(); // destroys the captured graph
  capture.launch(graph, capture.stream);
  machine.finish(capture.stream);
  machine.check(machine.driver.executableDestroy(graph), "cuGraphExecDestroy");
  expect(capture.read(capture.first) == 7, "an executable needs the graph that it was made of");
}

/// Memory allocated by the driver: each launch reads and writes its contents at that time.
static void copiesOfPinnedMemoryAreKept(Machine &machine) {
  int *pinned = nullptr;
  machine.check(
      machine.driver.hostAllocate(reinterpret_cast<void **>(&pinned), 2 * sizeof(int), kHostMemoryOfAllContexts),
      "cuMemHostAlloc");
  Capture capture(machine);
  machine.upload(capture.stream, capture.first, &pinned[0], sizeof(int));
  capture.copy();
  machine.download(capture.stream, &pinned[1], capture.second, sizeof(int));
  DriverExecutable graph = capture.end();
  for (int value : {5, 6}) {
    pinned[0] = value, pinned[1] = -1;
    capture.launch(graph, capture.stream);
    machine.finish(capture.stream);
    expect(pinned[1] == value, "a graph does not copy what pinned memory holds when it is launched");
  }
}

static void allocatingSpoilsIt(Machine &machine) {
  Capture capture(machine);
  capture.store(capture.first, 7);
  DeviceAddress more = 0;
  DriverGraph graph = nullptr;
  expect(machine.driver.allocate(&more, 256) != 0, "memory is allocated while the thread captures");
  expect(machine.driver.captureEnd(capture.stream, &graph) != 0 || !graph,
         "a capture goes on behind what may disturb it");
}

static void waitingSpoilsIt(Machine &machine) {
  Capture capture(machine);
  DriverGraph graph = nullptr;
  expect(machine.driver.streamSynchronize(capture.stream) != 0, "a stream that captures is waited for");
  expect(machine.driver.captureEnd(capture.stream, &graph) != 0 || !graph, "a capture goes on behind a wait");
}

std::vector<Contract> graphContracts() {
  return {{"graph.capture_does_nothing", captureDoesNothing},
          {"graph.order", launchesKeepTheirOrder},
          {"graph.arguments_are_kept", argumentsAreKept},
          {"graph.other_streams", otherStreamsTakeIt},
          {"graph.launches_follow_each_other", launchesDoNotOverlap},
          {"graph.events_behind", eventsStandBehindIt},
          {"graph.destroyed_early", graphsMayGoBeforeTheirExecutables},
          {"graph.pinned_copies", copiesOfPinnedMemoryAreKept},
          {"graph.allocating_spoils_it", allocatingSpoilsIt},
          {"graph.waiting_spoils_it", waitingSpoilsIt}};
}

} // namespace sluice::gpu_check
