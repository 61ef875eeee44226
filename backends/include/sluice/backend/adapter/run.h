// runTable<Half>: a run half from a C++ class, whose object is a context. The class needs
//
//   static constexpr const char *name;          of the backend
//   explicit Half(const sluice_run_options &options);
//   int32_t deviceCount();
//   void describe(int32_t device, sluice_device_info &info);
//   void *allocate(int32_t device, size_t bytes);
//   void release(int32_t device, void *address);
//   using Queue = ...;                          may be a reference; none of these types needs to be movable
//   Queue addQueue(int32_t device, sluice_queue_kind kind, const char *name);
//   void copy(Queue &queue, const sluice_copy &copy);
//   void launch(Queue &queue, const sluice_launch &launch);
//
// A run half whose work is done when a call returns has `static constexpr bool immediate = true`. Any other needs
//
//   using Event = ...;                          made by `Event addEvent()`, else by its default constructor
//   void record(Queue &queue, Event &event);
//   void wait(Queue &queue, Event &event);
//   void synchronize(Event &event);
//   void synchronize(Queue &queue);
//
// A type requires its methods:
//
//   using Module = ...;        Module load(int32_t device, std::string_view blob);
//                              launch has a third parameter then, `Module *module`, which may be null
//   using Sequence = ...;      void beginCapture(Queue &queue);
//                              Sequence endCapture(Queue &queue);
//                              void replay(Queue &queue, Sequence &sequence);
//   using Group = ...;         default-constructible; the constructor is Half(const sluice_run_options &, Group *) then
//   using Communicator = ...;  see collectives.h
//
// Optional:
//
//   void remove(Queue &queue);                  before it is deleted; likewise for Event, Module and Sequence
//   void abandonCapture(Queue &queue);          called after a failed call for the queue
//   auto enter();                               its result, such as a lock, lives as long as each call
//   void clear(int32_t device, void *address);
//   void acquire();
//   void discard(Queue &queue, void *address, size_t bytes);
//   std::vector<sluice_copy_count> copyCounts();
//   std::pair<double, double> times(Event &event);
//   void noteTimes(Queue &queue, bool on);
//   void *allocateOnHost(size_t bytes);         with void releaseOnHost(void *address);
//   bool isDone(Event &event);
//   void synchronizeUntil(Event &event, const Deadline &deadline);   throws SLUICE_DEADLINE
//   void peerLink(int32_t from, int32_t to, sluice_peer_link &link);
//   void signal(Queue &queue, uint64_t *place, uint64_t number);
//   void waitForSignal(Queue &queue, const uint64_t *place, uint64_t number);
//   static constexpr bool takesHostQueues, lazy;
#pragma once

#include "sluice/backend/adapter/collectives.h"
#include "sluice/backend/adapter/handles.h"

#include <algorithm>
#include <chrono>
#include <string_view>

namespace sluice::backend {

/// The time at which a host stops waiting.
struct Deadline {
  using Clock = std::chrono::steady_clock;

  explicit Deadline(double seconds)
      : seconds(seconds), time(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                  std::chrono::duration<double>(std::min(seconds, kMostSeconds)))) {}

  static constexpr double kMostSeconds = 1e9; // limit that does not overflow the clock
  double seconds;                             // as passed by the caller
  Clock::time_point time;
};

/// An event of a run half whose work is done when a call returns.
struct PastEvent {};

