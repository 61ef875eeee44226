#include "runtime/arrays/ArrayProgram.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/instance/Indices.h"
#include "runtime/io/InitialValues.h"
#include "runtime/plan/Layout.h"

#include <algorithm>
#include <cstring>
#include <memory_resource>

namespace sluice::runtime {

/// One row, the first of one: programs on arrays have no batch.
static const sluice_call kOneCall{sizeof(sluice_call), 1, 0, 1};

static sluice_access accessOf(const Buffer &buffer) {
  return buffer.access == Access::read    ? SLUICE_READ
         : buffer.access == Access::write ? SLUICE_WRITE
                                          : SLUICE_READ_WRITE;
}

//===- preparation ------------------------------------------------------------------------------------------------===//

static PackingPointer packingOf(const Value &value) {
  if (value.layout.empty())
    return nullptr;
  return std::make_shared<Packing>(Packing{value.dtype, value.shape, value.layout, static_cast<size_t>(value.bytes)});
}

ArrayProgram::ArrayProgram(const sluice_artifact &artifact, std::shared_ptr<const void> code)
    : code_(std::move(code)), artifact_(&artifact), plan_(readPlan(artifact)), transientBytes_(plan_.devices.size()),
      isUsed_(plan_.devices.size()) {
  auto isEntry = [](const Entry &entry) { return entry.name != "init"; };
  auto found = std::find_if(plan_.entries.begin(), plan_.entries.end(), isEntry);
  entry_ = found == plan_.entries.end() ? &plan_.entries.front() : &*found;
  hasStates_ = !plan_.states.empty();
  uint32_t base = 0;
  for (const std::vector<Value> *values : {&entry_->inputs, &entry_->outputs})
    for (const Value &value : *values) // an output in the memory of an input has the base of the input
      basesOfValues_.try_emplace({value.slot.arena, value.slot.offset}, base++);
  for (const Value &input : entry_->inputs)
    inputPackings_.push_back(packingOf(input));
  for (const Value &output : entry_->outputs) {
    outputPlaces_.push_back(placeOf(output.slot, output.bytes));
    outputPackings_.push_back(packingOf(output));
  }
  list_ = prepare(entry_->actions);
  writers_.assign(entry_->outputs.size(), 0);
  for (size_t i = 0; i < entry_->outputs.size(); ++i)
    writers_[i] = plan_.deviceOf(entry_->outputs[i].slot);
  findWriters(list_);
}

ArrayProgram::Place ArrayProgram::placeOf(const Slot &slot, int64_t bytes) {
  auto inputs = static_cast<uint32_t>(entry_->inputs.size()), outputs = static_cast<uint32_t>(entry_->outputs.size());
  auto value = basesOfValues_.find({slot.arena, slot.offset});
  bool isValue = value != basesOfValues_.end();
  if (isValue && value->second < inputs)
    return {value->second, 0};
  const Arena &arena = plan_.arenas[slot.arena];
  auto devices = static_cast<uint32_t>(plan_.devices.size()), device = static_cast<uint32_t>(arena.device);
  uint32_t first = inputs + outputs;
  if (arena.isConstant())
    return {first + 2 * devices, slot.offset};
  if (arena.name == "state")
    return {first + devices + device, slot.offset};
  if (isValue)
    return {value->second, 0};
  transientBytes_[device] = std::max(transientBytes_[device], slot.offset + bytes);
  return {first + device, slot.offset};
}

void ArrayProgram::prepareLaunch(Step &step, const Launch &launch) {
  const Kernel &kernel = plan_.kernels[launch.kernel];
  step.device = kernel.device;
  step.module = kernel.module;
  for (const Buffer &buffer : launch.buffers) {
    step.places.push_back(placeOf(buffer.slot, buffer.bytes));
    step.buffers.push_back({static_cast<size_t>(buffer.bytes), accessOf(buffer)});
  }
  for (const Stage &stage : kernel.stages) {
    step.stages.push_back({artifact_->stages[stage.function], stage.tasksFor(1)});
    isParallel_ |= step.stages.back().tasks > 1;
  }
  step.launch.struct_size = sizeof step.launch;
  step.launch.call = &kOneCall;
  step.launch.num_stages = step.stages.size();
  step.launch.stage_size = sizeof(sluice_launch_stage);
  step.launch.function = kernel.function.empty() ? nullptr : kernel.function.c_str();
  step.launch.parameters = kernel.parameters.data();
  step.launch.parameters_bytes = kernel.parameters.size();
  step.launch.name = launch.name.c_str();
  step.launch.kind = kernel.kind.c_str();
  step.launch.num_buffers = step.buffers.size();
  step.launch.buffer_size = sizeof(sluice_buffer);
  step.launch.flops = kernel.cost.flopsFor(1);
  step.launch.bytes = kernel.cost.bytesFor(1);
}

ArrayProgram::List ArrayProgram::prepare(const std::vector<Action> &actions) {
  List list;
  list.steps.resize(actions.size());
  for (size_t i = 0; i < actions.size(); ++i) {
    const Action &action = actions[i];
    Step &step = list.steps[i];
    step.action = &action;
    step.device = plan_.queues[action.queues.front()].device;
    if (const Launch *launch = action.launch()) {
      prepareLaunch(step, *launch);
    } else if (const Copy *copy = action.copy()) {
      step.places = {placeOf(copy->from, copy->capacityBytes), placeOf(copy->to, copy->capacityBytes)};
    } else if (const Loop *loop = action.loop()) {
      step.list = prepare(loop->actions);
      if (loop->condition)
        step.condition = placeOf(*loop->condition, 1);
    } else {
      failUnsupported("cannot exchange values between replicas: functions of arrays have no replicas");
    }
    isUsed_[step.device] = true;
  }
  for (Step &step : list.steps) { // the steps no longer move, so that pointers into them stay valid
    step.launch.stages = step.stages.data();
    step.launch.buffers = step.buffers.data();
    // Earlier calls use other memory, and earlier iterations are complete: no wait for them.
    for (const Wait &wait : step.action->waits)
      if (wait.calls == 0 && list.steps[wait.action].device != step.device) {
        step.waits.push_back(wait.action);
        list.steps[wait.action].isAwaited = true;
      }
  }
  return list;
}

void ArrayProgram::findWriters(const List &list) {
  for (const Step &step : list.steps) {
    findWriters(step.list);
    for (size_t i = 0; i < step.places.size(); ++i)
      for (size_t output = 0; output < outputPlaces_.size(); ++output)
        if (step.places[i].base == outputPlaces_[output].base && step.places[i].base >= entry_->inputs.size())
          writers_[output] = step.device;
  }
}

const ArrayProgram::Resident *ArrayProgram::residentOn(std::span<ArrayDevice *const> devices) {
  if (!hasStates_)
    return nullptr;
  std::lock_guard lock(mutex_);
  for (const std::unique_ptr<Resident> &known : residents_)
    if (std::equal(devices.begin(), devices.end(), known->devices.begin(), known->devices.end()))
      return known.get();
  auto made = std::make_unique<Resident>();
  made->devices.assign(devices.begin(), devices.end());
  made->memory.resize(devices.size());
  CallSite site{"constants", {}};
  for (const Arena &arena : plan_.arenas)
    if (arena.name == "state" && arena.bytes > 0)
      made->memory[arena.device] =
          std::make_shared<Storage>(*devices[arena.device], static_cast<size_t>(arena.bytes),
                                    devices[arena.device]->streamOfThread(), "the constants of a function");
  ArrayDevice &host = ArrayDevices::ofProcess().host();
  for (const InitialValue &value : initialValues(plan_, *artifact_, [](const State &) { return true; })) {
    const State &state = *value.state;
    std::vector<std::byte> logical;
    value.source.give(
        [&](std::span<const std::byte> piece) { logical.insert(logical.end(), piece.begin(), piece.end()); });
    auto physical =
        std::make_shared<Storage>(host, static_cast<size_t>(state.bytes), host.streamOfThread(), "a constant");
    std::memset(physical->address(), 0, physical->bytes());
    pack(state.shape, state.layout, sizeOf(state.dtype), logical.data(), physical->address());
    std::vector<Slot> slots = state.mirrors;
    slots.insert(slots.begin(), state.slot);
    for (const Slot &slot : slots)
      copyStorage(*physical, 0, *made->memory[plan_.deviceOf(slot)], static_cast<size_t>(slot.offset),
                  physical->bytes(), site, physical);
  }
  return residents_.emplace_back(std::move(made)).get();
}

sluice_module *ArrayProgram::moduleOn(Stream &stream, size_t module) {
  DeviceContext &context = stream.owner().context();
  int32_t ordinal = stream.device().ordinal();
  std::lock_guard lock(mutex_);
  for (const std::unique_ptr<LoadedModule> &known : modules_)
    if (known->context == &context && known->ordinal == ordinal && known->module == module)
      return known->loaded.get();
  const sluice_code_section &code = artifact_->sections[plan_.modules[module].section];
  return modules_
      .emplace_back(std::make_unique<LoadedModule>(&context, ordinal, module, DeviceModule(context, ordinal, code)))
      ->loaded.get();
}

//===- a call -----------------------------------------------------------------------------------------------------===//

struct ArrayProgram::Call {
  std::span<ArrayDevice *const> devices;
  const CallSite &site;
  std::pmr::memory_resource *memory;
  std::pmr::vector<std::byte *> bases{memory};
  std::pmr::vector<Stream *> streams{memory};
  std::pmr::vector<StoragePointer> packed{memory}; ///< inputs in other orders than row-major
  std::vector<WorkPointer> events = {};            ///< by step of the list that runs

