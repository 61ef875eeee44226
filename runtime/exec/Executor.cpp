#include "runtime/exec/Executor.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

#include <cstring>

namespace sluice::runtime {

/// The addresses of all arenas: those on accelerators are added to those on the host.
static std::vector<std::byte *> &withDevices(std::vector<std::byte *> &arenas, const Plan &plan,
                                             const Devices &devices) {
  for (size_t i = 0; i < plan.arenas.size(); ++i)
    if (plan.arenas[i].device != 0)
      arenas[i] = devices.arena(i);
  return arenas;
}

Executor::Executor(const Plan &plan, const sluice_artifact &artifact, std::vector<std::byte *> &arenas, Team &team,
                   const DeviceOptions &options)
    : plan_(plan), arenas_(arenas), team_(team), devices_(plan, artifact, team, options), copies_(devices_, times_),
      forecast_(plan), mirrors_(plan), stale_(mirrors_.count(), true), logs_(plan.entries.size()) {
  withDevices(arenas_, plan, devices_);
  for (const Entry &entry : plan.entries) {
    programs_.emplace_back(entry, plan, artifact, devices_, arenas_);
    fetched_.emplace_back(entry.outputs.size(), -1);
  }
}

Executor::~Executor() {
  guarded([&] { synchronize(); }); // whatever it was, nobody waits for it any more
}

void Executor::synchronize() {
  team_.enter([&] { devices_.synchronize(); });
}

//===- a call -----------------------------------------------------------------------------------------------------===//

void Executor::changeTo(size_t entry) {
  if (current_ && *current_ != entry)
    synchronize();
  current_ = entry;
}

void Executor::run(const Entry &entry, int64_t call, int64_t rows) {
  size_t number = numberOf(entry);
  changeTo(number);
  OutputLog *log = logs_[number].get();
  if (log && log->isFull()) {
    forecast_.bring(entry);
    log->bring();
  }
  forecast_.call(entry, rows);
  DeviceProgram &program = programs_[number];
  for (size_t i = 0; i < program.steps.size(); ++i)
    if (!program.steps[i].isAsked())
      issue(number, i, call, rows);
  if (log)
    log->endCall(call);
  for (size_t mirror : program.mirrorsMadeStale)
    stale_[mirror] = true;
}

/// Waits, work, what ends with it, and its event. A stale copy that is not due keeps its place in the order.
void Executor::issue(size_t entry, size_t number, int64_t call, int64_t rows) {
  DeviceStep &step = programs_[entry].steps[number];
  Work work{.entry = entry, .action = number, .call = call};
  waitFor(step, programs_[entry], call);
  if (step.hostLaunch)
    runHere(step, std::move(work), rows);
  else if (step.launch)
    launch(step, std::move(work), rows);
  else if (!step.copy->mirror || stale_[*step.copy->mirror])
    copy(step, std::move(work), rows);
  if (step.copy && step.copy->mirror)
    stale_[*step.copy->mirror] = false;
  if (logs_[entry] && !step.isAsked())
    logs_[entry]->afterStep(number, call);
  if (watcher_) {
    devices_.synchronize();
    watcher_(plan_.entries[entry], number);
  }
  for (const sluice_buffer &buffer : step.ends[static_cast<size_t>(call & 1)])
    step.queue->discard(buffer.address, buffer.bytes);
  if (DeviceEvent &event = step.event(call))
    step.queue->record(event);
}

void Executor::waitFor(DeviceStep &step, DeviceProgram &program, int64_t call) {
  for (const Wait &wait : step.action->waits) {
    if (wait.calls > call)
      continue;
    const DeviceEvent &event = program.steps[wait.action].event(call - wait.calls);
    if (step.queue)
      step.queue->wait(event);
    else if (event)
      event.synchronize();
  }
}

void Executor::runHere(const DeviceStep &step, Work work, int64_t rows) {
  double start = times_.wants(work.call) ? WorkTimes::now() : 0;
  step.hostLaunch->run(team_, work.call, rows);
  if (!times_.wants(work.call))
    return;
  work.name = step.action->launch()->name;
  work.queue = step.action->queue;
  times_.note(std::move(work), start, WorkTimes::now());
}

void Executor::launch(const DeviceStep &step, Work work, int64_t rows) {
  const DeviceStep::LaunchWork &launch = *step.launch;
  const Kernel &kernel = *launch.kernel;
  const std::vector<sluice_buffer> &buffers = launch.buffers[static_cast<size_t>(work.call & 1)];
  stages_.clear();
  for (const HostStage &stage : launch.stages)
    stages_.push_back({stage.function, stage.stage->tasksFor(rows)});
  double start = times_.wants(work.call) ? WorkTimes::now() : 0;
  const std::string &name = step.action->launch()->name;
  step.queue->launch({sizeof(sluice_launch), name.c_str(), buffers.data(), buffers.size(), rows, stages_.data(),
                      stages_.size(), launch.module, kernel.function.empty() ? nullptr : kernel.function.c_str(),
                      kernel.parameters.data(), kernel.parameters.size(), kernel.cost.flopsFor(rows),
                      kernel.cost.bytesFor(rows), kernel.kind.c_str()});
  if (!times_.wants(work.call))
    return;
  work.name = name;
  work.queue = step.action->queue;
  times_.note(std::move(work), start, *step.queue);
}

void Executor::copy(const DeviceStep &step, Work work, int64_t rows) {
  const DeviceStep::CopyWork &copy = *step.copy;
  size_t parity = static_cast<size_t>(work.call & 1);
  copies_.copy(step.action->queue,
               {copy.kind, copy.from[parity], copy.to[parity], step.action->copy()->bytesFor(rows), copy.label},
               std::move(work));
}

//===- what the host touches --------------------------------------------------------------------------------------===//

void Executor::waitForInput(const Value &input, int64_t call) {
  changeTo(input.entry);
  for (const Wait &wait : input.waits) {
    if (wait.calls > call)
      continue;
    const DeviceEvent &event = programs_[input.entry].steps[wait.action].event(call - wait.calls);
    if (event)
      team_.enter([&] { event.synchronize(); });
  }
}

void Executor::fetchOutput(const Value &output, int64_t call, int64_t rows) {
  DeviceProgram &program = programs_[output.entry];
  size_t number = static_cast<size_t>(&output - program.entry->outputs.data());
  int64_t &fetched = fetched_[output.entry][number];
  if (fetched == call)
    return;
  fetched = call;
  std::optional<size_t> asked = program.askedFor(output), writer = program.writerOf(output.slot, output.bytes);
  team_.enter([&] {
    if (asked) {
      forecast_.read(*program.entry, output, rows);
      issue(output.entry, *asked, call, rows);
      program.steps[*asked].queue->synchronize();
    } else if (writer && program.steps[*writer].queue) {
      program.steps[*writer].event(call).synchronize();
    }
  });
}

void Executor::copyNow(size_t device, const CopyKind &kind, const std::byte *from, std::byte *to, int64_t bytes,
                       const std::string &label) {
  size_t queue = kind.to == device ? devices_.queueInto(device) : devices_.queueOutOf(device);
  team_.enter([&] {
    devices_.synchronize();
    copies_.copy(queue, {kind, from, to, bytes, label}, {});
    devices_.queue(queue)->synchronize();
  });
}

void Executor::writeState(const State &state, std::span<const std::byte> physical) {
  size_t device = plan_.deviceOf(state.slot);
  std::byte *at = arenas_[state.slot.arena] + state.slot.offset;
  forecast_.write(state);
  auto [first, end] = mirrors_.of(static_cast<size_t>(&state - plan_.states.data()));
  for (size_t mirror = first; mirror < end; ++mirror)
    stale_[mirror] = true;
  if (device != 0)
    return copyNow(device, {0, device, setReason}, physical.data(), at, state.bytes, state.name);
  synchronize();
  std::memcpy(at, physical.data(), physical.size());
}

void Executor::readState(const State &state, std::span<std::byte> physical) {
  size_t device = plan_.deviceOf(state.slot);
  const std::byte *at = arenas_[state.slot.arena] + state.slot.offset;
  forecast_.read(state);
  if (device != 0)
    return copyNow(device, {device, 0, readReason}, at, physical.data(), state.bytes, state.name);
  synchronize();
  std::memcpy(physical.data(), at, physical.size());
}

void Executor::readBuffer(const Buffer &buffer, int64_t call, std::span<std::byte> data) {
  size_t device = plan_.deviceOf(buffer.slot);
  const std::byte *at = arenas_[buffer.slot.arena] + buffer.slot.offsetFor(call);
  static const std::string label = "a buffer";
  if (device != 0)
    return copyNow(device, {device, 0, "debug"}, at, data.data(), buffer.bytes, label);
  synchronize();
  std::memcpy(data.data(), at, data.size());
}

void Executor::keepOutputs(const Entry &entry, const std::vector<const Value *> &outputs) {
  std::unique_ptr<OutputLog> &log = logs_[numberOf(entry)];
  if (log && log->outputs() == outputs)
    return;
  synchronize();
  forecast_.keep(entry, outputs);
  log = std::make_unique<OutputLog>(programs_[numberOf(entry)], outputs, plan_, devices_, copies_, arenas_);
}

std::vector<double> Executor::takeOutputs(const Entry &entry) {
  OutputLog &log = *logs_[numberOf(entry)];
  forecast_.bring(entry);
  team_.enter([&] { log.bring(); });
  return log.take();
}

std::vector<PairCount> Executor::copies() {
  auto engine = byPair(engineCopies());
  std::vector<PairCount> counts;
  for (const auto &[pair, executed] : byPair(executedCopies())) {
    auto [from, to] = pair;
    if (from != to)
      counts.push_back({from, to, countsCopies(from == 0 ? to : from) ? engine[pair] : executed});
  }
  return counts;
}

bool Executor::countsCopies(size_t device) const {
  DeviceContext *context = devices_.context(device);
  return context && context->half().copy_counts;
}

CopyCounts Executor::engineCopies() {
  synchronize();
  CopyCounts counts;
  for (const std::unique_ptr<DeviceContext> &context : devices_.contexts()) {
    auto deviceWith = [&](int32_t ordinal) {
      for (size_t i = 1; i < plan_.devices.size(); ++i)
        if (ordinal != SLUICE_HOST && devices_.context(i) == context.get() && devices_.ordinal(i) == ordinal)
          return i;
      return size_t(0);
    };
    for (const sluice_copy_count &count : context->copyCounts()) {
      counts[{deviceWith(count.from_device), deviceWith(count.to_device), ""}] += {count.copies, count.bytes};
    }
  }
  return counts;
}

} // namespace sluice::runtime
