// The C++ adapters of plugins: their tables, and the conversion of exceptions.
#include "sluice/backend/adapter.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using backend::Error;

static bool hasNoMemory = false; // operator new fails
static int allocations = 0;

void *operator new(size_t bytes) {
  ++allocations;
  void *memory = hasNoMemory ? nullptr : std::malloc(bytes);
  return memory ? memory : throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

namespace {

/// Exceptions that a call throws.
enum class Fault { None, Error, NoMemory, Standard, Unknown };

void raise(Fault fault) {
  if (fault == Fault::Error)
    throw Error(SLUICE_DEADLINE, "the device did not answer within a second, and may answer later");
  if (fault == Fault::NoMemory)
    throw std::bad_alloc();
  if (fault == Fault::Standard)
    throw std::out_of_range("there is no such element");
  if (fault == Fault::Unknown)
    throw 7;
}

/// A run half without optional methods.
struct Plain {
  static constexpr const char *name = "plain";
  static constexpr bool immediate = true;
  struct Queue {};

  explicit Plain(const sluice_run_options &options) {
    if (options.settings && *options.settings)
      throw Error(SLUICE_USAGE, "plain has no settings");
  }
  int32_t deviceCount() { return 1; }
  void describe(int32_t, sluice_device_info &) {}
  void *allocate(int32_t device, size_t) {
    raise(Fault(device));
    return this;
  }
  void release(int32_t, void *) {}
  Queue addQueue(int32_t, sluice_queue_kind, const char *) { return {}; }
  void copy(Queue &, const sluice_copy &copy) { raise(Fault(copy.from_device)); }
  void launch(Queue &, const sluice_launch &) {}
};

/// A run half with all of them; `calls` records those that the tests read.
struct Full {
  static constexpr const char *name = "full";
  static constexpr bool takesHostQueues = true, lazy = true;
  struct Group {};
  struct Queue {
    int captures = 0;
  };
  struct Event {};
  struct Module {
    std::string blob;
  };
  struct Sequence {};
  struct Communicator {
    static constexpr const char *order = "any", *noTreeSums = "no trees";
    struct Count {
      int64_t exchanges, bytes;
    };
    Communicator(Full &, const sluice_communicator_options &) {}
    void exchange(Queue &, const sluice_exchange &) {}
    void check() { raise(Fault::Error); }
    void abort() { raise(Fault::Standard); }
    void leave() {}
    Count count(int32_t) { return {3, 12}; }
  };

  Full(const sluice_run_options &, Group *) {}
  int32_t deviceCount() { return 1; }
  void describe(int32_t, sluice_device_info &) {}
  void *allocate(int32_t, size_t) { return this; }
  void release(int32_t, void *) {}
  Queue addQueue(int32_t, sluice_queue_kind, const char *) { return {}; }
  void remove(Queue &) { calls += "remove "; }
  void copy(Queue &, const sluice_copy &copy) { raise(Fault(copy.from_device)); }
  void launch(Queue &, const sluice_launch &, Module *module) { calls += module ? module->blob + " " : "no module "; }
  void record(Queue &, Event &) {}
  void wait(Queue &, Event &) {}
  void synchronize(Event &) {}
  void synchronize(Queue &) {}
  Module load(int32_t, std::string_view blob) { return {std::string(blob)}; }
  void beginCapture(Queue &queue) { queue.captures = 1; }
  Sequence endCapture(Queue &) { return {}; }
  void abandonCapture(Queue &queue) { calls += queue.captures ? "abandon " : "nothing to abandon "; }
  void replay(Queue &, Sequence &) {}
  void discard(Queue &, void *, size_t) {}
  std::vector<sluice_copy_count> copyCounts() { return {{0, 1, 2, 30}, {1, 0, 4, 50}}; }
  std::pair<double, double> times(Event &) { return {1.5, 2.5}; }
  void noteTimes(Queue &, bool) {}
  void *allocateOnHost(size_t) { return this; }
  void releaseOnHost(void *) {}
  bool isDone(Event &) { return true; }
  void synchronizeUntil(Event &, const backend::Deadline &) {}
  void peerLink(int32_t, int32_t, sluice_peer_link &) {}
  void signal(Queue &, uint64_t *, uint64_t) {}
  void waitForSignal(Queue &, const uint64_t *, uint64_t) {}
  sluice_unique_id uniqueId() { return {"id"}; }
  void beginExchanges() {}
  void endExchanges() {}

  std::string calls;
};

struct PlainSession {
  static constexpr const char *name = "plain";
  explicit PlainSession(const sluice_target_options &) {}
  void describe(sluice_target_info &) {}
  void supports(const sluice_kernel_view &) { throw Error(SLUICE_UNSUPPORTED, "plain has no kernels"); }
  void prepare(const sluice_kernel_view &, sluice_launch_info &) {}
};

struct FullSession : PlainSession {
  static constexpr const char *nativeAbi = "19.1";
  static constexpr bool wantsBytecode = true;
  using PlainSession::PlainSession;
  void proposeLayout(const sluice_kernel_view &, bool, unsigned, sluice_layout_proposal &) {}
  void lower(sluice_blob &) {}
  bool canFuse(const sluice_kernel_view &) { return true; }
  void cost(const sluice_kernel_view &, sluice_cost_estimate &) {}
};

struct PlainTransport {
  static constexpr const char *name = "plain";
  explicit PlainTransport(const sluice_transport_options &options) {
    if (options.size == 0)
      throw Error(SLUICE_USAGE, "there is no rank 0 of 0");
  }
  sluice_transfer *send(int32_t, const void *, size_t) { throw std::bad_alloc(); }
  sluice_transfer *receive(int32_t, void *, size_t) { return nullptr; }
  bool test(sluice_transfer *) { return true; }
  void abort() {}
};

constexpr const sluice_backend_run &plain = backend::runTable<Plain>;
constexpr const sluice_backend_run &full = backend::runTable<Full>;

/// A context with a queue.
template <typename Half> class Opened {
public:
  explicit Opened(const char *settings = "") {
    sluice_run_options options{sizeof options, nullptr, settings, nullptr};
    status = table.open(&options, &run);
    if (status == SLUICE_OK)
      table.queue_create(run, 0, SLUICE_QUEUE_COMPUTE, nullptr, &queue);
  }
  ~Opened() {
    if (queue)
      table.queue_destroy(queue);
    table.close(run);
  }

  std::string error() const { return table.last_error(run); }
  sluice_status copy(Fault fault) {
    sluice_copy copy{};
    copy.from_device = int32_t(fault);
    return table.copy(queue, &copy);
  }
  std::string &calls() { return backend::Opened<Half>::of(run).object->calls; }

  const sluice_backend_run &table = backend::runTable<Half>;
  sluice_run *run = nullptr;
  sluice_queue *queue = nullptr;
  sluice_status status;
};

//===- tables -----------------------------------------------------------------------------------------------------===//

TEST(Adapter, TablesHaveTheirSizesAndVersions) {
  EXPECT_EQ(plain.struct_size, sizeof(sluice_backend_run));
  EXPECT_EQ(plain.major_version, uint32_t(SLUICE_BACKEND_MAJOR));
  EXPECT_EQ(plain.minor_version, uint32_t(SLUICE_BACKEND_MINOR));
  EXPECT_EQ(full.collectives->struct_size, sizeof(sluice_backend_collectives));
  constexpr sluice_backend_compile compile = backend::compileTable<PlainSession>;
  EXPECT_EQ(compile.struct_size, sizeof(sluice_backend_compile));
  EXPECT_EQ(compile.major_version, uint32_t(SLUICE_BACKEND_MAJOR));
  EXPECT_EQ(compile.minor_version, uint32_t(SLUICE_BACKEND_MINOR));
  constexpr sluice_transport_library transport = backend::transportTable<PlainTransport>;
  EXPECT_EQ(transport.struct_size, sizeof(sluice_transport_library));
  EXPECT_EQ(transport.major_version, uint32_t(SLUICE_TRANSPORT_MAJOR));
  EXPECT_EQ(transport.minor_version, uint32_t(SLUICE_TRANSPORT_MINOR));
  constexpr sluice_backend both = backend::backendTable("plain", "for tests", nullptr, &plain);
  EXPECT_EQ(both.struct_size, sizeof(sluice_backend));
  EXPECT_EQ(both.major_version, uint32_t(SLUICE_BACKEND_MAJOR));
  EXPECT_EQ(both.minor_version, uint32_t(SLUICE_BACKEND_MINOR));
  EXPECT_EQ(both.run, &plain);
}

TEST(Adapter, AbsentMembersOfARunHalfAreNull) {
  EXPECT_TRUE(plain.open && plain.close && plain.last_error && plain.device_count && plain.device_info);
  EXPECT_TRUE(plain.allocate && plain.release && plain.queue_create && plain.queue_destroy && plain.copy);
  EXPECT_TRUE(plain.event_create && plain.event_destroy && plain.record && plain.wait && plain.synchronize);
  EXPECT_TRUE(plain.synchronize_queue && plain.launch);
  EXPECT_FALSE(plain.module_load || plain.module_unload || plain.discard || plain.copy_counts || plain.event_times);
  EXPECT_FALSE(plain.collectives || plain.capture_begin || plain.capture_end || plain.replay || plain.sequence_destroy);
  EXPECT_FALSE(plain.host_allocate || plain.host_release || plain.query || plain.synchronize_until || plain.peer_link);
  EXPECT_FALSE(plain.group_create || plain.group_destroy || plain.note_times || plain.signal || plain.wait_for_signal);
  EXPECT_EQ(plain.immediate, 1);
  EXPECT_EQ(plain.takes_host_queues, 0);
  EXPECT_EQ(plain.lazy, 0);
}

TEST(Adapter, PresentMembersOfARunHalfAreSet) {
  EXPECT_TRUE(full.module_load && full.module_unload && full.discard && full.copy_counts && full.event_times);
  EXPECT_TRUE(full.collectives && full.capture_begin && full.capture_end && full.replay && full.sequence_destroy);
  EXPECT_TRUE(full.host_allocate && full.host_release && full.query && full.synchronize_until && full.peer_link);
  EXPECT_TRUE(full.group_create && full.group_destroy && full.note_times && full.signal && full.wait_for_signal);
  EXPECT_EQ(full.immediate, 0);
  EXPECT_EQ(full.takes_host_queues, 1);
  EXPECT_EQ(full.lazy, 1);
  EXPECT_TRUE(full.collectives->counts);
  EXPECT_STREQ(full.collectives->order, "any");
  EXPECT_STREQ(full.collectives->no_tree_sums, "no trees");
}

TEST(Adapter, AbsentMembersOfACompileHalfAreNull) {
  constexpr sluice_backend_compile none = backend::compileTable<PlainSession>, all = backend::compileTable<FullSession>;
  EXPECT_TRUE(none.begin && none.end && none.last_error && none.describe && none.supports && none.prepare);
  EXPECT_FALSE(none.propose_layout || none.lower || none.can_fuse || none.cost || none.native_abi);
  EXPECT_EQ(none.wants_bytecode, 0);
  EXPECT_TRUE(all.propose_layout && all.lower && all.can_fuse && all.cost);
  EXPECT_STREQ(all.native_abi, "19.1");
  EXPECT_EQ(all.wants_bytecode, 1);
}

//===- errors -----------------------------------------------------------------------------------------------------===//

TEST(Adapter, AnErrorIsItsStatusAndText) {
  Opened<Plain> context;
  EXPECT_EQ(context.copy(Fault::Error), SLUICE_DEADLINE);
  EXPECT_EQ(context.error(), "the device did not answer within a second, and may answer later");
}

TEST(Adapter, LackOfMemoryIsExhausted) {
  Opened<Plain> context;
  EXPECT_EQ(context.copy(Fault::NoMemory), SLUICE_EXHAUSTED);
  EXPECT_EQ(context.error(), "plain: the host is out of memory");
}

TEST(Adapter, ForeignExceptionsAreInternal) {
  Opened<Plain> context;
  EXPECT_EQ(context.copy(Fault::Standard), SLUICE_INTERNAL);
  EXPECT_EQ(context.error(), "there is no such element");
  EXPECT_EQ(context.copy(Fault::Unknown), SLUICE_INTERNAL);
  EXPECT_EQ(context.error(), "plain: an exception of an unknown type");
}

TEST(Adapter, ATextStaysUntilTheNextFailure) {
  Opened<Plain> context;
  context.copy(Fault::Standard);
  EXPECT_EQ(context.copy(Fault::None), SLUICE_OK);
  EXPECT_EQ(context.error(), "there is no such element");
}

TEST(Adapter, TextsAreStoredWithoutMemory) {
  backend::LastError error("plain");
  Error thrown(SLUICE_INVALID, "a text that is longer than strings keep without memory");
  hasNoMemory = true;
  sluice_status status = backend::guarded(error, [&] { throw thrown; });
  hasNoMemory = false;
  EXPECT_EQ(status, SLUICE_INVALID);
  EXPECT_STREQ(error.text(), "a text that is longer than strings keep without memory");
}

TEST(Adapter, ACallThatSucceedsAllocatesNothing) {
  Opened<Plain> context;
  int before = allocations;
  EXPECT_EQ(context.copy(Fault::None), SLUICE_OK);
  EXPECT_EQ(allocations, before);
}

TEST(Adapter, WhatCannotBeOpenedHasAReasonAndIsClosed) {
  Opened<Plain> context("speed=high");
  EXPECT_EQ(context.status, SLUICE_USAGE);
  EXPECT_EQ(context.error(), "plain has no settings");
}

TEST(Adapter, WithoutMemoryForTheHandleThereIsNone) {
  hasNoMemory = true;
  sluice_session *session = nullptr;
  sluice_target_options options{};
  sluice_status status = backend::compileTable<PlainSession>.begin(&options, &session);
  hasNoMemory = false;
  EXPECT_EQ(status, SLUICE_EXHAUSTED);
  EXPECT_EQ(session, nullptr);
}

TEST(Adapter, ASessionReportsItsReason) {
  const sluice_backend_compile &table = backend::compileTable<PlainSession>;
  sluice_session *session = nullptr;
  sluice_target_options options{};
  ASSERT_EQ(table.begin(&options, &session), SLUICE_OK);
  sluice_kernel_view view{};
  EXPECT_EQ(table.supports(session, &view), SLUICE_UNSUPPORTED);
  EXPECT_STREQ(table.last_error(session), "plain has no kernels");
  table.end(session);
}

TEST(Adapter, ATransportReportsItsReason) {
  const sluice_transport_library &table = backend::transportTable<PlainTransport>;
  sluice_transport *refused = nullptr, *opened = nullptr;
  sluice_transport_options options{};
  EXPECT_EQ(table.open(&options, &refused), SLUICE_USAGE);
  EXPECT_STREQ(table.last_error(refused), "there is no rank 0 of 0");
  table.abort(refused);
  table.close(refused);
  options.size = 1;
  ASSERT_EQ(table.open(&options, &opened), SLUICE_OK);
  sluice_transfer *transfer = nullptr;
  EXPECT_EQ(table.send(opened, 0, nullptr, 0, &transfer), SLUICE_EXHAUSTED);
  EXPECT_STREQ(table.last_error(opened), "plain: the host is out of memory");
  table.close(opened);
}

//===- calls ------------------------------------------------------------------------------------------------------===//

TEST(Adapter, AFailureInAQueueAbandonsItsCapture) {
  Opened<Full> context;
  EXPECT_EQ(full.capture_begin(context.queue), SLUICE_OK);
  EXPECT_EQ(context.copy(Fault::None), SLUICE_OK);
  EXPECT_EQ(context.calls(), "");
  EXPECT_EQ(context.copy(Fault::NoMemory), SLUICE_EXHAUSTED);
  EXPECT_EQ(context.calls(), "abandon ");
}

TEST(Adapter, ALaunchIsGivenItsModule) {
  Opened<Full> context;
  sluice_launch launch{};
  EXPECT_EQ(full.module_load(context.run, 0, "code", 4, &launch.module), SLUICE_OK);
  EXPECT_EQ(full.launch(context.queue, &launch), SLUICE_OK);
  full.module_unload(launch.module);
  launch.module = nullptr;
  EXPECT_EQ(full.launch(context.queue, &launch), SLUICE_OK);
  EXPECT_EQ(context.calls(), "code no module ");
}

TEST(Adapter, CountsAreCutOffAtTheCapacity) {
  Opened<Full> context;
  sluice_copy_count counts[1] = {};
  size_t count = 0;
  EXPECT_EQ(full.copy_counts(context.run, counts, sizeof *counts, 1, &count), SLUICE_OK);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(counts[0].bytes, 30);
}

TEST(Adapter, AnAbortLeavesTheTextOfItsContext) {
  Opened<Full> context;
  sluice_communicator_options options{};
  sluice_communicator *communicator = nullptr;
  ASSERT_EQ(full.collectives->init(context.run, &options, &communicator), SLUICE_OK);
  EXPECT_EQ(full.collectives->error(communicator), SLUICE_DEADLINE);
  full.collectives->abort(communicator);
  EXPECT_EQ(context.error(), "the device did not answer within a second, and may answer later");
  full.collectives->destroy(communicator);
}

TEST(Adapter, EventsOfImmediateWorkAreDone) {
  Opened<Plain> context;
  sluice_event *event = nullptr;
  EXPECT_EQ(plain.event_create(context.run, &event), SLUICE_OK);
  EXPECT_EQ(plain.record(context.queue, event), SLUICE_OK);
  EXPECT_EQ(plain.wait(context.queue, event), SLUICE_OK);
  EXPECT_EQ(plain.synchronize(event), SLUICE_OK);
  plain.event_destroy(event);
}

} // namespace
