// The plan of an artifact as structs: see PLAN.md for the meaning of every field.
#pragma once

#include "runtime/plan/DType.h"
#include "runtime/plan/Layout.h"
#include "sluice/runtime/artifact.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sluice::runtime {

/// Of the text of a plan; incremented when its meaning changes.
inline constexpr int64_t planFormat = 9;

/// What the slots of a device's arenas begin at multiples of: a power of two between these.
inline constexpr int64_t leastAlignment = 64, mostAlignment = 4096;

/// A slot for a device of a backend: which of the backend's devices fills it is decided when the plan is loaded. The
/// first is the host.
struct Device {
  std::string name, backend;
  /// Of each replica: the number at its backend of the device that fills it if nothing else is said.
  std::vector<int32_t> compiledFor{0};
  std::string settings{}; ///< of the compile half that made its kernels, as they were given: "arch=sm_90,tf32=on"
  int64_t alignment = leastAlignment; ///< of its slots

  bool operator==(const Device &) const = default;
};

struct Arena {
  std::string name;
  size_t device = 0;
  int64_t bytes = 0;

  bool isConstant() const { return name == "constants"; }
  bool operator==(const Arena &) const = default;
};

/// A memory slot; one with a stride exists as often as calls may be in flight.
struct Slot {
  size_t arena = 0;
  int64_t offset = 0, stride = 0;

  /// Of copy number `copy`, which a call finds by `Plan::copyOf`.
  int64_t offsetOf(int64_t copy) const { return offset + copy * stride; }
  bool operator==(const Slot &) const = default;
};

enum class QueueKind { compute, copy, communication };
inline constexpr std::string_view queueKindNames[] = {"compute", "copy", "communication"};

struct Queue {
  std::string name;
  size_t device = 0;
  QueueKind kind = QueueKind::compute;

  bool operator==(const Queue &) const = default;
};

enum class StateKind {
  parameter,
  slot,
  statistic,
  hyperparameter,
  step,
  share, ///< what a replica must know of a call's rows: the runtime sets it before each call, and nothing keeps it
  accumulator, ///< what the parts of a call hand on, which nothing keeps either; it begins as what is neutral
  key,         ///< of the random numbers of the next training step
  constant,    ///< data that nothing writes nor keeps: the artifact brings it
  cache, ///< what calls of entry points of the model's own leave to later ones, which nothing keeps; it begins as zero
};
inline constexpr std::string_view stateKindNames[] = {
    "parameter", "slot", "statistic", "hyperparameter", "step", "share", "accumulator", "key", "constant", "cache"};
/// The states of kind `share`: the rows of a call over all replicas, and those in the replicas before this one; and the
/// replica's number.
inline constexpr std::string_view globalRowsName = "global_rows", firstRowName = "first_row", replicaName = "replica";
inline std::string_view nameOf(StateKind kind) { return stateKindNames[static_cast<size_t>(kind)]; }

/// How several values become one. A sum is added in an order that the backend says, a tree sum in a balanced tree.
enum class Reduction { sum, max, treeSum };
inline constexpr std::string_view reductionNames[] = {"sum", "max", "tree_sum"};

/// The elements that a state begins with where they are data: in the artifact's constants, or in the plan's file of values.
struct InitialData {
  uint32_t crc32 = 0;                 ///< of the bytes
  std::optional<int64_t> offset = {}; ///< in the constants, as the state's logical bytes

  bool operator==(const InitialData &) const = default;
};

struct State {
  std::string name;
  StateKind kind = StateKind::parameter;
  std::string of; ///< the parameter of a slot, or of the gradient that is accumulated; empty otherwise
  DType dtype = DType::f32;
  Shape shape; ///< of all of it
  /// Replicas keep one each: vectors of its elements in row-major order, one behind another.
  int64_t shards = 1;
  Layout layout; ///< of what one replica keeps
  Slot slot;
  int64_t bytes = 0;                    ///< physical, padding included
  std::vector<Slot> mirrors;            ///< what other devices read
  Reduction reduction = Reduction::sum; ///< of an accumulator: what adds to it
  std::vector<std::string> aliases;     ///< other names of a parameter
  std::optional<InitialData> initial;   ///< instead of what `init` makes