  std::byte *addressOf(const Place &place) const { return bases[place.base] + place.offset; }
};

/// The storage, or a copy if another library may write its memory: results must not change.
static StoragePointer unshared(const StoragePointer &storage, const CallSite &site) {
  if (storage->sharing() == Sharing::none)
    return storage;
  ArrayDevice &device = storage->device();
  auto copy = std::make_shared<Storage>(device, storage->bytes(), device.streamOfThread(), site.function);
  copyStorage(*storage, 0, *copy, 0, storage->bytes(), site, storage);
  return copy;
}

StoragePointer ArrayProgram::newOutput(size_t number, ArrayDevice &device, const CallSite &site) const {
  if (outputPackings_[number])
    return std::make_shared<Storage>(device, outputPackings_[number], device.streamOfThread(), site.function);
  return std::make_shared<Storage>(device, static_cast<size_t>(entry_->outputs[number].bytes), device.streamOfThread(),
                                   site.function);
}

std::vector<StoragePointer> ArrayProgram::call(std::span<const StoragePointer> inputs,
                                               std::span<ArrayDevice *const> devices, const CallSite &site) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (const Value &input = entry_->inputs[i]; input.below > 0 && plan_.deviceOf(input.slot) == 0) {
      inputs[i]->synchronize();
      checkIndices(plan_, input, inputs[i]->address(), {1, 0, 1});
    }
  std::byte buffer[2048];
  std::pmr::monotonic_buffer_resource memory(buffer, sizeof buffer);
  Call call{devices, site, &memory};
  for (size_t i = 0; i < devices.size(); ++i)
    call.streams.push_back(isUsed_[i] ? &devices[i]->streamOfThread() : nullptr);
  // Copies in any stream may read an input, so that all streams wait.
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (Stream *stream : call.streams)
      if (stream)
        inputs[i]->waitToRead(*stream);
    if (!inputPackings_[i]) {
      call.bases.push_back(inputs[i]->address());
      continue;
    }
    call.packed.push_back(unshared(inputs[i], site));
    call.bases.push_back(call.packed.back()->packedAddress(inputPackings_[i]));
  }
  std::vector<StoragePointer> outputs(entry_->outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    ArrayDevice &device = *devices[plan_.deviceOf(entry_->outputs[i].slot)];
    size_t own = inputs.size() + i;
    if (outputPlaces_[i].base < inputs.size())
      outputs[i] = unshared(inputs[outputPlaces_[i].base], site);
    else if (outputPlaces_[i].base < own)
      outputs[i] = outputs[outputPlaces_[i].base - inputs.size()];
    else
      outputs[i] = newOutput(i, device, site);
    bool isOwn = outputPlaces_[i].base >= own; // others are written at their own base
    call.bases.push_back(!isOwn               ? nullptr
                         : outputPackings_[i] ? outputs[i]->packedAddress(outputPackings_[i])
                                              : outputs[i]->address());
  }
  std::pmr::vector<StoragePointer> transient(&memory);
  for (size_t i = 0; i < devices.size(); ++i) {
    if (transientBytes_[i] > 0)
      transient.push_back(std::make_shared<Storage>(*devices[i], static_cast<size_t>(transientBytes_[i]),
                                                    devices[i]->streamOfThread(), site.function));
    call.bases.push_back(transientBytes_[i] > 0 ? transient.back()->address() : nullptr);
  }
  const Resident *resident = residentOn(devices);
  for (size_t i = 0; i < devices.size(); ++i) {
    Storage *its = resident ? resident->memory[i].get() : nullptr;
    for (Stream *stream : call.streams)
      if (its && stream)
        its->waitToRead(*stream);
    call.bases.push_back(its ? its->address() : nullptr);
  }
  call.bases.push_back(static_cast<std::byte *>(const_cast<void *>(artifact_->constants))); // only read

  Status status = guarded([&] {
    if (isParallel_ && call.streams[0]) // gather the threads once for all launches
      call.streams[0]->owner().team().enter([&] { run(list_, call); });
    else
      run(list_, call);
  });
  // Two rounds: each stream waits for all others, so that one event per storage orders all its uses.
  std::pmr::vector<WorkPointer> ends(&memory);
  bool isCrossing = std::count_if(call.streams.begin(), call.streams.end(), [](Stream *its) { return its; }) > 1;
  for (int round = 0; round < (isCrossing ? 2 : 1); ++round) {
    std::pmr::vector<WorkPointer> before = std::exchange(ends, std::pmr::vector<WorkPointer>(&memory));
    for (Stream *stream : call.streams) {
      if (stream && !stream->isImmediate())
        for (const WorkPointer &other : before)
          guarded([&] { stream->waitFor(other); });
      ends.push_back(stream ? stream->record(site) : nullptr);
    }
  }
  for (const StoragePointer &storage : transient)
    for (const WorkPointer &end : ends)
      storage->noteRead(end);
  for (const StoragePointer &input : inputs)
    for (const WorkPointer &end : ends)
      input->noteRead(end);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputPlaces_[i].base >= inputs.size())
      outputs[i]->noteWrite(ends[writers_[i]]);
  if (!status.ok())
    throw Error(status.code, concat(site.text(), ": ", status.message));
  size_t first = inputs.size() + outputs.size();
  for (size_t i = 0; i < outputs.size(); ++i) // an output that is a constant is copied
    if (outputPlaces_[i].base >= first) {
      size_t device = plan_.deviceOf(entry_->outputs[i].slot);
      auto offset = static_cast<size_t>(outputPlaces_[i].offset);
      if (outputPlaces_[i].base < first + 2 * devices.size())
        copyStorage(*resident->memory[device], offset, *outputs[i], 0, outputs[i]->bytes(), site,
                    resident->memory[device]);
      else
        std::memcpy(outputs[i]->address(), call.bases.back() + offset, outputs[i]->bytes());
    }
  return outputs;
}

