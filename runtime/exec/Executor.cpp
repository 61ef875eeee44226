#include "runtime/exec/Executor.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

#include <cstring>

namespace sluice::runtime {

Executor::Executor(const Plan &plan, const sluice_artifact &artifact, Team &team, const ReplicaGroup &group,
                   int64_t replica, bool replays)
    : plan_(plan), team_(team), devices_(plan, artifact, team, group, replica), copies_(devices_, times_),
      forecast_(plan), mirrors_(plan), replays_(replays), stale_(mirrors_.count(), true), derivations_(plan),
      staleDerivations_(plan.entries.size(), true), derivationCalls_(plan.entries.size()), logs_(plan.entries.size()) {
  for (const Entry &entry : plan.entries) {
    programs_.emplace_back(entry, plan, artifact, devices_);
    findSegments(programs_.size() - 1);
    fetched_.emplace_back(entry.outputs.size(), -1);
  }
}

Executor::~Executor() { settle(); }

void Executor::findSegments(size_t entry) {
  const OutputLog *log = logs_[entry].get();
  if (replays_)
    programs_[entry].findSegments([&](size_t step) { return log && log->keepsAfter(step); });
}

void Executor::settle() {
  if (devices_.mayBeBusy())
    team_.enter([&] { devices_.settle(); });
}

void Executor::synchronize() {
  if (devices_.mayBeBusy())
    team_.enter([&] { devices_.synchronize(); });
}

//===- a call -----------------------------------------------------------------------------------------------------===//

void Executor::changeTo(size_t entry) {
  if (current_ && *current_ != entry)
    synchronize();
  current_ = entry;
}

void Executor::run(const Entry &entry, int64_t call, const RowShare &share) {
  for (size_t derivation : entry.derivations)
    if (staleDerivations_[derivation]) {
      changeTo(derivation);
      enqueue(derivation, derivationCalls_[derivation]++, {1, 0, 1});
      staleDerivations_[derivation] = false;
    }
  size_t number = numberOf(entry);
  changeTo(number);
  OutputLog *log = logs_[number].get();
  if (log && log->isFull()) {
    forecast_.bring(entry);
    log->bring();
  }
  forecast_.call(entry, share.rows);
  enqueue(number, call, share);
}

void Executor::enqueue(size_t number, int64_t call, const RowShare &share) {
  OutputLog *log = logs_[number].get();
  DeviceProgram &program = programs_[number];
  if (program.isResident)
    acquire();
  sluice_call rows{sizeof(sluice_call), share.rows, share.first, share.all};
  Call at = callOf(number, call);
  at.log = log;
  at.replays = replays_ && !watcher_ && !times_.wants(call);
  if (at.replays && !program.segmented.empty())
    issueSegments(program.steps, program.segmented, call, at, rows);
  else
    for (size_t step : program.called)
      issue(program.steps, step, call, at, rows);
  if (log)
    log->endCall(call);
  for (size_t mirror : program.mirrorsMadeStale)
    stale_[mirror] = true;
  for (size_t derivation : program.derivationsMadeStale)
    staleDerivations_[derivation] = true;
}

/// The order is: waits, work, discards, event. A copy whose mirror is not stale moves nothing, but its waits and its
/// event remain.
void Executor::issue(std::vector<DeviceStep> &list, size_t number, int64_t turn, const Call &at,
                     const sluice_call &rows) {
  DeviceStep &step = list[number];
  if (step.hasWaits)
    waitFor(step, list, turn);
  if (step.launch)
    launch(step, at, rows);
  else if (step.copy)
    copy(step, at, rows.rows);
  else if (step.exchange)
    step.exchange->put(copies_, at.copy, rows.rows, at.work(step));
  else if (step.collective)
    step.collective->put(at.copy, times_, at.work(step), collectives_);
  else if (happens(*step.loop, list, turn, at))
    repeat(*step.loop, at, rows);
  else
    step.loop->meeting.meet();
  if (at.log)
    at.log->afterStep(number, at.number);
  if (watcher_)
    watch(step, at);
  if (step.hasLastUses)
    discardLastUses(step, at);
  if (step.hasEvents)
    step.queue->record(step.event(turn));
}

void Executor::discardLastUses(DeviceStep &step, const Call &at) {
  for (const DeviceStep::LastUse &end : step.lastUses)
    end.queue->discard(end.at[at.copy], end.bytes);
  if (step.endsMeeting)
    step.endsMeeting->meet();
}

void Executor::issueSegments(std::vector<DeviceStep> &list, SegmentedSteps &segmented, int64_t turn, const Call &at,
                             const sluice_call &rows) {
  for (const SegmentedSteps::Place &place : segmented.order)
    if (place.segment)
      issue(list, segmented.segments[*place.segment], turn, at, rows);
    else
      issue(list, place.step, turn, at, rows);
}

/// The same order as for a step: only the first step waits, and only the last step is visible to logs and waits.
void Executor::issue(std::vector<DeviceStep> &list, Segment &segment, int64_t turn, const Call &at,
                     const sluice_call &rows) {
  DeviceStep &first = list[segment.steps.front()], &last = list[segment.steps.back()];
  if (first.hasWaits)
    waitFor(first, list, turn);
  segment.sequences.issue({at.copy, rows.rows}, [&] { putSegment(list, segment, at, rows); });
  if (at.log)
    at.log->afterStep(segment.steps.back(), at.number);
  discardLastUses(last, at);
  if (last.hasEvents)
    last.queue->record(last.event(turn));
}

void Executor::putSegment(std::vector<DeviceStep> &list, const Segment &segment, const Call &at,
                          const sluice_call &rows) {
  for (size_t number : segment.steps) {
    DeviceStep &step = list[number];
    launch(step, at, rows);
    if (number != segment.steps.back())
      discardLastUses(step, at);
  }
}

void Executor::waitFor(DeviceStep &step, std::vector<DeviceStep> &list, int64_t turn) {
  for (const Wait &wait : step.action->waits)
    if (DeviceStep &awaited = list[wait.action]; wait.calls <= turn && awaited.hasEvents)
      step.queue->wait(awaited.event(turn - wait.calls));
}

void Executor::launch(DeviceStep &step, const Call &at, const sluice_call &rows) {
  const sluice_launch &launch = step.launch->forCall(at.copy, rows);
  if (!times_.wants(at.number))
    return step.queue->launch(launch);
  Work work = at.work(step);
  work.name = step.launch->name();
  work.queue = step.action->queues.front();
  times_.note(std::move(work), *step.queue, [&] { step.queue->launch(launch); });
}

void Executor::copy(const DeviceStep &step, const Call &at, int64_t rows) {
  std::optional<size_t> mirror = step.copy->mirror();
  if (mirror && !stale_[*mirror])
    return;
  if (mirror)
    stale_[*mirror] = false;
  copies_.copy(step.action->queues.front(), step.copy->forCall(at.copy, rows), at.work(step));
}

bool Executor::happens(const PreparedLoop &loop, std::vector<DeviceStep> &list, int64_t turn, const Call &at) {
  if (!loop.condition)
    return true;
  if (!loop.condition->writer)
    devices_.synchronize();
  else if (DeviceStep &writer = list[*loop.condition->writer]; writer.hasEvents)
    writer.event(turn).synchronize();
  return *loop.condition->at[at.copy] != std::byte(0);
}

void Executor::repeat(PreparedLoop &loop, Call at, const sluice_call &rows) {
  at.log = nullptr;
  loop.meeting.meet();
  bool replays = at.replays && !loop.segmented.empty();
  for (int64_t iteration = 0; iteration < loop.count; ++iteration)
    if (replays)
      issueSegments(loop.steps, loop.segmented, iteration, at, rows);
    else
      for (size_t step = 0; step < loop.steps.size(); ++step)
        issue(loop.steps, step, iteration, at, rows);
  loop.meeting.meet();
}

void Executor::watch(const DeviceStep &step, const Call &at) {
  devices_.synchronize();
  watcher_(plan_.entries[at.entry], step.number);
}

//===- host accesses ----------------------------------------------------------------------------------------------===//

void Executor::waitForInput(const Value &input, int64_t call) {
  changeTo(input.entry);
  for (const Wait &wait : input.waits)
    if (DeviceStep &awaited = programs_[input.entry].steps[wait.action]; wait.calls <= call && awaited.hasEvents)
      team_.enter([&] { awaited.event(call - wait.calls).synchronize(); });
}

void Executor::acquire() {
  for (const std::unique_ptr<DeviceContext> &context : devices_.contexts())
    if (context->half().acquire)
      context->check(context->half().acquire(context->get()), context->backend());
}

void Executor::bindInput(const Value &input, std::byte *address) {
  size_t device = plan_.deviceOf(input.slot);
  auto alignment = static_cast<size_t>(plan_.devices[device].alignment);
  if (reinterpret_cast<uintptr_t>(address) % alignment != 0)
    failUsage(concat("cannot bind input ", quote(input.name), ": its address is not a multiple of ", alignment,
                     " bytes, which ", devices_.textOf(device), " requires"));
  DeviceProgram &program = programs_[input.entry];
  if (std::string reason = program.whyFixed(input); !reason.empty())
    failUsage(concat("cannot bind input ", quote(input.name), " to memory of the caller: ", reason));
  std::byte *&bound = bound_.try_emplace(&input, devices_.address(input.slot)).first->second;
  if (bound == address)
    return;
  synchronize();
  program.rebind(input, address);
  findSegments(input.entry);
  bound = address;
}

void Executor::fetchOutput(const Value &output, int64_t call, int64_t rows) {
  DeviceProgram &program = programs_[output.entry];
  size_t number = static_cast<size_t>(&output - program.entry->outputs.data());
  int64_t &fetched = fetched_[output.entry][number];
  if (fetched == call)
    return;
  fetched = call;
  auto [asked, writer] = program.outputs[number];
  if (asked)
    team_.enter([&] {
      forecast_.read(*program.entry, output, rows);
      issue(program.steps, *asked, call, callOf(output.entry, call), {sizeof(sluice_call), rows, 0, rows});
      program.steps[*asked].queue->synchronize();
    });
  else if (writer && program.steps[*writer].hasEvents)
    team_.enter([&] { program.steps[*writer].event(call).synchronize(); });
}

/// Copies between the caller's memory and a location on a device, after all work is complete.
void Executor::copyNow(size_t device, const CopyKind &kind, const std::byte *from, std::byte *to, int64_t bytes,
                       const std::string &label) {
  synchronize();
  if (device == 0) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  size_t queue = kind.to == device ? devices_.queueInto(device) : devices_.queueOutOf(device);
  team_.enter([&] {
    copies_.copy(queue, {kind, from, to, bytes, label}, {});
    devices_.queue(queue).synchronize();
  });
}

void Executor::noteWrite(const State &state) {
  forecast_.write(state);
  auto number = static_cast<size_t>(&state - plan_.states.data());
  auto [first, end] = mirrors_.of(number);
  for (size_t mirror = first; mirror < end; ++mirror)
    stale_[mirror] = true;
  for (size_t derivation : derivations_.from(number))
    staleDerivations_[derivation] = true;
}

std::byte *Executor::hostStateToWrite(const State &state) {
  noteWrite(state);
  synchronize();
  return devices_.address(state.slot);
}

const std::byte *Executor::hostStateToRead(const State &state) {
  synchronize();
  return devices_.address(state.slot);
}

void Executor::writeState(const State &state, std::span<const std::byte> physical) {
  size_t device = plan_.deviceOf(state.slot);
  noteWrite(state);
  copyNow(device, {0, device, setReason}, physical.data(), devices_.address(state.slot), state.bytes, state.name);
}

void Executor::readState(const State &state, std::span<std::byte> physical) {
  size_t device = plan_.deviceOf(state.slot);
  forecast_.read(state);
  copyNow(device, {device, 0, readReason}, devices_.address(state.slot), physical.data(), state.bytes, state.name);
}

void Executor::readBuffer(const Buffer &buffer, int64_t call, std::span<std::byte> data) {
  size_t device = plan_.deviceOf(buffer.slot);
  static const std::string label = "a buffer";
  copyNow(device, {device, 0, "debug"}, devices_.address(buffer.slot, plan_.copyOf(call)), data.data(), buffer.bytes,
          label);
}

void Executor::keepOutputs(const Entry &entry, const std::vector<const Value *> &outputs) {
  std::unique_ptr<OutputLog> &log = logs_[numberOf(entry)];
  if (log && log->outputs() == outputs)
    return;
  synchronize();
  forecast_.keep(entry, outputs);
  DeviceProgram &program = programs_[numberOf(entry)];
  log = std::make_unique<OutputLog>(program, outputs, plan_, devices_, copies_);
  findSegments(numberOf(entry));
}

std::vector<double> Executor::takeOutputs(const Entry &entry) {
  OutputLog &log = *logs_[numberOf(entry)];
  forecast_.bring(entry);
  team_.enter([&] { log.bring(); });
  return log.take();
}

ReplayCount Executor::replayCount() const {
  ReplayCount count;
  for (const DeviceProgram &program : programs_)
    count += program.replayCount();
  return count;
}

std::vector<PairCount> Executor::copies() {
  auto engine = byPair(engineCopies());
  std::vector<PairCount> counts;
  for (const auto &[pair, executed] : byPair(executedCopies())) {
    auto [from, to] = pair;
    if (from != to)
      counts.push_back({from, to, countsCopies(from == 0 ? to : from) ? engine[pair] : executed, devices_.replica()});
  }
  return counts;
}

std::optional<CollectiveCount> Executor::countedCollectives(Collective::Kind kind) {
  synchronize();
  CollectiveCount sum;
  for (const auto &[device, communicator] : devices_.communicators()) {
    std::optional<CollectiveCount> count = communicator->counted(abiKindOf(kind));
    if (!count)
      return std::nullopt;
    sum.exchanges += count->exchanges;
    sum.bytes += count->bytes;
  }
  return sum;
}

bool Executor::countsCopies(size_t device) const { return devices_.context(device).half().copy_counts != nullptr; }

CopyCounts Executor::engineCopies() {
  synchronize();
  CopyCounts counts;
  for (const std::unique_ptr<DeviceContext> &context : devices_.contexts()) {
    auto deviceWith = [&](int32_t ordinal) {
      for (size_t i = 1; i < plan_.devices.size(); ++i)
        if (ordinal != SLUICE_HOST && &devices_.context(i) == context.get() && devices_.ordinal(i) == ordinal)
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
