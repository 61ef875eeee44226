// The plan of an artifact as structs; PLAN.md defines every field.
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

/// Version of the plan's text; incremented when its meaning changes.
inline constexpr int64_t planFormat = 11;

/// Bounds of the alignment of slots in a device's arenas, a power of two.
inline constexpr int64_t leastAlignment = 64, mostAlignment = 4096;

/// A device slot. The device that fills it is selected when the plan is loaded. The first slot is the host.
struct Device {
  std::string name, backend;
  /// For each replica: the backend's number of the default device.
  std::vector<int32_t> compiledFor{0};
  std::string settings{}; ///< settings of the compile half that made its kernels, as given: "arch=sm_90,library=all"
  int64_t alignment = leastAlignment; ///< alignment of its slots

  bool operator==(const Device &) const = default;
};

struct Arena {
  std::string name;
  size_t device = 0;
  int64_t bytes = 0;

  bool isConstant() const { return name == "constants"; }
  bool operator==(const Arena &) const = default;
};

/// A memory slot. A slot with a stride has one copy per call in flight.
struct Slot {
  size_t arena = 0;
  int64_t offset = 0, stride = 0;

  /// Offset of copy `copy`; `Plan::copyOf` maps calls to copies.
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
  share,       ///< a replica's position in a call's rows: set by the runtime before each call, not saved
  accumulator, ///< values passed between the parts of a call, not saved; begins as the neutral element
  key,         ///< key of the next training step's random numbers
  constant,    ///< read-only data in the artifact, not saved
  cache,       ///< values that calls of user-defined entry points pass to later calls, not saved; begins as zero
  derived,     ///< computed from `sources` by a derivation, not saved
  scales,      ///< scales of the parameter `of`, which is stored in blocks of bytes
};
inline constexpr std::string_view stateKindNames[] = {"parameter", "slot",  "statistic",   "hyperparameter",
                                                      "step",      "share", "accumulator", "key",
                                                      "constant",  "cache", "derived",     "scales"};
/// Names of the states of kind `share`: the rows of a call over all replicas, the rows before those of this replica and
/// microbatch, and the replica's number.
inline constexpr std::string_view globalRowsName = "global_rows", firstRowName = "first_row", replicaName = "replica";
inline std::string_view nameOf(StateKind kind) { return stateKindNames[static_cast<size_t>(kind)]; }

/// Reduction of several values. The backend defines the order of a sum; a tree sum uses a balanced tree.
enum class Reduction { sum, max, treeSum };
inline constexpr std::string_view reductionNames[] = {"sum", "max", "tree_sum"};

/// Initial elements of a state with data: in the artifact's constants, or in the plan's file of values.
struct InitialData {
  uint32_t crc32 = 0;                 ///< CRC-32 of the bytes
  std::optional<int64_t> offset = {}; ///< offset of the state's logical bytes in the constants

  bool operator==(const InitialData &) const = default;
};

struct State {
  std::string name;
  StateKind kind = StateKind::parameter;
  std::string of; ///< the parameter of an optimizer slot, an accumulated gradient or scales; else empty
  DType dtype = DType::f32;
  Shape shape; ///< shape of the whole state
  /// Number of shards, one per replica: consecutive vectors of its elements in row-major order.
  int64_t shards = 1;
  Layout layout; ///< layout of one replica's part
  Slot slot;
  int64_t bytes = 0;                    ///< physical size, including padding
  std::vector<Slot> mirrors;            ///< copies that other devices read
  Reduction reduction = Reduction::sum; ///< reduction of an accumulator's contributions
  std::vector<std::string> aliases;     ///< other names of a parameter
  std::optional<InitialData> initial;   ///< replaces the value from `init`
  std::vector<size_t> sources;          ///< of a derived state: the numbers of the states that it is computed from
  size_t derivation = 0;                ///< of a derived state: the entry that computes it