template <typename Half> class RunCalls {
public:
  static constexpr sluice_backend_run table() {
    sluice_backend_run table{};
    table.struct_size = sizeof table;
    table.major_version = SLUICE_BACKEND_MAJOR;
    table.minor_version = SLUICE_BACKEND_MINOR;
    addDevices(table);
    addQueues(table);
    addEvents(table);
    addSequences(table);
    if constexpr (requires { typename Half::Communicator; })
      table.collectives = &collectivesTable<Half>;
    return table;
  }

private:
  using Calls = Handles<Half>;
  using Run = typename Calls::Run;
  using Queue = typename Half::Queue;

  static constexpr bool kHasEvents = requires { typename Half::Event; };
  static constexpr bool kIsImmediate = requires { requires Half::immediate; };
  static_assert(kHasEvents || kIsImmediate, "a run half whose work is not immediate needs the type Event");

  static auto &eventOf(sluice_event *event) {
    if constexpr (kHasEvents)
      return Calls::template part<typename Half::Event>(event);
    else
      return Calls::template part<PastEvent>(event);
  }

  //===- devices and memory ---------------------------------------------------------------------------------------===//

  static constexpr void addDevices(sluice_backend_run &table) {
    table.open = open;
    table.close = Run::template close<sluice_run>;
    table.last_error = Run::template lastError<sluice_run>;
    table.device_count = deviceCount;
    table.device_info = deviceInfo;
    table.allocate = allocate;
    table.release = release;
    if constexpr (requires { &Half::clear; })
      table.clear = clear;
    if constexpr (requires { &Half::acquire; })
      table.acquire = acquire;
    if constexpr (requires { typename Half::Group; }) {
      table.group_create = groupCreate;
      table.group_destroy = groupDestroy;
    }
    if constexpr (requires { typename Half::Module; }) {
      table.module_load = moduleLoad;
      table.module_unload = moduleUnload;
    }
    if constexpr (requires { &Half::allocateOnHost; }) {
      table.host_allocate = hostAllocate;
      table.host_release = hostRelease;
    }
    if constexpr (requires { &Half::copyCounts; })
      table.copy_counts = copyCounts;
    if constexpr (requires { &Half::peerLink; })
      table.peer_link = peerLink;
    table.immediate = kIsImmediate;
    table.takes_host_queues = requires { requires Half::takesHostQueues; };
    table.lazy = requires { requires Half::lazy; };
  }

  static sluice_status open(const sluice_run_options *options, sluice_run **run) noexcept {
    if constexpr (requires { typename Half::Group; }) {
      bool hasGroup = SLUICE_HAS_MEMBER(sluice_run_options, options, group);
      return Run::open(run, *options, reinterpret_cast<typename Half::Group *>(hasGroup ? options->group : nullptr));
    } else {
      return Run::open(run, *options);
    }
  }
  static sluice_status groupCreate(sluice_group **group) noexcept {
    return Calls::unreported([&] { *group = reinterpret_cast<sluice_group *>(new typename Half::Group()); });
  }
  static void groupDestroy(sluice_group *group) noexcept { delete reinterpret_cast<typename Half::Group *>(group); }

  static sluice_status deviceCount(sluice_run *run, int32_t *count) noexcept {
    return Calls::in(Run::of(run), [&](Half &half) { *count = half.deviceCount(); });
  }
  static sluice_status deviceInfo(sluice_run *run, int32_t device, sluice_device_info *info) noexcept {
    return Calls::in(Run::of(run), [&](Half &half) { half.describe(device, *info); });
  }
  static sluice_status peerLink(sluice_run *run, int32_t from, int32_t to, sluice_peer_link *link) noexcept {
    return Calls::in(Run::of(run), [&](Half &half) { half.peerLink(from, to, *link); });
  }
  static sluice_status allocate(sluice_run *run, int32_t device, size_t bytes, void **address) noexcept {
    return Calls::in(Run::of(run), [&](Half &half) { *address = half.allocate(device, bytes); });
  }
  static sluice_status release(sluice_run *run, int32_t device, void *address) noexcept {
    return Calls::in(Run::of(run), [&](Half &half) { half.release(device, address); });
  }
  static sluice_status clear(sluice_run *run, int32_t device, void *address) noexcept {
    return Calls::in(Run::of(run), [&](Half &half) { half.clear(device, address); });
  }
  static sluice_status acquire(sluice_run *run) noexcept {
    return Calls::in(Run::of(run), [](Half &half) { half.acquire(); });
  }
  static sluice_status hostAllocate(sluice_run *run, size_t bytes, void **address) noexcept {
    return Calls::in(Run::of(run), [&](Half &half) { *address = half.allocateOnHost(bytes); });
  }
  static sluice_status hostRelease(sluice_run *run, void *address) noexcept {
    return Calls::in(Run::of(run), [&](Half &half) { half.releaseOnHost(address); });
  }
  static sluice_status copyCounts(sluice_run *run, sluice_copy_count *counts, size_t countSize, size_t capacity,
                                  size_t *count) noexcept {
    return Calls::in(Run::of(run), [&](Half &half) {
      auto found = half.copyCounts();
      for (size_t number = 0; number < found.size() && number < capacity; ++number)
        sluice_copy_count_set(counts, countSize, number, &found[number]);
      *count = found.size();
    });
  }
  static sluice_status moduleLoad(sluice_run *run, int32_t device, const void *blob, size_t bytes,
                                  sluice_module **module) noexcept {
    return Calls::in(Run::of(run), [&](Half &half) {
      std::string_view image(static_cast<const char *>(blob), bytes);
      Calls::template add<typename Half::Module>(module, Run::of(run), [&] { return half.load(device, image); });
    });
  }
  static void moduleUnload(sluice_module *module) noexcept { Calls::template remove<typename Half::Module>(module); }

  //===- work -----------------------------------------------------------------------------------------------------===//

  static constexpr void addQueues(sluice_backend_run &table) {
    table.queue_create = queueCreate;
    table.queue_destroy = Calls::template remove<Queue, sluice_queue>;
    table.synchronize_queue = synchronizeQueue;
    table.copy = copy;
    table.launch = launch;
    if constexpr (requires { &Half::discard; })
      table.discard = discard;
    if constexpr (requires { &Half::noteTimes; })
      table.note_times = noteTimes;
    if constexpr (requires { &Half::signal; })
      table.signal = signal;
    if constexpr (requires { &Half::waitForSignal; })
      table.wait_for_signal = waitForSignal;
  }

  static sluice_status queueCreate(sluice_run *run, int32_t device, sluice_queue_kind kind, const char *name,
                                   sluice_queue **queue) noexcept {
    return Calls::in(Run::of(run), [&](Half &half) {
      Calls::template add<Queue>(queue, Run::of(run),
                                 [&]() -> Queue { return half.addQueue(device, kind, name ? name : ""); });
    });
  }
  static sluice_status synchronizeQueue(sluice_queue *queue) noexcept {
    return Calls::in(queue, [](Half &half, Queue &its) {
      if constexpr (kHasEvents)
        half.synchronize(its);
    });
  }
  static sluice_status copy(sluice_queue *queue, const sluice_copy *copy) noexcept {
    return Calls::in(queue, [&](Half &half, Queue &its) { half.copy(its, *copy); });
  }
  static sluice_status launch(sluice_queue *queue, const sluice_launch *launch) noexcept {
    return Calls::in(queue, [&](Half &half, Queue &its) {
      if constexpr (requires { typename Half::Module; }) {
        sluice_module *module = launch->module;
        half.launch(its, *launch, module ? &Calls::template part<typename Half::Module>(module).object : nullptr);
      } else {
        half.launch(its, *launch);
      }
    });
  }
  static sluice_status discard(sluice_queue *queue, void *address, size_t bytes) noexcept {
    return Calls::in(queue, [&](Half &half, Queue &its) { half.discard(its, address, bytes); });
  }
  static sluice_status noteTimes(sluice_queue *queue, int on) noexcept {
    return Calls::in(queue, [&](Half &half, Queue &its) { half.noteTimes(its, on != 0); });
  }
  static sluice_status signal(sluice_queue *queue, uint64_t *place, uint64_t number) noexcept {
    return Calls::in(queue, [&](Half &half, Queue &its) { half.signal(its, place, number); });
  }
  static sluice_status waitForSignal(sluice_queue *queue, const uint64_t *place, uint64_t number) noexcept {
    return Calls::in(queue, [&](Half &half, Queue &its) { half.waitForSignal(its, place, number); });
  }

  //===- events ---------------------------------------------------------------------------------------------------===//

  static constexpr void addEvents(sluice_backend_run &table) {
    table.event_create = eventCreate;
    table.event_destroy = eventDestroy;
    table.record = record;
    table.wait = wait;
    table.synchronize = synchronize;
    if constexpr (requires { &Half::times; })
      table.event_times = eventTimes;
    if constexpr (requires { &Half::isDone; })
      table.query = query;
    if constexpr (requires { &Half::synchronizeUntil; })
      table.synchronize_until = synchronizeUntil;
  }

  static sluice_status eventCreate(sluice_run *run, sluice_event **event) noexcept {
    return Calls::in(Run::of(run), [&](Half &half) {
      using Event = std::remove_reference_t<decltype(eventOf(nullptr).object)>;
      Calls::template add<Event>(event, Run::of(run), [&] {
        if constexpr (requires { half.addEvent(); })
          return half.addEvent();
        else
          return Event();
      });
    });
  }
  static void eventDestroy(sluice_event *event) noexcept {
    Calls::template remove<std::remove_reference_t<decltype(eventOf(nullptr).object)>>(event);
  }
  static sluice_status record(sluice_queue *queue, sluice_event *event) noexcept {
    return Calls::in(queue, [&](Half &half, Queue &its) {
      if constexpr (kHasEvents)
        half.record(its, eventOf(event).object);
    });
  }
  static sluice_status wait(sluice_queue *queue, sluice_event *event) noexcept {
    return Calls::in(queue, [&](Half &half, Queue &its) {
      if constexpr (kHasEvents)
        half.wait(its, eventOf(event).object);
    });
  }
  static sluice_status synchronize(sluice_event *event) noexcept {
    return Calls::in(*eventOf(event).run, [&](Half &half) {
      if constexpr (kHasEvents)
        half.synchronize(eventOf(event).object);
    });
  }
  static sluice_status eventTimes(sluice_event *event, double *start, double *end) noexcept {
    return Calls::in(*eventOf(event).run, [&](Half &half) {
      auto [first, last] = half.times(eventOf(event).object);
      *start = first;
      *end = last;
    });
  }
  static sluice_status query(sluice_event *event, int *done) noexcept {
    return Calls::in(*eventOf(event).run, [&](Half &half) { *done = half.isDone(eventOf(event).object); });
  }
  static sluice_status synchronizeUntil(sluice_event *event, double seconds) noexcept {
    Deadline deadline(seconds); // before `enter`, which may wait for a lock
    return Calls::in(*eventOf(event).run, [&](Half &half) { half.synchronizeUntil(eventOf(event).object, deadline); });
  }

  //===- sequences ------------------------------------------------------------------------------------------------===//

  static constexpr void addSequences(sluice_backend_run &table) {
    if constexpr (requires { typename Half::Sequence; }) {
      table.capture_begin = captureBegin;
      table.capture_end = captureEnd;
      table.replay = replay;
      table.sequence_destroy = sequenceDestroy;
    }
  }

  static sluice_status captureBegin(sluice_queue *queue) noexcept {
    return Calls::in(queue, [](Half &half, Queue &its) { half.beginCapture(its); });
  }
  static sluice_status captureEnd(sluice_queue *queue, sluice_sequence **sequence) noexcept {
    return Calls::in(queue, [&](Half &half, Queue &its) {
      Run &run = *Calls::template part<Queue>(queue).run;
      Calls::template add<typename Half::Sequence>(sequence, run, [&] { return half.endCapture(its); });
    });
  }
  static sluice_status replay(sluice_queue *queue, sluice_sequence *sequence) noexcept {
    return Calls::in(queue, [&](Half &half, Queue &its) {
      half.replay(its, Calls::template part<typename Half::Sequence>(sequence).object);
    });
  }
  static void sequenceDestroy(sluice_sequence *sequence) noexcept {
    Calls::template remove<typename Half::Sequence>(sequence);
  }
};

template <typename Half> inline constexpr sluice_backend_run runTable = RunCalls<Half>::table();

} // namespace sluice::backend
