#include "runtime/exec/Instance.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/device/Instructions.h"
#include "runtime/exec/Indices.h"
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

void checkDevices(const Plan &plan, const std::string &list, const std::string &wanted) {
  std::vector<std::string> names;
  bool found = wanted.empty();
  std::vector<int32_t> ordinals = fillSlots(plan, list);
  for (size_t i = 0; i < plan.devices.size(); ++i) {
    const Device &slot = plan.devices[i];
    names.push_back(slot.name);
    found |= wanted == slot.name || wanted == slot.backend || wanted == concat(slot.backend, ":", ordinals[i]);
  }
  if (const char *host = sluice_host_backend()->name; plan.devices.front().backend != host)
    failUnsupported(concat("the model was compiled for the host ", quote(plan.devices.front().backend),
                           ", but this executable's is ", quote(host)));
  if (!found)
    failUnsupported(concat("device ", quote(wanted), " is not there; the model was compiled for: ", listed(names)));
}

Instance::Instance(const sluice_artifact &artifact, const InstanceOptions &options)
    : plan_(readPlan(artifact)), team_(checkedThreads(options.threads)), stateValues_(plan_),
      calls_(plan_.entries.size()), mostRows_(plan_.entries.size()) {
  checkDevices(plan_, options.devices.list, options.device);
  checkInstructions(plan_.build);
  executor_ = std::make_unique<Executor>(plan_, artifact, team_, options.devices);
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

void Instance::setState(const State &state, std::span<const std::byte> logical) {
  checkSize(state.name, logical.size(), state.logicalBytes());
  stateValues_.set(plan_, state);
  size_t size = sizeOf(state.dtype);
  if (executor_->isOnHost(state))
    return pack(state.shape, state.layout, size, logical.data(), executor_->hostStateToWrite(state));
  std::vector<std::byte> physical(static_cast<size_t>(state.bytes));
  pack(state.shape, state.layout, size, logical.data(), physical.data());
  executor_->writeState(state, physical);
}

void Instance::getState(const State &state, std::span<std::byte> logical) const {
  checkSize(state.name, logical.size(), state.logicalBytes());
  size_t size = sizeOf(state.dtype);
  if (executor_->isOnHost(state))
    return unpack(state.shape, state.layout, size, executor_->hostStateToRead(state), logical.data());
  std::vector<std::byte> physical(static_cast<size_t>(state.bytes));
  executor_->readState(state, physical);
  unpack(state.shape, state.layout, size, physical.data(), logical.data());
}

void Instance::setState(const State &state, const std::function<void(size_t, std::span<std::byte>)> &read) {
  std::vector<std::byte> logical;
  if (!executor_->isOnHost(state)) {
    logical.resize(static_cast<size_t>(state.logicalBytes()));
    read(0, logical);
    return setState(state, std::span<const std::byte>(logical));
  }
  size_t size = sizeOf(state.dtype);
  std::byte *to = executor_->hostStateToWrite(state);
  forEachPiece(state.shape, state.layout, size, [&](const Shape &piece, size_t at, size_t physical) {
    logical.resize(static_cast<size_t>(elementsOf(piece)) * size);
    read(at, logical);
    pack(piece, state.layout, size, logical.data(), to + physical);
  });
  stateValues_.set(plan_, state);
}

void Instance::getState(const State &state, const std::function<void(std::span<const std::byte>)> &write) const {
  std::vector<std::byte> logical;
  if (!executor_->isOnHost(state)) {
    logical.resize(static_cast<size_t>(state.logicalBytes()));
    getState(state, std::span(logical));
    return write(logical);
  }
  size_t size = sizeOf(state.dtype);
  const std::byte *from = executor_->hostStateToRead(state);
  forEachPiece(state.shape, state.layout, size, [&](const Shape &piece, size_t, size_t physical) {
    logical.resize(static_cast<size_t>(elementsOf(piece)) * size);
    unpack(piece, state.layout, size, from + physical, logical.data());
    write(logical);
  });
}

void Instance::setPhysicalState(const State &state, std::span<const std::byte> physical) {
  checkSize(state.name, physical.size(), state.bytes);
  stateValues_.set(plan_, state);
  executor_->writeState(state, physical);
}

void Instance::getPhysicalState(const State &state, std::span<std::byte> physical) const {
  checkSize(state.name, physical.size(), state.bytes);
  executor_->readState(state, physical);
}

namespace {

/// A value seen as `outer` blocks: `used` bytes of each block of `stride` bytes belong to the rows of a call.
struct RowBlocks {
  int64_t outer = 1, used = 0, stride = 0;

  RowBlocks(const Value &value, const Shape &shape) {
    used = stride = static_cast<int64_t>(sizeOf(value.dtype));
    for (size_t i = shape.size(); i-- > 0;) {
      if (static_cast<int>(i) < value.rowsDim) {
        outer *= shape[i];
        continue;
      }
      used *= shape[i];
      stride *= value.shape[i];
    }
  }
};

} // namespace

int64_t Instance::bytesFor(const Value &value, int64_t rows) const {
  return elementsOf(value.shapeFor(rows, plan_.capacity)) * static_cast<int64_t>(sizeOf(value.dtype));
}

std::byte *Instance::inputAddress(const Value &input) {
  executor_->waitForInput(input, calls_[input.entry]);
  return address(input.slot, calls_[input.entry]);
}

void Instance::setInput(const Value &input, std::span<const std::byte> data, int64_t rows) {
  checkSize(input.name, data.size(), bytesFor(input, rows));
  RowBlocks blocks(input, input.shapeFor(rows, plan_.capacity));
  std::byte *to = inputAddress(input);
  for (int64_t i = 0; i < blocks.outer && blocks.used > 0; ++i)
    std::memcpy(to + i * blocks.stride, data.data() + i * blocks.used, static_cast<size_t>(blocks.used));
}

void Instance::getOutput(const Value &output, std::span<std::byte> data, int64_t rows) const {
  checkSize(output.name, data.size(), bytesFor(output, rows));
  RowBlocks blocks(output, output.shapeFor(rows, plan_.capacity));
  executor_->fetchOutput(output, calls_[output.entry] - 1, rows);
  const std::byte *from = address(output.slot, calls_[output.entry] - 1);
  for (int64_t i = 0; i < blocks.outer && blocks.used > 0; ++i)
    std::memcpy(data.data() + i * blocks.used, from + i * blocks.stride, static_cast<size_t>(blocks.used));
}

void Instance::readBuffer(const Entry &entry, const Buffer &buffer, std::span<std::byte> data) const {
  checkSize("a buffer", data.size(), buffer.bytes);
  executor_->readBuffer(buffer, calls_[numberOf(entry)] - 1, data);
}

void Instance::checkRows(const Entry &entry, int64_t rows) const {
  if (entry.hasRows() && (rows < 1 || rows > plan_.capacity))
    failUsage(concat("a call of ", quote(entry.name), " has ", rows, " rows, outside [1, ", plan_.capacity, "]"));
}

void Instance::checkInputs(const Entry &entry, int64_t rows) const {
  for (const Value &input : entry.inputs)
    checkIndices(plan_, input, address(input.slot, calls_[input.entry]), rows, plan_.capacity);
}

void Instance::run(const Entry &entry, int64_t rows) {
  checkRows(entry, rows);
  checkInputs(entry, rows);
  size_t number = numberOf(entry);
  stateValues_.beforeRun(plan_, number);
  int64_t call = calls_[number]++;
  mostRows_[number] = std::max(mostRows_[number], rows);
  team_.enter([&] { executor_->run(entry, call, rows); });
}

} // namespace sluice::runtime