  int64_t elements() const { return elementsOf(shape); }
  int64_t logicalBytes() const { return elements() * static_cast<int64_t>(sizeOf(dtype)); }
  bool isSharded() const { return shards > 1; }
  /// Shape of one replica's part. The last shards may be padded beyond the state's elements.
  Shape keptShape() const { return isSharded() ? Shape{(elements() + shards - 1) / shards} : shape; }
  /// Whether row i of a training step passes the state to row i of the next step.
  bool isCarried() const { return kind == StateKind::slot && of.empty(); }
  bool isWeight() const { return kind == StateKind::parameter || kind == StateKind::statistic; }
  /// Whether a derivation computes it from other states.
  bool isDerived() const { return kind == StateKind::derived; }
  /// Whether checkpoints contain it.
  bool isKept() const {
    return kind != StateKind::share && kind != StateKind::accumulator && kind != StateKind::constant &&
           kind != StateKind::cache && !isDerived();
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

/// Either host code in stages, or a function of a module or of the device's backend.
struct Kernel {
  std::string name;
  size_t device = 0;
  std::vector<std::string> ops;
  std::vector<Stage> stages;
  std::string function;              ///< empty for host code
  std::vector<std::byte> parameters; ///< passed to the function
  std::optional<size_t> module;      ///< the function's module; none: the backend itself
  Cost cost;
  double lanes = 1; ///< utilized share of the vector lanes for this shape
  std::string kind; ///< kernels of a kind reach a similar share of a device's peak

  bool operator==(const Kernel &) const = default;
};

/// A backend's device code: a section of the artifact, loaded on each device that uses its kernels.
struct Module {
  std::string backend;
  size_t section = 0;

  bool operator==(const Module &) const = default;
};

/// Waits for action number `action` of the same list, in the call `calls` calls earlier; in a loop, in the iteration
/// `calls` iterations earlier.
struct Wait {
  size_t action = 0;
  int64_t calls = 0;

  bool operator==(const Wait &) const = default;
};

/// An input or output of an entry point, in memory of the host or, if nothing copies it, of an accelerator.
struct Value {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  int rowsDim = -1; ///< the dimension that counts rows, or -1
  Layout layout;    ///< row-major, except in functional models
  Slot slot;
  int64_t bytes = 0;
  size_t entry = 0;               ///< number of its entry in the plan
  int64_t below = 0;              ///< exclusive upper bound of an input's indices, such as labels; 0 for other inputs
  std::optional<int64_t> ignored; ///< an index that means "no index"
  bool isUnread = false;          ///< an input that nothing reads, so that a call needs no value for it
  std::vector<Wait> waits;        ///< of an input: work that must complete before the host writes it for a call

  /// Whether an input of indices accepts this number.
  bool takesIndex(double number) const;
  /// The accepted range: "10 classes 0 to 9".
  std::string indicesText() const;
  /// The shape for a call with `rows` rows; `capacity` is the plan's.
  Shape shapeFor(int64_t rows, int64_t capacity) const;
  bool operator==(const Value &) const = default;
};

enum class Access { read, write, readWrite };
inline constexpr std::string_view accessNames[] = {"r", "w", "rw"};

struct Buffer {
  Slot slot;
  int64_t bytes = 0; ///< size of the whole buffer for any number of rows
  Access access = Access::read;

  bool isWritten() const { return access != Access::read; }
  bool operator==(const Buffer &) const = default;
};

struct Launch {
  std::string name, source; ///< for messages and traces
  size_t kernel = 0;
  std::vector<Buffer> buffers;

  bool operator==(const Launch &) const = default;
};

/// A copy between two devices, and when it runs.
struct Copy {
  enum class When {
    step,  ///< in every call
    stale, ///< at the start of a call if the target mirror is stale
    asked, ///< when the host reads the target output; not part of a call
  };
  static constexpr std::string_view whenNames[] = {"step", "stale", "asked"};

  std::string value, reason, source;
  Slot from, to;
  int64_t bytes = 0, bytesPerRow = 0;
  int64_t capacityBytes = 0; ///< size of the whole buffer
  When when = When::step;

  int64_t bytesFor(int64_t rows) const { return bytes + bytesPerRow * rows; }
  bool operator==(const Copy &) const = default;
};

/// Two accelerators swap a value concurrently. Copy i uses queue i of the action.
struct Exchange {
  std::array<Copy, 2> copies;

  bool operator==(const Exchange &) const = default;
};

/// A collective of all replicas: each sends its operand, and each receives all operands or their reduction. The
/// collective is in place if `send` and `receive` share a slot. In place, an all-gather reads its operand, and a
/// reduce-scatter writes its result, at the replica's position in the slot.
struct Collective {
  enum class Kind { allReduce, broadcast, allGather, reduceScatter };
  static constexpr std::string_view kindNames[] = {"all_reduce", "broadcast", "all_gather", "reduce_scatter"};

  std::string name, source; ///< for messages and traces
  Kind kind = Kind::allReduce;
  Reduction reduction = Reduction::sum; ///< of all-reduce and reduce-scatter
  DType dtype = DType::f32;
  int64_t count = 0;    ///< elements; for all-gather and reduce-scatter, per replica
  int32_t root = 0;     ///< the sending replica of a broadcast
  Buffer send, receive; ///< source and destination

  /// Whether each replica has its own part of the gathered or scattered elements.
  bool isShared() const { return kind == Kind::allGather || kind == Kind::reduceScatter; }
  bool isInPlace() const { return send.slot == receive.slot; }
  /// Bytes of one replica's operand or part.
  int64_t partBytes() const { return count * static_cast<int64_t>(sizeOf(dtype)); }
  /// Bytes of all reduced, broadcast, gathered or scattered elements.
  int64_t bytesFor(int64_t replicas) const { return isShared() ? partBytes() * replicas : partBytes(); }
  bool operator==(const Collective &) const = default;
};

struct Action;

/// Actions that run `count` times in sequence. `Wait::calls` of these actions counts iterations.
struct Loop {
  std::string name, source;
  int64_t count = 1;
  std::optional<Slot> condition; ///< a boolean on the host; the loop is skipped if it is 0
  std::vector<Action> actions;

  bool operator==(const Loop &other) const;
};

using ActionWork = std::variant<Launch, Copy, Exchange, Loop, Collective>;

/// An action starts when all its queues have reached it and its waits are complete. Its queues continue when it is
/// complete.
struct Action {
  ActionWork work;
  std::vector<size_t> queues; ///< occupied queues, at least one
  std::vector<Wait> waits;
  std::vector<Buffer> lastUses; ///< buffers without a later reader, until they are written again

  const Launch *launch() const { return std::get_if<Launch>(&work); }
  const Copy *copy() const { return std::get_if<Copy>(&work); }
  const Exchange *exchange() const { return std::get_if<Exchange>(&work); }
  const Loop *loop() const { return std::get_if<Loop>(&work); }
  const Collective *collective() const { return std::get_if<Collective>(&work); }

  /// The copies in it: one for a copy, two for an exchange, none otherwise.
  std::span<const Copy> copies() const;
  /// The accessed buffers; for a loop, those of its actions.
  std::vector<Buffer> buffers() const;
  bool isAsked() const { return copy() && copy()->when == Copy::When::asked; }
  bool operator==(const Action &) const = default;
};

/// The maximum nesting depth of loops.
inline constexpr size_t mostLoopDepth = 6;

/// An action of a tree, and its number of executions per call.
struct ListedAction {
  const Action *action;
  int64_t times;
};

/// All actions of a tree in preorder: an action's number is its index in this list. Code that visits every action
/// iterates over this list.
std::vector<ListedAction> listActions(const std::vector<Action> &actions);

/// The maximum number of calls of an entry point in flight.
inline constexpr int64_t mostInFlight = 16;

/// replicasOfLaunch means one replica per launched process.
inline constexpr int64_t mostReplicas = 1024, replicasOfLaunch = 0;

/// The maximum number of microbatches per call.
inline constexpr int64_t mostMicrobatches = 1024;

/// Work done once or for each microbatch of a call: the actions of a separate entry.
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
  std::vector<int64_t> peakBytes; ///< by device: its states, this entry's transient memory, and output logs
  /// The parts of its calls, in order. An entry with parts has no actions, and its inputs and outputs with rows hold
  /// whole calls on the host.
  std::vector<CallPart> parts;
  /// The derivations of the derived states that its calls read. Each runs before a call if one of its sources was
  /// written since its last run.
  std::vector<size_t> derivations;
  bool isPart = false;       ///< a part of another entry, which callers cannot call directly
  bool isDerivation = false; ///< computes derived states; runs only before calls of other entries

  /// Whether callers may call it.
  bool isCallable() const { return !isPart && !isDerivation; }

  std::vector<ListedAction> allActions() const { return listActions(actions); }
  /// The launches among all actions in order; a launch in a loop appears once.
  std::vector<const Launch *> launches() const;

  /// Whether an input or output has a batch dimension; otherwise a call's number of rows is ignored.
  bool hasRows() const;
  const Value *findInput(std::string_view name) const;
  const Value *findOutput(std::string_view name) const;
  bool operator==(const Entry &) const = default;
};

/// A link as specified to the compiler.
struct GivenLink {
  double bytesPerSecond = 0, latency = 0;

