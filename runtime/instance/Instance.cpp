#include "runtime/instance/Instance.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/device/Instructions.h"
#include "runtime/instance/Indices.h"
#include "runtime/instance/Weights.h"
#include "runtime/io/InitialValues.h"
#include "runtime/plan/DeviceName.h"
#include "sluice/backend/host.h"

#include <algorithm>
#include <cstring>

namespace sluice::runtime {

static constexpr int mostThreads = 1024;

static int checkedThreads(int threads) {
  if (threads < 0 || threads > mostThreads)
    failUsage(concat("threads is ", threads, ", outside [1, ", mostThreads, "]"));
  return threads == 0 ? availableThreads() : threads;
}

void checkDevices(const Plan &plan, const std::vector<std::vector<int32_t>> &ordinals, const std::string &wanted) {
  std::vector<std::string> names;
  bool found = wanted.empty();
  for (size_t i = 0; i < plan.devices.size(); ++i) {
    const Device &device = plan.devices[i];
    names.push_back(bindingText(device, ordinals.front()[i]));
    found |= wanted == device.name || wanted == shownDevice(device.name) || wanted == device.backend;
    for (const std::vector<int32_t> &replica : ordinals)
      found |= wanted == concat(device.backend, ":", replica[i]);
  }
  if (const char *host = sluice_host_backend()->name; plan.devices.front().backend != host)
    failUnsupported(concat("the model was compiled for the host ", quote(plan.devices.front().backend),
                           ", but this executable's is ", quote(host)));
  if (!found)
    failUnsupported(concat("cannot use device ", quote(wanted), ": the model was compiled for ", listed(names)));
}

/// The reason why a plan does not match this number of processes; empty if it matches.
static std::string whyNotFor(const Plan &plan, int64_t launched) {
  if (plan.replicas == replicasOfLaunch)
    return launched > mostReplicas ? concat("cannot run ", launched, " processes: a model has at most ", mostReplicas,
                                            " replicas; launch fewer")
                                   : "";
  return plan.replicas == launched
             ? ""
             : concat(launched, " processes were launched, and the model was compiled for ", plan.replicas,
                      plan.replicas == 1 ? " replica" : " replicas", ": launch ",
                      plan.replicas == 1 ? "one" : concat(plan.replicas, ", or one that has them all"),
                      ", or compile it with --replicas ", launched, " or --replicas env");
}

/// Refuses functions of arrays with inputs or outputs that are not row-major.
static void requireRowMajor(const Plan &plan) {
  for (const Entry &entry : plan.entries)
    for (const std::vector<Value> *values : {&entry.inputs, &entry.outputs})
      for (const Value &value : *values)
        if (!value.layout.empty())
          failUnsupported(concat(quote(entry.name), ": ", quote(value.name),
                                 " is not row-major, which only functions of arrays support"));
}

/// Reads the plan and, if the launch decides, sets its number of replicas. Throws in all processes if there are too
/// many or too few processes.
static Plan planFor(const sluice_artifact &artifact, ProcessGroup *processes) {
  Plan plan = readPlan(artifact);
  requireRowMajor(plan);
  int64_t launched = processes ? processes->size() : 1;
  if (std::string reason = processes ? whyNotFor(plan, launched) : std::string(); !reason.empty()) {
    processes->endAlike("the start of the run");
    failUsage(reason);
  }
  if (plan.replicas == replicasOfLaunch)
    plan.replicas = launched;
  return plan;
}

static bool isConstant(const State &state) { return state.kind == StateKind::constant; }

Instance::Instance(const sluice_artifact &artifact, std::shared_ptr<DevicePool> pool, const InstanceOptions &options)
    : artifact_(&artifact), plan_(planFor(artifact, options.devices.processes)), stateValues_(plan_),
      calls_(plan_.entries.size()) {
  int threads = checkedThreads(options.threads);
  checkDevices(plan_, bindDevices(plan_, options.devices), options.device);
  checkInstructions(plan_.build);
  replicas_ = std::make_unique<Replicas>(plan_, artifact, std::move(pool), threads, options.devices);
  for (const InitialValue &value : initialValues(plan_, artifact, isConstant))
    loadState(*this, *value.state, value.source);
}

const Entry &Instance::entry(std::string_view name) const {
  if (const Entry *entry = plan_.findEntry(name))
    return *entry;
  failUsage(concat("the model has no entry point ", quote(name), "; it has: ", listed(plan_.entryNames())));
}

const State &Instance::state(std::string_view name) const {
  if (const State *state = plan_.findState(name))
    return *state;
  std::vector<std::string> names;
  for (const State &state : plan_.states)
    names.push_back(state.name);
  failUsage(concat("the model has no state ", quote(name), "; it has: ", listed(names)));
}

static void checkSize(std::string_view name, size_t given, int64_t wanted) {
  if (given != static_cast<size_t>(wanted))
    failInvalid(concat(quote(name), " has ", wanted, " bytes, but ", given, " were given"));
}

//===- states -----------------------------------------------------------------------------------------------------===//

void Instance::checkSettable(const State &state) const {
  if (state.kind == StateKind::share)
    failUsage(concat("the state ", quote(state.name), " is set by the runtime before each call"));
  if (state.kind == StateKind::accumulator)
    failUsage(concat("the state ", quote(state.name), " cannot be set: it passes values between the parts of a call"));
  if (state.isDerived())
    failUsage(concat("the state ", quote(state.name), " cannot be set: it is computed from ",
                     quote(plan_.states[state.sources.front()].name), "; set that"));
}

void Instance::setState(const State &state, std::span<const std::byte> logical) {
  checkSize(state.name, logical.size(), state.logicalBytes());
  if (state.isSharded())
    return setShards(state, logical);
  if (replica().executor().isOnHost(state))
    return setState(state, [&](size_t at, std::span<std::byte> to) {
      std::copy_n(logical.begin() + static_cast<std::ptrdiff_t>(at), to.size(), to.begin());
    });
  std::vector<std::byte> physical(static_cast<size_t>(state.bytes));
  pack(state.shape, state.layout, sizeOf(state.dtype), logical.data(), physical.data());
  setPhysicalState(state, physical);
}

void Instance::setState(const State &state, const std::function<void(size_t, std::span<std::byte>)> &read) {
  std::vector<std::byte> logical;
  if (state.isSharded() || !replica().executor().isOnHost(state)) {
    logical.resize(static_cast<size_t>(state.logicalBytes()));
    read(0, logical);
    return setState(state, std::span<const std::byte>(logical));
  }
  checkSettable(state);
  size_t size = sizeOf(state.dtype);
  std::vector<std::byte *> places;
  for (size_t number = 0; number < replicas_->size(); ++number)
    places.push_back(
        replicas_->on(number, [&](Replica &replica) { return replica.executor().hostStateToWrite(state); }));
  forEachPiece(state.shape, state.layout, size, [&](const Shape &piece, size_t at, size_t physical) {
    logical.resize(static_cast<size_t>(elementsOf(piece)) * size);
    read(at, logical);
    for (std::byte *to : places)
      pack(piece, state.layout, size, logical.data(), to + physical);
  });
  stateValues_.set(plan_, state);
}

void Instance::getState(const State &state, std::span<std::byte> logical, int64_t number) const {
  checkSize(state.name, logical.size(), state.logicalBytes());
  size_t size = sizeOf(state.dtype);
  if (state.isSharded()) {
    std::vector<std::byte> whole = allShards(state);
    std::copy_n(whole.begin(), logical.size(), logical.begin());
    return;
  }
  if (replica().executor().isOnHost(state)) {
    const std::byte *from = replicas_->on(static_cast<size_t>(number),
                                          [&](Replica &replica) { return replica.executor().hostStateToRead(state); });
    return unpack(state.shape, state.layout, size, from, logical.data());
  }
  std::vector<std::byte> physical(static_cast<size_t>(state.bytes));
  getPhysicalState(state, physical, number);
  unpack(state.shape, state.layout, size, physical.data(), logical.data());
}

void Instance::getState(const State &state, const std::function<void(std::span<const std::byte>)> &write) const {
  std::vector<std::byte> logical;
  if (state.isSharded() || !replica().executor().isOnHost(state)) {
    logical.resize(static_cast<size_t>(state.logicalBytes()));
    getState(state, std::span(logical));
    return write(logical);
  }
  size_t size = sizeOf(state.dtype);
  const std::byte *from = replicas_->on(0, [&](Replica &replica) { return replica.executor().hostStateToRead(state); });
  forEachPiece(state.shape, state.layout, size, [&](const Shape &piece, size_t, size_t physical) {
    logical.resize(static_cast<size_t>(elementsOf(piece)) * size);
    unpack(piece, state.layout, size, from + physical, logical.data());
    write(logical);
  });
}

void Instance::setPhysicalState(const State &state, std::span<const std::byte> physical) {
  checkSize(state.name, physical.size(), state.bytes);
  checkSettable(state);
  for (size_t number = 0; number < replicas_->size(); ++number)
    replicas_->on(number, [&](Replica &replica) { replica.executor().writeState(state, physical); });
  stateValues_.set(plan_, state);
}

void Instance::getPhysicalState(const State &state, std::span<std::byte> physical, int64_t number) const {
  checkSize(state.name, physical.size(), state.bytes);
  replicas_->on(static_cast<size_t>(number), [&](Replica &replica) { replica.executor().readState(state, physical); });
}

//===- shards -----------------------------------------------------------------------------------------------------===//

static size_t shardBytes(const State &state) {
  return static_cast<size_t>(elementsOf(state.keptShape())) * sizeOf(state.dtype);
}

void Instance::setShards(const State &state, std::span<const std::byte> logical) {
  checkSettable(state);
  std::vector<std::byte> whole(logical.begin(), logical.end()), physical(static_cast<size_t>(state.bytes));
  whole.resize(static_cast<size_t>(state.shards) * shardBytes(state));
  for (size_t number = 0; number < replicas_->size(); ++number)
    replicas_->on(number, [&](Replica &replica) {
      const std::byte *own = whole.data() + static_cast<size_t>(replica.number()) * shardBytes(state);
      pack(state.keptShape(), state.layout, sizeOf(state.dtype), own, physical.data());
      replica.executor().writeState(state, physical);
    });
  collected_.erase(&state);
  stateValues_.set(plan_, state);
}

void Instance::getShards(const State &state, std::span<std::byte> whole) const {
  std::vector<std::byte> physical(static_cast<size_t>(state.bytes));
  for (size_t number = 0; number < replicas_->size(); ++number)
    replicas_->on(number, [&](Replica &replica) {
      replica.executor().readState(state, physical);
      std::byte *own = whole.data() + static_cast<size_t>(replica.number()) * shardBytes(state);
      unpack(state.keptShape(), state.layout, sizeOf(state.dtype), physical.data(), own);
    });
}

std::vector<std::byte> Instance::allShards(const State &state) const {
  if (auto known = collected_.find(&state); known != collected_.end())
    return known->second;
  if (processes())
    failUsage(concat("cannot read the state ", quote(state.name), ": each of ", plan_.replicas,
                     " processes keeps a shard of it, and the shards have not been collected"));
  std::vector<std::byte> whole(static_cast<size_t>(state.shards) * shardBytes(state));
  getShards(state, whole);
  return whole;
}

bool Instance::hasShardsElsewhere() const {
  return processes() &&
         std::any_of(plan_.states.begin(), plan_.states.end(), [](const State &state) { return state.isSharded(); });
}

void Instance::collectShards() {
  if (!hasShardsElsewhere())
    return;
  for (const State &state : plan_.states) {
    if (!state.isSharded())
      continue;
    std::vector<std::byte> whole(static_cast<size_t>(state.shards) * shardBytes(state));
    getShards(state, whole);
    std::span<const std::byte> own =
        std::span(whole).subspan(static_cast<size_t>(processes()->rank()) * shardBytes(state), shardBytes(state));
    std::vector<size_t> sizes(static_cast<size_t>(state.shards), shardBytes(state));
    std::vector<std::vector<std::byte>> all = processes()->gather(concat("the state ", quote(state.name)), own, sizes);
    if (!processes()->isFirst())
      continue;
    auto to = whole.begin();
    for (const std::vector<std::byte> &shard : all)
      to = std::copy(shard.begin(), shard.end(), to);
    collected_[&state] = std::move(whole);
  }
}

//===- inputs and outputs -----------------------------------------------------------------------------------------===//

int64_t Instance::bytesFor(const Value &value, int64_t rows) const {
  return elementsOf(value.shapeFor(rows, plan_.capacity)) * static_cast<int64_t>(sizeOf(value.dtype));
}

std::string Instance::deviceOf(const Value &value) const {
  size_t device = plan_.deviceOf(value.slot);
  const Device &its = plan_.devices[device];
  return device == 0 ? its.backend : concat(its.backend, ":", executor().devices().ordinal(device));
}

void Instance::checkPlace(const Value &value, bool isOnHost, const char *what) const {
  size_t device = plan_.deviceOf(value.slot);
  if ((device == 0) == isOnHost)
    return;
  failUsage(isOnHost ? concat(what, " ", quote(value.name), " is on ", executor().devices().textOf(device),
                              ", and the program has no copy between it and the host: pass an address of the device")
                     : concat(what, " ", quote(value.name), " is on the host, not on an accelerator"));
}

void Instance::bindInput(const Value &input, std::byte *address, size_t bytes, int64_t rows) {
  checkPlace(input, /*isOnHost=*/false, "input");
  if (input.below > 0)
    failUsage(concat("cannot bind input ", quote(input.name),
                     ": it has indices, which the host must check; declare it without a device"));
  if (bytes < static_cast<size_t>(input.bytes))
    failInvalid(concat("input ", quote(input.name), " needs memory for ", input.bytes,
                       " bytes, the rows of the largest call, and ", bytes, " were given"));
  replicas_->on(0, [&](Replica &replica) { replica.executor().bindInput(input, address); });
  callValues_.set(plan_, input, rows);
}

std::byte *Instance::outputAddress(const Value &output) {
  checkPlace(output, /*isOnHost=*/false, "output");
  callValues_.checkOutput(plan_, output, /*rows=*/0);
  int64_t call = calls_[output.entry].count - 1;
  return replicas_->on(0, [&](Replica &replica) {
    replica.executor().fetchOutput(output, call, calls_[output.entry].lastRows);
    return replica.address(output.slot, call);
  });
}

std::byte *Instance::awaitedInput(const Value &input, size_t number) const {
  int64_t call = calls_[input.entry].count;
  return replicas_->on(number, [&](Replica &replica) { return replica.inputAddress(input, call); });
}

std::byte *Instance::inputAddress(const Value &input, int64_t number) {
  checkPlace(input, /*isOnHost=*/true, "input");
  callValues_.handOut(plan_, input);
  return awaitedInput(input, static_cast<size_t>(number));
}

/// The part of a value for a replica with the share `share` of a call. A value without rows is one row, shared by all
/// replicas.
static RowShare shareOfValue(const Value &value, const RowShare &share) {
  return value.rowsDim >= 0 ? share : RowShare{1, 0, 1};
}

void Instance::setInput(const Value &input, std::span<const std::byte> data, int64_t rows) {
  checkPlace(input, /*isOnHost=*/true, "input");
  checkSize(input.name, data.size(), bytesFor(input, rows));
  RowBlocks blocks(input, plan_);
  for (int64_t number = 0; number < replicasHere(); ++number) {
    RowShare its = shareOfValue(input, share(rows, number));
    std::byte *to = awaitedInput(input, static_cast<size_t>(number));
    blocks.copy(to, blocks.room, 0, data.data(), its.all, its.first, its.rows);
  }
  callValues_.set(plan_, input, rows);
}

void Instance::getOutput(const Value &output, std::span<std::byte> data, int64_t rows) const {
  checkPlace(output, /*isOnHost=*/true, "output");
  checkSize(output.name, data.size(), bytesFor(output, rows));
  callValues_.checkOutput(plan_, output, rows);
  RowBlocks blocks(output, plan_);
  const Calls &calls = calls_[output.entry];
  int64_t call = calls.count - 1, wanted = output.rowsDim >= 0 ? rows : 1;
  for (int64_t number = 0; number < (output.rowsDim >= 0 ? replicasHere() : 1); ++number) {
    RowShare its = shareOfValue(output, share(plan_.replicas == 1 ? rows : calls.lastRows, number));
    const std::byte *from = replicas_->on(static_cast<size_t>(number),
                                          [&](Replica &replica) { return replica.output(output, call, its.rows); });
    blocks.copy(data.data(), wanted, its.first, from, blocks.room, 0,
                std::clamp<int64_t>(wanted - its.first, 0, its.rows));
  }
  if (processes() && output.rowsDim >= 0)
    joinRows(output, data, rows);
}

/// In the first process, adds the rows of all other processes to `data`, which has the first `rows` rows of the output.
void Instance::joinRows(const Value &output, std::span<std::byte> data, int64_t rows) const {
  RowBlocks blocks(output, plan_);
  std::vector<RowShare> shares;
  std::vector<size_t> sizes;
  for (int64_t number = 0; number < plan_.replicas; ++number) {
    RowShare &its = shares.emplace_back(shareOf(plan_, calls_[output.entry].lastRows, number));
    its.rows = std::clamp<int64_t>(rows - its.first, 0, its.rows);
    sizes.push_back(static_cast<size_t>(blocks.outer * its.rows * blocks.rowBytes));
  }
  auto here = static_cast<size_t>(processes()->rank());
  std::vector<std::byte> own(sizes[here]);
  blocks.copy(own.data(), shares[here].rows, 0, data.data(), rows, shares[here].first, shares[here].rows);
  std::vector<std::vector<std::byte>> all = processes()->gather(concat("the output ", quote(output.name)), own, sizes);
  for (size_t number = 1; number < all.size(); ++number)
    blocks.copy(data.data(), rows, shares[number].first, all[number].data(), shares[number].rows, 0,
                shares[number].rows);
}

void Instance::readBuffer(const Entry &entry, const Buffer &buffer, std::span<std::byte> data) const {
  checkSize("a buffer", data.size(), buffer.bytes);
  replica().executor().readBuffer(buffer, calls(entry) - 1, data);
}

//===- calls ------------------------------------------------------------------------------------------------------===//

void Instance::checkRows(const Entry &entry, int64_t rows) const {
  if (entry.hasRows() && (rows < 1 || rows > plan_.batch))
    failUsage(concat("a call of ", quote(entry.name), " has ", rows, " rows, outside [1, ", plan_.batch, "]"));
}

void Instance::checkInputs(const Entry &entry, int64_t rows) const {
  callValues_.checkInputs(entry, rows);
  for (const Value &input : entry.inputs)
    for (int64_t number = 0; input.below > 0 && number < replicasHere(); ++number)
      checkIndices(plan_, input, replica(number).address(input.slot, calls_[numberOf(entry)].count),
                   share(rows, number));
}

std::vector<InitialValue> Instance::dataOfStates() const {
  return initialValues(plan_, *artifact_, [](const State &state) { return !isConstant(state); });
}

void Instance::run(const Entry &entry, int64_t rows) {
  std::vector<InitialValue> values; // read before any state is written
  if (entry.name == "init")
    values = dataOfStates();
  runActions(entry, rows);
  for (const InitialValue &value : values)
    loadState(*this, *value.state, value.source);
}

void Instance::runActions(const Entry &entry, int64_t rows) {
  checkRows(entry, rows);
  checkInputs(entry, rows);
  size_t number = numberOf(entry);
  collected_.clear();
  stateValues_.beforeRun(plan_, number);
  Calls &calls = calls_[number];
  int64_t call = calls.count++;
  calls.lastRows = rows;
  calls.mostRows = std::max(calls.mostRows, rows);
  callValues_.afterCall(entry, rows);
  bool isShared = entry.hasRows();
  replicas_->everywhere([&](Replica &replica) {
    replica.run(entry, call, isShared ? shareOf(plan_, rows, replica.number()) : RowShare{rows, 0, rows});
  });
}

void Instance::keepOutputs(const Entry &entry, const std::vector<const Value *> &outputs) {
  replicas_->on(0, [&](Replica &replica) { replica.keepOutputs(entry, outputs); });
}

std::vector<double> Instance::takeOutputs(const Entry &entry) {
  return replicas_->on(0, [&](Replica &replica) { return replica.takeOutputs(entry); });
}

void Instance::synchronize() {
  replicas_->everywhere([](Replica &replica) { replica.executor().synchronize(); });
}

//===- counts and times -------------------------------------------------------------------------------------------===//

std::vector<PairCount> Instance::copies() {
  synchronize();
  std::vector<PairCount> all;
  for (int64_t number = 0; number < replicasHere(); ++number)
    for (const PairCount &count : executor(number).copies())
      all.push_back(count);
  return all;
}

std::vector<CollectiveReport> Instance::collectives() {
  synchronize();
  std::vector<CollectiveReport> reports;
  for (size_t kind = 0; kind < std::size(Collective::kindNames); ++kind) {
    CollectiveReport report{static_cast<Collective::Kind>(kind), executor().executedCollectives()[kind], std::nullopt};
    for (int64_t number = 0; number < replicasHere() && !report.differs(); ++number)
      report.counted = executor(number).countedCollectives(report.kind);
    if (report.executed.exchanges > 0 || report.differs())
      reports.push_back(report);
  }
  return reports;
}

ReplayCount Instance::replayCount() const {
  ReplayCount sum;
  for (int64_t number = 0; number < replicasHere(); ++number)
    sum += executor(number).replayCount();
  return sum;
}

} // namespace sluice::runtime
