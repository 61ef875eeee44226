#include "runtime/device/Devices.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/plan/Reservation.h"

#include <algorithm>

namespace sluice::runtime {

DeviceContext &Devices::open(size_t number, Team &team) {
  const std::string &name = plan_.devices[number].backend;
  for (const std::unique_ptr<DeviceContext> &context : contexts_)
    if (context->backend() == name)
      return *context;
  contexts_.push_back(std::make_unique<DeviceContext>(group_.backend(name), team));
  contexts_.back()->setCrossBackendSync(&crossBackendSync_);
  return *contexts_.back();
}

DeviceContext &Devices::hostQueues() const {
  auto standIn =
      std::find_if(contexts_.begin() + 1, contexts_.end(), [](auto &item) { return item->takesHostQueues(); });
  return standIn == contexts_.end() ? *contexts_.front() : **standIn;
}

static sluice_queue_kind kindOf(const Queue &queue) {
  switch (queue.kind) {
  case QueueKind::compute:
    return SLUICE_QUEUE_COMPUTE;
  case QueueKind::copy:
    return SLUICE_QUEUE_COPY;
  case QueueKind::communication:
    return SLUICE_QUEUE_COMMUNICATION;
  }
  return SLUICE_QUEUE_COMPUTE;
}

Devices::Devices(const Plan &plan, const sluice_artifact &artifact, Team &team, const ReplicaGroup &group,
                 int64_t replica)
    : plan_(plan), group_(group), replica_(replica), ordinals_(group.ordinals(replica)),
      freeAtFirst_(plan.devices.size()), allocated_(plan.devices.size()), addresses_(plan.arenas.size()) {
  for (size_t i = 0; i < plan.devices.size(); ++i) {
    const Device &device = plan.devices[i];
    DeviceContext &context = open(i, team);
    checkPresence(context, device, ordinals_[i], group.demandText(device.backend));
    contextOf_.push_back(&context);
    if (i > 0) // host memory has other users
      freeAtFirst_[i] = freeBytes(i);
  }
  for (size_t i = 0; i < plan.arenas.size(); ++i)
    if (plan.arenas[i].device == 0)
      addHostArena(i, artifact);
  for (size_t device = 1; device < plan.devices.size(); ++device)
    reserve(device);
  for (const Kernel &kernel : plan.kernels)
    if (kernel.module)
      load(kernel.device, *kernel.module, artifact.sections[plan.modules[*kernel.module].section]);
  contextOf_[0] = &hostQueues();
  queues_.reserve(plan.queues.size());
  for (const Queue &queue : plan.queues) {
    queues_.emplace_back(context(queue.device), ordinal(queue.device), kindOf(queue), queue.name);
    if (!queues_.back().isImmediate())
      lateQueues_.push_back(&queues_.back());
  }
}

DeviceContext *Devices::copierOf(const Arena &arena) const {
  size_t number = static_cast<size_t>(&arena - plan_.arenas.data());
  for (const Entry &entry : plan_.entries)
    for (auto [action, times] : entry.allActions())
      for (const Copy &copy : action->copies()) {
        bool isFrom = copy.from.arena == number, isTo = copy.to.arena == number;
        DeviceContext *copier = contextOf_[plan_.deviceOf(isFrom ? copy.to : copy.from)];
        if ((isFrom || isTo) && CopiedHostMemory::isGivenBy(*copier))
          return copier;
      }
  return nullptr;
}

void Devices::addHostArena(size_t number, const sluice_artifact &artifact) {
  const Arena &arena = plan_.arenas[number];
  if (arena.isConstant()) {
    // Generated code only reads its constants; buffers are not const because operands and results share a table.
    addresses_[number] = static_cast<std::byte *>(const_cast<void *>(artifact.constants));
    return;
  }
  allocated_[0] += arena.bytes;
  std::string what = concat(textOf(0), ": the ", arena.name, " arena");
  if (DeviceContext *copier = arena.bytes > 0 ? copierOf(arena) : nullptr) {
    hostMemory_.emplace_back(*copier, static_cast<size_t>(arena.bytes), what);
    addresses_[number] = hostMemory_.back().data();
    return;
  }
  memory_.emplace_back(context(0), ordinals_[0], static_cast<size_t>(arena.bytes), what);
  addresses_[number] = memory_.back().data();
}

void Devices::reserve(size_t device) {
  Reservation reservation(plan_, device);
  allocated_[device] = reservation.bytes();
  memory_.emplace_back(context(device), ordinals_[device], static_cast<size_t>(reservation.bytes()),
                       concat(textOf(device), ": the plan (", reservation.text(), ")"));
  std::byte *begin = memory_.back().data();
  for (size_t i = 0; i < plan_.arenas.size(); ++i)
    if (plan_.arenas[i].device == device)
      addresses_[i] = begin + reservation.offsetOfArena(i);
  for (size_t i = 0; i < plan_.entries.size(); ++i)
    if (logBytes(plan_, plan_.entries[i], device) > 0)
      logs_[{device, i}] = begin + reservation.offsetOfLog(i);
}

std::vector<DeviceQueue *> Devices::queues(const std::vector<size_t> &numbers) {
  std::vector<DeviceQueue *> found;
  for (size_t number : numbers)
    found.push_back(&queue(number));
  return found;
}

std::vector<std::byte *> Devices::addresses(const Slot &slot) const {
  std::vector<std::byte *> all;
  for (int64_t copy = 0; copy < plan_.inFlight; ++copy)
    all.push_back(address(slot, copy));
  return all;
}

/// Loads the module, unless an earlier kernel of the device has loaded it.
void Devices::load(size_t device, size_t module, const sluice_code_section &code) {
  if (!modules_.contains({device, module}))
    modules_.try_emplace({device, module}, *contextOf_[device], ordinals_[device], code);
}

void Devices::synchronize() {
  for (DeviceQueue *queue : lateQueues_)
    queue->synchronize();
}

void Devices::settle() noexcept {
  crossBackendSync_.settle();
  for (DeviceQueue *queue : lateQueues_) {
    Status status = guarded([&] { queue->synchronize(); });
    if (!status.ok()) // an exchange's error may end the wait before later work is complete
      status = guarded([&] { queue->synchronize(); });
    if (!status.ok()) // its work may still use memory, which no other program may then get
      queue->context().lose();
  }
}

void Devices::connect(const std::map<size_t, sluice_unique_id> &ids) {
  for (const auto &[device, id] : ids) {
    communicators_[device] = std::make_unique<Communicator>(
        context(device), id,
        Communicator::Rank{static_cast<int32_t>(replica_), static_cast<int32_t>(group_.size()), ordinal(device)},
        group_.processes() ? &group_.processes()->link() : nullptr);
    context(device).setPatience(group_.deadline());
  }
}

void Devices::abortCollectives() noexcept {
  for (auto &[device, communicator] : communicators_)
    communicator->abort();
}

size_t Devices::queueBetween(size_t device, bool last) const {
  for (QueueKind kind : {QueueKind::copy, QueueKind::compute, QueueKind::communication}) {
    auto isIts = [&](const Queue &queue) { return queue.device == device && queue.kind == kind; };
    auto first = std::find_if(plan_.queues.begin(), plan_.queues.end(), isIts);
    if (first == plan_.queues.end())
      continue;
    auto found = last ? std::find_if(plan_.queues.rbegin(), plan_.queues.rend(), isIts).base() - 1 : first;
    return static_cast<size_t>(found - plan_.queues.begin());
  }
  return plan_.queues.size(); // the plan was checked
}

int64_t Devices::freeBytes(size_t device) const {
  DeviceContext &context = *contextOf_[device];
  int64_t unused = context.memory().unusedBytes(ordinals_[device]);
  return context.deviceInfo(ordinals_[device]).free_bytes + unused;
}

} // namespace sluice::runtime