  int64_t elements() const { return elementsOf(shape); }
  int64_t logicalBytes() const { return elements() * static_cast<int64_t>(sizeOf(dtype)); }
  bool isSharded() const { return shards > 1; }
  /// Of what one replica keeps: of a shard, of which the last ones may have more elements than are left.
  Shape keptShape() const { return isSharded() ? Shape{(elements() + shards - 1) / shards} : shape; }
  /// What row i of a training step leaves to row i of the next.
  bool isCarried() const { return kind == StateKind::slot && of.empty(); }
  bool isWeight() const { return kind == StateKind::parameter || kind == StateKind::statistic; }
  /// Whether checkpoints hold it.
  bool isKept() const {
    return kind != StateKind::share && kind != StateKind::accumulator && kind != StateKind::constant &&
           kind != StateKind::cache;
  }
  bool operator==(const State &) const = default;
};

struct Stage {
  size_t function = 0;
  int64_t tasks = 1, rowsPerTask = 0;

  /// The number of tasks of a call with `rows` rows.
  int64_t tasksFor(int64_t rows) const {
    return rowsPerTask == 0 ? tasks : tasks * ((rows + rowsPerTask - 1) / rowsPerTask);
  }
  bool operator==(const Stage &) const = default;
};

struct Cost {
  double flops = 0, flopsPerRow = 0, bytes = 0, bytesPerRow = 0;

  double flopsFor(int64_t rows) const { return flops + flopsPerRow * static_cast<double>(rows); }
  double bytesFor(int64_t rows) const { return bytes + bytesPerRow * static_cast<double>(rows); }
  bool operator==(const Cost &) const = default;
};

/// Either host code in stages, or a function of the device's backend or of a module.
struct Kernel {
  std::string name;
  size_t device = 0;
  std::vector<std::string> ops;
  std::vector<Stage> stages;
  std::string function;              ///< empty for host code
  std::vector<std::byte> parameters; ///< handed to the function
  std::optional<size_t> module;      ///< that holds the function; none: the backend itself
  Cost cost;
  double lanes = 1; ///< share of the vector lanes that the shape can fill
  std::string kind; ///< kernels of a kind reach a like share of a device's peak

  bool operator==(const Kernel &) const = default;
};

/// A backend's device code: a section of the artifact, loaded on each device that has kernels in it.
struct Module {
  std::string backend;
  size_t section = 0;

  bool operator==(const Module &) const = default;
};

/// The end of action number `action` of the same list, in the call made `calls` calls earlier; in a loop: the iteration.
struct Wait {
  size_t action = 0;
  int64_t calls = 0;

  bool operator==(const Wait &) const = default;
};

/// An input or output of an entry point. It lies on the host.
struct Value {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  int rowsDim = -1; ///< the dimension that counts rows, or -1
  Slot slot;
  int64_t bytes = 0;
  size_t entry = 0;               ///< whose it is: the entry's number in the plan
  int64_t below = 0;              ///< of an input of indices, such as labels: each is from 0 to below this; 0 of others
  std::optional<int64_t> ignored; ///< a number that indices may be besides: there is none
  std::vector<Wait> waits;        ///< of an input: what must be done before the host writes it for a call

  /// Whether an element of an input of indices may be this number, and what it may be: "10 classes 0 to 9".
  bool takesIndex(double number) const;
  std::string indicesText() const;
  /// The shape of a call with `rows` rows, where `capacity` is the plan's.
  Shape shapeFor(int64_t rows, int64_t capacity) const;
  bool operator==(const Value &) const = default;
};

enum class Access { read, write, readWrite };
inline constexpr std::string_view accessNames[] = {"r", "w", "rw"};

struct Buffer {
  Slot slot;
  int64_t bytes = 0; ///< of the whole buffer, whatever the rows
  Access access = Access::read;

  bool isWritten() const { return access != Access::read; }
  bool operator==(const Buffer &) const = default;
};

struct Launch {
  std::string name, source; ///< the name is for messages and traces
  size_t kernel = 0;
  std::vector<Buffer> buffers;

  bool operator==(const Launch &) const = default;
};

/// What moves between two devices, and when.
struct Copy {
  enum class When {
    step,  ///< in every call
    stale, ///< at the start of a call, if the mirror that it fills is stale
    asked, ///< when the host reads the output that it fills; no part of the call
  };
  static constexpr std::string_view whenNames[] = {"step", "stale", "asked"};

  std::string value, reason, source;
  Slot from, to;
  int64_t bytes = 0, bytesPerRow = 0;
  int64_t capacityBytes = 0; ///< of the whole buffer
  When when = When::step;

  int64_t bytesFor(int64_t rows) const { return bytes + bytesPerRow * rows; }
  bool operator==(const Copy &) const = default;
};

/// Two accelerators give each other a value, at the same time. Copy number i is done in queue number i of the action.
struct Exchange {
  std::array<Copy, 2> copies;

  bool operator==(const Exchange &) const = default;
};