void ArrayProgram::run(const List &list, Call &call) {
  std::vector<WorkPointer> outer = std::exchange(call.events, {});
  for (size_t i = 0; i < list.steps.size(); ++i) {
    const Step &step = list.steps[i];
    if (step.action->copy() && step.action->copy()->when == Copy::When::stale)
      continue; // residentOn has copied constants to all devices
    for (size_t wait : step.waits)
      if (wait < call.events.size())
        call.streams[step.device]->waitFor(call.events[wait]);
    if (step.action->launch())
      runLaunch(step, call);
    else if (step.action->copy())
      runCopy(step, call);
    else
      runLoop(step, call);
    if (step.isAwaited) {
      call.events.resize(list.steps.size());
      call.events[i] = call.streams[step.device]->record(call.site);
    }
  }
  call.events = std::move(outer);
}

void ArrayProgram::runLaunch(const Step &step, Call &call) {
  std::pmr::vector<void *> addresses(call.memory);
  addresses.reserve(step.places.size());
  for (const Place &place : step.places)
    addresses.push_back(call.addressOf(place));
  Stream &stream = *call.streams[step.device];
  sluice_launch launch = step.launch;
  launch.addresses = addresses.data();
  if (step.module)
    launch.module = moduleOn(stream, *step.module);
  ArrayDevices::ofProcess().launches.fetch_add(1, std::memory_order_relaxed);
  stream.queue().launch(launch);
}

void ArrayProgram::runCopy(const Step &step, Call &call) {
  const Copy &copy = *step.action->copy();
  ArrayDevice &from = *call.devices[plan_.deviceOf(copy.from)], &to = *call.devices[plan_.deviceOf(copy.to)];
  auto bytes = static_cast<size_t>(copy.bytesFor(1));
  copyBetween(*call.streams[step.device], from, call.addressOf(step.places[0]), to, call.addressOf(step.places[1]),
              bytes, call.site);
}

void ArrayProgram::runLoop(const Step &step, Call &call) {
  const Loop &loop = *step.action->loop();
  auto finish = [&] { // events in the loop are recorded per iteration: finish everything before
    for (Stream *stream : call.streams)
      if (stream)
        stream->finish(call.site);
  };
  bool isCrossing = std::count_if(isUsed_.begin(), isUsed_.end(), [](bool used) { return used; }) > 1;
  if (loop.condition || isCrossing)
    finish();
  if (loop.condition && *call.addressOf(step.condition) == std::byte(0))
    return;
  for (int64_t i = 0; i < loop.count; ++i) {
    run(step.list, call);
    if (isCrossing)
      finish();
  }
}

} // namespace sluice::runtime