  bool operator==(const GivenLink &) const = default;
};

struct Build {
  std::string compiler, cpu;
  std::string math = "strict";   ///< permitted arithmetic of f32, as in --math
  std::string precision = "f32"; ///< type of f32 products: "f32", "bf16" or "f16"
  int64_t vectorBits = 0;
  std::vector<std::string> needs; ///< instruction-set extensions that the host must have, for example "avx2"
  std::vector<std::pair<std::string, std::string>> options; ///< names and values that differ from the defaults

  bool operator==(const Build &) const = default;
};

struct Plan {
  std::string model;
  std::string data;     ///< path of the default data relative to the executable; empty if there is none
  std::string backends; ///< folder where the backends of its devices were installed; empty if unknown
  std::string values;   ///< path of a safetensors file with initial states, relative to the artifact's file; empty:
                        ///< none
  /// Whether `train` shuffles the rows; empty if the model does not specify it.
  std::optional<bool> shuffle;
  std::vector<std::pair<std::string, std::string>> importedFrom; ///< facts about the file of an imported model
  Build build;
  /// Copies of the program that run together, each on a share of a call's rows; replicasOfLaunch until the launch.
  int64_t replicas = 1;
  int64_t batch = 0;         ///< maximum rows of a call over all replicas; 0 if no dimension is symbolic
  int64_t microbatches = 1;  ///< maximum number of sequential microbatches of a replica's rows
  int64_t logicalShards = 0; ///< fixed number of shards of a call's rows for any number of replicas; 0: one per replica
  int64_t capacity = 0;      ///< maximum rows of one replica in one call or, with microbatches, in one microbatch
  int64_t leastTrainingRows = 1; ///< minimum rows of a call, so that batch norm trains on several values per channel
  int64_t inFlight = 1;          ///< maximum number of calls of an entry point in flight
  /// The link between devices of replicas, if specified to the compiler: the default for virtual accelerators.
  std::optional<GivenLink> replicaLink;
  std::vector<Device> devices;
  std::vector<Arena> arenas;
  std::vector<Queue> queues;
  std::vector<State> states;
  std::vector<Kernel> kernels;
  std::vector<Module> modules;
  std::vector<Entry> entries;