/// What all replicas do together: each sends, and each receives what all have sent, or the reduction of it. In place is
/// where `send` and `receive` lie in one slot; then an all-gather finds what the replica sends, and a reduce-scatter puts
/// what it receives, at the replica's place in it.
struct Collective {
  enum class Kind { allReduce, broadcast, allGather, reduceScatter };
  static constexpr std::string_view kindNames[] = {"all_reduce", "broadcast", "all_gather", "reduce_scatter"};

  std::string name, source; ///< for messages and traces
  Kind kind = Kind::allReduce;
  Reduction reduction = Reduction::sum; ///< of all-reduce and reduce-scatter
  DType dtype = DType::f32;
  int64_t count = 0;    ///< elements; of all-gather and reduce-scatter: of each replica
  int32_t root = 0;     ///< of a broadcast: the replica that sends
  Buffer send, receive; ///< read and written

  /// Whether each replica has elements of its own in what is gathered or scattered.
  bool isShared() const { return kind == Kind::allGather || kind == Kind::reduceScatter; }
  bool isInPlace() const { return send.slot == receive.slot; }
  /// Of what one replica brings, or of its part.
  int64_t partBytes() const { return count * static_cast<int64_t>(sizeOf(dtype)); }
  /// Of all that is reduced, broadcast, gathered or scattered.
  int64_t bytesFor(int64_t replicas) const { return isShared() ? partBytes() * replicas : partBytes(); }
  bool operator==(const Collective &) const = default;
};

struct Action;

/// Actions that happen `count` times, one time after another. Their waits for earlier turns are for the iteration before.
struct Loop {
  std::string name, source;
  int64_t count = 1;
  std::optional<Slot> condition; ///< a boolean on the host: where it is 0, nothing happens
  std::vector<Action> actions;

  bool operator==(const Loop &other) const;
};

using ActionWork = std::variant<Launch, Copy, Exchange, Loop, Collective>;

/// It starts when all its queues have come to it and what it waits for is done; all of them go on when it is done.
struct Action {
  ActionWork work;
  std::vector<size_t> queues; ///< that it keeps busy, at least one
  std::vector<Wait> waits;
  std::vector<Buffer> lastUses; ///< buffers without a later reader, until they are written again

  const Launch *launch() const { return std::get_if<Launch>(&work); }
  const Copy *copy() const { return std::get_if<Copy>(&work); }
  const Exchange *exchange() const { return std::get_if<Exchange>(&work); }
  const Loop *loop() const { return std::get_if<Loop>(&work); }
  const Collective *collective() const { return std::get_if<Collective>(&work); }

  /// What moves between devices in it: one copy, the two of an exchange, none of others.
  std::span<const Copy> copies() const;
  /// What it touches; a loop: what the actions in it touch.
  std::vector<Buffer> buffers() const;
  bool isAsked() const { return copy() && copy()->when == Copy::When::asked; }
  bool operator==(const Action &) const = default;
};

/// How many loops may be in each other.
inline constexpr size_t mostLoopDepth = 6;

/// An action of a tree, and how often a call does it.
struct ListedAction {
  const Action *action;
  int64_t times;
};

/// All actions of a tree, a loop before what is in it: an action's number is its place here. Whoever looks at every
/// action goes over this list.
std::vector<ListedAction> listActions(const std::vector<Action> &actions);

/// How many calls of an entry point may be in flight at most.
inline constexpr int64_t mostInFlight = 16;

/// So many replicas are as many as processes are launched.
inline constexpr int64_t mostReplicas = 1024, replicasOfLaunch = 0;

/// How many microbatches a call may have at most.
inline constexpr int64_t mostMicrobatches = 1024;

/// What is done for each microbatch of a call, or once: the actions of an entry of its own.
struct CallPart {
  enum class When { each, once };
  static constexpr std::string_view whenNames[] = {"each", "once"};

  size_t entry = 0;
  When when = When::each;

  bool operator==(const CallPart &) const = default;
};

struct Entry {
  std::string name;
  std::vector<Value> inputs, outputs;
  std::vector<Action> actions;
  std::vector<int64_t> peakBytes; ///< of each device: its states, and this entry's transient memory
  /// That its calls are done in, one after another; then it has no actions of its own, and its inputs and outputs with
  /// rows lie where the host holds those of a whole call.
  std::vector<CallPart> parts;
  bool isPart = false; ///< of another entry, so that nobody calls it by itself

  std::vector<ListedAction> allActions() const { return listActions(actions); }
  /// The launches among all actions, in their order; one in a loop is there once.
  std::vector<const Launch *> launches() const;

