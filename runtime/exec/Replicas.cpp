#include "runtime/exec/Replicas.h"

#include "runtime/base/Text.h"

#include <algorithm>
#include <exception>
#include <span>

namespace sluice::runtime {

Replicas::Replicas(const Plan &plan, const sluice_artifact &artifact, std::shared_ptr<DevicePool> pool, int threads,
                   const DeviceOptions &options)
    : group_(plan, std::move(pool), options), replicas_(static_cast<size_t>(group_.count())), onLate_(options.onLate) {
  int each = std::max(threads / static_cast<int>(size()), 1);
  auto make = [&](size_t number) {
    replicas_[number] = std::make_unique<Replica>(plan, artifact, each, group_,
                                                  group_.first() + static_cast<int64_t>(number), options.replays);
  };
  for (size_t i = 1; i < size(); ++i)
    threads_.push_back(std::make_unique<ReplicaThread>(concat("replica ", i)));
  std::map<size_t, sluice_unique_id> ids;
  Status made = guarded([&] {
    size() == 1 ? make(0) : inThreads(make);
    throwFailure();
    ids = makeIds();
  });
  if (ProcessGroup *processes = group_.processes())
    processes->settle("the devices of all", made, made.ok() ? devicesHere() : std::vector<NamedText>());
  else if (!made.ok())
    throw Error(made.code, made.message);
  connect(ids);
  if (size() > 1 && options.deadline > 0)
    watch_.emplace(group_.attendance(), options.deadline, [this](const std::string &message) { failLate(message); });
}

/// Communicators may have to synchronize when they are destroyed, so all replicas are destroyed concurrently.
Replicas::~Replicas() {
  if (ProcessGroup *processes = group_.processes();
      processes && std::uncaught_exceptions() > 0 && !processes->endsAlike())
    replicas_.front()->executor().devices().abortCollectives();
  if (size() == 1)
    return;
  guarded([&] { everywhere([](Replica &replica) { replica.executor().settle(); }); });
  inThreads([&](size_t number) { replicas_[number].reset(); });
}

/// The devices that exchange, and whether any of their collectives sums in a tree.
static std::map<size_t, bool> exchangingDevices(const Plan &plan) {
  std::map<size_t, bool> devices;
  for (const Entry &entry : plan.entries)
    for (const ListedAction &listed : entry.allActions())
      if (const Collective *collective = listed.action->collective())
        devices[plan.queues[listed.action->queues.front()].device] |= collective->reduction == Reduction::treeSum;
  return devices;
}

static void checkExchanges(const DeviceContext &context, const std::string &device, bool addsInTrees) {
  const sluice_backend_collectives *table = context.half().collectives;
  if (!table)
    failUnsupported(
        concat("cannot run replicas on ", device, ": backend ", quote(context.backend()), " has no collectives"));
  bool says = SLUICE_HAS_MEMBER(sluice_backend_collectives, table, no_tree_sums) && table->no_tree_sums;
  if (addsInTrees && says)
    failUnsupported(concat("cannot add the sums of logical shards on ", device, ": ", table->no_tree_sums));
}

std::map<size_t, sluice_unique_id> Replicas::makeIds() {
  std::map<size_t, sluice_unique_id> ids;
  Devices &first = replicas_.front()->executor().devices();
  for (auto [device, addsInTrees] : exchangingDevices(first.plan())) {
    checkExchanges(first.context(device), first.textOf(device), addsInTrees);
    ids[device] = group_.first() == 0 ? Communicator::makeId(first.context(device)) : sluice_unique_id{};
  }
  return ids;
}

std::vector<NamedText> Replicas::devicesHere() {
  std::vector<NamedText> claims;
  Devices &devices = replicas_.front()->executor().devices();
  for (size_t device = 1; device < devices.plan().devices.size(); ++device)
    if (const char *identity = devices.context(device).deviceInfo(devices.ordinal(device)).identity)
      claims.push_back({identity, concat("device, ", devices.textOf(device))});
  return claims;
}

void Replicas::connect(std::map<size_t, sluice_unique_id> &ids) {
  Devices &first = replicas_.front()->executor().devices();
  if (ProcessGroup *processes = group_.processes())
    for (auto &[device, id] : ids)
      processes->broadcast(concat("the id for ranks of ", first.textOf(device)),
                           std::as_writable_bytes(std::span(id.bytes)));
  everywhere([&](Replica &replica) { replica.executor().devices().connect(ids); });
}

void Replicas::inThreads(const std::function<void(size_t number)> &body) {
  std::vector<std::function<void()>> parts;
  for (size_t number = 0; number < size(); ++number)
    parts.push_back([&, number] {
      if (Status status = guarded([&] { body(number); }); !status.ok())
        fail(number, status);
    });
  setAtWork(true);
  for (size_t number = 1; number < size(); ++number)
    threads_[number - 1]->start(parts[number]);
  parts.front()();
  for (const std::unique_ptr<ReplicaThread> &thread : threads_)
    thread->wait();
  setAtWork(false);
}

void Replicas::setAtWork(bool areAtWork) {
  std::lock_guard lock(mutex_);
  areAtWork_ = areAtWork;
}

void Replicas::fail(size_t number, const Status &status) {
  {
    std::lock_guard lock(mutex_);
    if (!failure_ || (failure_->code() == ExitCode::peerLost && status.code != ExitCode::peerLost))
      failure_.emplace(status.code, concat("replica ", number, ": ", status.message));
  }
  if (replicas_[number])
    replicas_[number]->executor().devices().abortCollectives();
}

/// An earlier failure is the root cause. It is reported here, because `inThreads` would first wait for the late
/// replica.
void Replicas::failLate(const std::string &message) {
  std::optional<Error> failure;
  {
    std::lock_guard lock(mutex_);
    if (!areAtWork_)
      return;
    if (!failure_)
      failure_.emplace(ExitCode::deadline, message);
    failure = failure_;
  }
  if (onLate_)
    return onLate_(*failure);
  replicas_.front()->executor().devices().abortCollectives();
}

} // namespace sluice::runtime