  /// Finds an entry that callers may call; parts and derivations are excluded.
  const Entry *findEntry(std::string_view name) const;
  std::vector<std::string> entryNames() const;
  const State *findState(std::string_view name) const;
  /// The scales of a parameter in blocks of bytes; null if the state is none.
  const State *scalesOf(const State &state) const;
  /// The entries that run for a call, in order: its parts, or the entry itself.
  std::vector<const Entry *> partsOf(const Entry &entry) const;
  /// For each entry of `partsOf`, its executions per call of `entry` with this many microbatches per replica.
  std::vector<int64_t> timesOf(const Entry &entry, int64_t microbatches) const;
  /// The number of microbatches of a call with `rows` rows, for the replica with the most rows. 1 for an entry without
  /// parts.
  int64_t microbatchesFor(const Entry &entry, int64_t rows) const;
  /// The number of rows for which an input or output has memory on the host: of a whole call if its entry has parts.
  int64_t roomOf(const Value &value) const;
  /// All actions of the parts of an entry, part by part, with their executions per call.
  std::vector<ListedAction> actionsOf(const Entry &entry, int64_t microbatches) const;
  /// Whether any entry has collectives.
  bool hasCollectives() const;

  /// The number of elements of all parameters.
  int64_t parameterCount() const;
  /// The largest peak of all entry points on a device.
  int64_t peakBytes(size_t device) const;
  /// Whether everything runs on the host.
  bool isHostOnly() const { return devices.size() == 1; }
  /// The copy of a slot with a stride that call number `call` uses.
  int64_t copyOf(int64_t call) const { return call % inFlight; }
  /// Whether two buffers overlap, for any two calls in flight.
  bool overlap(const Buffer &a, const Buffer &b) const;
  /// Whether `action` writes into a buffer at `slot`; for slots with a stride, for any two calls in flight.
  bool writes(const Action &action, const Slot &slot, int64_t bytes) const;
  size_t deviceOf(const Slot &slot) const { return arenas[slot.arena].device; }
  int64_t alignmentIn(size_t arena) const { return devices[arenas[arena].device].alignment; }
  /// A hash of the name, kind, type and shape of every saved state; a checkpoint must have the same hash.
  uint64_t stateHash() const;
  bool operator==(const Plan &) const = default;
};

/// Reads and validates the plan of `artifact`, including every index and range.
Plan readPlan(const sluice_artifact &artifact);

} // namespace sluice::runtime