  /// Whether an input or output has a batch dimension; without one, a call's number of rows means nothing.
  bool hasRows() const;
  const Value *findInput(std::string_view name) const;
  const Value *findOutput(std::string_view name) const;
  bool operator==(const Entry &) const = default;
};

/// A link as the compiler was told of it.
struct GivenLink {
  double bytesPerSecond = 0, latency = 0;

  bool operator==(const GivenLink &) const = default;
};

struct Build {
  std::string compiler, cpu, fp;
  std::string precision = "f32"; // what products of f32 are computed in
  int64_t vectorBits = 0;
  std::vector<std::string> needs; // extensions of the instruction set, "avx2", that the host must have

  bool operator==(const Build &) const = default;
};

struct Plan {
  std::string model;
  std::string data;     ///< the default data, a path from the executable; empty if the plan names none
  std::string backends; ///< where the backends of its devices were installed; empty if the plan does not say
  std::string values;   ///< a safetensors file of what states begin with, a path from the artifact's file; empty: none
  /// Whether `train` shuffles the rows; empty if the model does not specify it.
  std::optional<bool> shuffle;
  Build build;
  /// Copies of the program that run together, each on a share of a call's rows; replicasOfLaunch until that is known.
  int64_t replicas = 1;
  int64_t batch = 0;         ///< rows that one call may have, over all replicas; 0 if no dimension is symbolic
  int64_t microbatches = 1;  ///< that a replica does its rows of a call in at most, one after another
  int64_t logicalShards = 0; ///< that the rows of a call are cut into for any number of replicas; 0: as these have them
  int64_t capacity = 0;      ///< rows of one replica in one call; of several microbatches: in one of them
  int64_t leastTrainingRows = 1; ///< minimum rows of a call so that batch norm trains on several values per channel
  int64_t inFlight = 1;          ///< calls of an entry point that may be under way at once
  /// Between the devices of replicas, if the compiler was told: what virtual accelerators have unless they are told
  /// otherwise.
  std::optional<GivenLink> replicaLink;
  std::vector<Device> devices;
  std::vector<Arena> arenas;
  std::vector<Queue> queues;
  std::vector<State> states;
  std::vector<Kernel> kernels;
  std::vector<Module> modules;
  std::vector<Entry> entries;

  /// Of what callers may name: no part of another.
  const Entry *findEntry(std::string_view name) const;
  std::vector<std::string> entryNames() const;
  const State *findState(std::string_view name) const;
  /// The entries that do the work of a call, in their order: its parts, or the entry itself.
  std::vector<const Entry *> partsOf(const Entry &entry) const;
  /// How often a call of `entry` does each of those, where each replica has so many microbatches.
  std::vector<int64_t> timesOf(const Entry &entry, int64_t microbatches) const;
  /// In how many microbatches a call with `rows` rows is done: those of the replica that has most of them. One if it is
  /// not done in parts.
  int64_t microbatchesFor(const Entry &entry, int64_t rows) const;
  /// The rows that an input or output has room for where it lies.
  int64_t roomOf(const Value &value) const;
  /// All actions of the parts of an entry, one part's behind the other's, and how often a call does them.
  std::vector<ListedAction> actionsOf(const Entry &entry, int64_t microbatches) const;
  /// Whether some entry point has its replicas exchange.
  bool hasCollectives() const;

  /// The number of elements of all parameters.
  int64_t parameterCount() const;
  /// The largest peak of the entry points on a device.
  int64_t peakBytes(size_t device) const;
  /// Whether everything runs on the host.
  bool isHostOnly() const { return devices.size() == 1; }
  /// Which copy of what has a stride call number `call` uses.
  int64_t copyOf(int64_t call) const { return call % inFlight; }
  /// Whether two buffers touch, in any two of the calls in flight.
  bool overlap(const Buffer &a, const Buffer &b) const;
  /// Whether `action` writes into a buffer that lies at `slot`; for slots with a stride, in any two of the calls in
  /// flight.
  bool writes(const Action &action, const Slot &slot, int64_t bytes) const;
  size_t deviceOf(const Slot &slot) const { return arenas[slot.arena].device; }
  int64_t alignmentIn(size_t arena) const { return devices[arenas[arena].device].alignment; }
  /// A hash of the name, kind, type and shape of every state that is kept: what a checkpoint must agree with.
  uint64_t stateHash() const;
  bool operator==(const Plan &) const = default;
};

/// Reads and checks the plan of `artifact`: afterwards every index and every range in it is sound.
Plan readPlan(const sluice_artifact &artifact);

} // namespace sluice::runtime
