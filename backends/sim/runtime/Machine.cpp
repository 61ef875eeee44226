#include "backends/sim/runtime/Machine.h"

#include "backends/sim/runtime/Error.h"
#include "backends/sim/runtime/Ranks.h"

#include <algorithm>
#include <atomic>
#include <random>
#include <utility>

namespace sluice::sim {

using Clock = std::chrono::steady_clock;

static constexpr std::chrono::milliseconds kLongestPause{1}; // between two checks of a signal of another backend

/// Names are random: machines with equal settings are different devices.
static std::string drawName() {
  std::random_device random;
  std::string name = "sim";
  for (int part = 0; part < 4; ++part)
    name += "-" + std::to_string(random());
  return name;
}

Machine::Machine(const Settings &settings)
    : settings_(settings), scheduler_(settings.seed, settings.pending), links_(settings) {
  std::string name = drawName();
  for (int32_t device = 0; device < settings.devices; ++device) {
    devices_.emplace_back(device, settings.memoryBytes);
    identities_.push_back(name + ":" + std::to_string(device));
  }
}

DeviceMemory &Machine::memory(int32_t device) {
  if (device < 0 || device >= deviceCount())
    throw Error(SLUICE_UNSUPPORTED, "there is no device sim:" + std::to_string(device) + "; this context has " +
                                        std::to_string(deviceCount()));
  return devices_[static_cast<size_t>(device)];
}

/// The virtual time at which the next piece of work that `host` puts into a queue can start.
static double earliest(const Queue &queue, const Host &host) { return std::max(queue.free, host.time); }

//===- addresses --------------------------------------------------------------------------------------------------===//

std::string Machine::bytesText(int32_t device, uintptr_t begin, uintptr_t end) const {
  if (device == SLUICE_HOST)
    return std::to_string(end - begin) + " bytes of host memory";
  DeviceMemory::Address address = devices_[static_cast<size_t>(device)].locate(reinterpret_cast<void *>(begin));
  return "bytes " + std::to_string(address.offset) + " to " + std::to_string(address.offset + (end - begin)) +
         " of allocation " + std::to_string(address.block) + " of " + deviceText(device);
}

void Machine::checkAccess(const std::string &what, const Access &access) const {
  const Buffer &buffer = access.buffer;
  if (access.device != SLUICE_HOST) {
    if (!devices_[static_cast<size_t>(access.device)].contains(buffer.address, buffer.bytes))
      throw Error(SLUICE_INVALID, what + ": " + access.what + " (" + std::to_string(buffer.bytes) +
                                      " bytes) does not lie in one allocation of " + deviceText(access.device));
    return;
  }
  for (size_t device = 0; device < devices_.size(); ++device)
    if (devices_[device].contains(buffer.address, 1))
      throw Error(SLUICE_INVALID, what + ": " + access.what + " lies in memory of " +
                                      deviceText(static_cast<int32_t>(device)) + ", not of the host");
}

void Machine::checkAccesses(const std::string &what, const std::vector<Access> &accesses) const {
  for (const Access &access : accesses)
    checkAccess(what, access);
}

void Machine::endUses(int32_t device, void *address, const char *what) {
  uintptr_t begin = reinterpret_cast<uintptr_t>(address);
  size_t bytes = memory(device).sizeOf(address);
  if (std::optional<Conflict> conflict = history_.findUnfinished(begin, begin + bytes, waitedFor_))
    throw Error(SLUICE_INTERNAL, std::to_string(bytes) + " bytes of " + deviceText(device) + " cannot be " + what +
                                     ": the host has not waited for " + *conflict->earlier.text);
  history_.forget(begin, begin + bytes);
}

void Machine::release(int32_t device, void *address) {
  endUses(device, address, "released");
  memory(device).release(address);
}

void Machine::clear(int32_t device, void *address) {
  endUses(device, address, "cleared");
  memory(device).clear(address);
}

//===- order and time ---------------------------------------------------------------------------------------------===//

void Machine::remove(const Host &host) {
  if (hosts_.erase(&host) == 0 || !hosts_.empty())
    return;
  scheduler_ = Scheduler(settings_.seed, settings_.pending);
  links_ = Links(settings_);
  history_ = AccessHistory();
  waitedFor_ = VectorClock();
  unused_.clear();
  queues_.clear();
}

/// A dropped queue's number and order go to a new queue, because every clock has a place for each number. The work of
/// the new queue counts as ordered after that of the old one, which is done.
Queue &Machine::addQueue(int32_t device, const char *name, const Host &host) {
  if (device != SLUICE_HOST)
    memory(device); // checks the number
  hosts_.insert(&host);
  if (unused_.empty()) {
    unused_.push_back(&queues_.emplace_back());
    unused_.back()->number = scheduler_.addQueue();
  }
  Queue &queue = *unused_.back();
  unused_.pop_back();
  VectorClock order = std::move(queue.order);
  size_t number = queue.number;
  queue = Queue();
  queue.number = number;
  queue.device = device;
  queue.name = name;
  queue.order = std::move(order);
  return queue;
}

void Machine::drop(Queue &queue, Host &host) {
  bool isHeld = queue.heldBy || !queue.backlog.empty();
  queue.isDropped = true;
  for (const auto &[id, ranks] : ranks_)
    if (ranks) // some rank has joined with the id
      ranks->leave(queue);
  free(queue);
  settle();
  scheduler_.drop(queue.number);
  host.order.join(queue.order);
  waitedFor_.join(queue.order);
  if (!isHeld) // else the position that it waits for refers to it
    unused_.push_back(&queue);
}

void Machine::checkCapturesNot(const Queue &queue, const char *what) {
  if (queue.captured)
    throw Error(SLUICE_USAGE, std::string("sim: queue ") + queue.name + " captures, and cannot " + what);
}

void Machine::putInOrder(Queue &queue, const Host &host, std::function<void(const Host &)> operation) {
  if (!queue.heldBy && queue.backlog.empty())
    return operation(host);
  queue.backlog.push_back([operation = std::move(operation), host] { operation(host); });
}

void Machine::free(Queue &queue) {
  queue.heldBy = nullptr;
  freed_.push_back(&queue);
}

void Machine::settle() {
  while (!freed_.empty()) {
    Queue &queue = *freed_.front();
    freed_.pop_front();
    while (!queue.heldBy && !queue.backlog.empty()) {
      std::function<void()> operation = std::move(queue.backlog.front());
      queue.backlog.pop_front();
      try {
        operation();
      } catch (const Error &error) {
        queue.failures.push_back(std::make_shared<Failure>(error));
      }
    }
  }
  settled_.notify_all();
}

std::shared_ptr<Recording> Machine::record(Queue &queue, const Host &host) {
  checkCapturesNot(queue, "record events or be waited for");
  auto recording = std::make_shared<Recording>();
  recording->queue = &queue;
  putInOrder(queue, host, [this, &queue, recording](const Host &then) {
    queue.order.join(then.order);
    std::erase_if(queue.failures, [](const auto &failure) { return failure->isTold; });
    recording->isKnown = true;
    recording->position = scheduler_.end(queue.number);
    recording->reached = earliest(queue, then);
    recording->last = queue.last;
    recording->order = queue.order;
    recording->failures = queue.failures;
    for (Queue *held : std::exchange(recording->held, {})) {
      follow(*held, *recording);
      free(*held);
    }
  });
  return recording;
}

void Machine::wait(Queue &queue, const std::shared_ptr<Recording> &recording, const Host &host) {
  checkCapturesNot(queue, "wait for events");
  putInOrder(queue, host, [this, &queue, recording](const Host &) {
    if (recording->isKnown)
      return follow(queue, *recording);
    hold(queue,
         [recording, name = queue.name] { return "queue " + name + " waits for an event" + reasonOf(*recording); });
    recording->held.push_back(&queue);
  });
}

void Machine::follow(Queue &queue, const Recording &recording) {
  scheduler_.wait(queue.number, recording.position);
  queue.order.join(recording.order);
  queue.free = std::max(queue.free, recording.reached);
  queue.failures.insert(queue.failures.end(), recording.failures.begin(), recording.failures.end());
}

std::string Machine::reasonOf(const Recording &recording) {
  return recording.isKnown || !recording.queue->heldBy ? "" : ": " + recording.queue->heldBy();
}

void Machine::awaitOthers(const Clock::time_point *deadline) {
  Turn &mine = *turn_;
  deadline ? void(settled_.wait_until(mine.lock_, *deadline)) : settled_.wait(mine.lock_);
  mine.resume();
}

void Machine::tellFailures(const Recording &recording) {
  for (const std::shared_ptr<Failure> &failure : recording.failures)
    if (!std::exchange(failure->isTold, true))
      throw failure->error;
}

void Machine::note(const Recording &recording, Host &host) {
  host.order.join(recording.order);
  host.time = std::max(host.time, recording.reached);
  waitedFor_.join(recording.order);
  tellFailures(recording);
}

void Machine::signal(Queue &queue, uint64_t *place, uint64_t number, const Host &host) {
  checkCapturesNot(queue, "signal");
  putInOrder(queue, host, [this, &queue, place, number](const Host &) {
    scheduler_.enqueue(queue.number, [place, number] { std::atomic_ref(*place).store(number); });
  });
}

void Machine::waitForSignal(Queue &queue, const uint64_t *place, uint64_t number, const Host &host) {
  checkCapturesNot(queue, "wait for signals");
  putInOrder(queue, host, [this, &queue, its = const_cast<uint64_t *>(place), number](const Host &) {
    scheduler_.waitUntil(queue.number, [its, number] { return std::atomic_ref(*its).load() >= number; });
  });
}

bool Machine::runUntil(const Recording &recording, const Clock::time_point *deadline) {
  while (!scheduler_.runUntil(recording.position)) {
    Clock::time_point now = Clock::now(), next = now + kLongestPause;
    if (deadline && now >= *deadline)
      return false;
    awaitOthers(&next);
  }
  return true;
}

void Machine::synchronize(const Recording &recording, Host &host) {
  while (!recording.isKnown)
    awaitOthers(nullptr);
  runUntil(recording, nullptr);
  note(recording, host);
}

bool Machine::query(const Recording &recording, Host &host) {
  bool isDone = recording.isKnown && scheduler_.isDone(recording.position);
  if (isDone)
    note(recording, host);
  else
    scheduler_.runAny();
  return isDone;
}

bool Machine::synchronizeUntil(const Recording &recording, Host &host, Clock::time_point deadline) {
  if (query(recording, host))
    return true;
  while (!recording.isKnown && Clock::now() < deadline)
    awaitOthers(&deadline);
  if (Clock::now() >= deadline || !runUntil(recording, &deadline))
    return false;
  note(recording, host);
  return true;
}

void Machine::prune() {
  if (!history_.isLarge())
    return;
  VectorClock byAll = (*hosts_.begin())->order;
  for (const Host *host : hosts_)
    byAll.meet(host->order);
  history_.prune(byAll);
}

void Machine::noteRaces(const WorkName &work, const std::vector<Access> &accesses, const VectorClock &order) {
  prune();
  // Host memory may be freed and allocated again, by another thread, once a host has waited for its work. Accesses to
  // host memory are therefore ordered after everything that any host has waited for.
  VectorClock hostOrder = order;
  hostOrder.join(waitedFor_);
  for (const Access &access : accesses) {
    uintptr_t begin = reinterpret_cast<uintptr_t>(access.buffer.address);
    bool writes = access.buffer.access != SLUICE_READ;
    std::optional<Conflict> conflict = history_.note(begin, begin + access.buffer.bytes, writes, work,
                                                     access.device == SLUICE_HOST ? hostOrder : order);
    if (conflict && settings_.reportRaces)
      throw Error(SLUICE_INTERNAL, "race: " + *work.text + (writes ? " writes " : " reads ") +
                                       bytesText(access.device, conflict->begin, conflict->end) + ", which " +
                                       *conflict->earlier.text + (conflict->earlierWrites ? " writes" : " reads") +
                                       ", and nothing orders the two");
  }
}

void Machine::put(Queue &queue, Piece piece, const Host &host) {
  checkAccesses(piece.what, piece.accesses);
  if (queue.captured)
    return queue.captured->pieces.push_back(std::move(piece));
  putInOrder(queue, host, [this, &queue, piece = std::move(piece)](const Host &then) { enqueue(queue, piece, then); });
}

void Machine::enqueue(Queue &queue, const Piece &piece, const Host &host) {
  if (queue.isDropped)
    return;
  checkAccesses(piece.what, piece.accesses); // again: while it was deferred, memory may have been released
  queue.order.join(host.order);
  uint64_t sequence = scheduler_.end(queue.number).sequence + 1;
  queue.order.advance(queue.number, sequence);
  auto text = std::make_shared<const std::string>(piece.what + " in queue " + queue.name);
  noteRaces({queue.number, sequence, text}, piece.accesses, queue.order);
  queue.last = piece.schedule(earliest(queue, host));
  queue.free = queue.last.end;
  scheduler_.enqueue(queue.number, piece.work);
}

void Machine::putJointly(const std::vector<Arrival> &arrivals, double seconds, std::function<void()> work) {
  VectorClock order;
  std::vector<int32_t> devices;
  std::vector<QueuePosition> positions;
  double start = 0;
  for (const Arrival &arrival : arrivals) {
    order.join(arrival.queue->order);
    order.join(arrival.host.order);
    devices.push_back(arrival.queue->device);
    positions.push_back(scheduler_.end(arrival.queue->number));
    start = std::max(start, earliest(*arrival.queue, arrival.host));
  }
  auto [begin, end] = links_.scheduleRing(devices, seconds, start);
  for (const Arrival &arrival : arrivals)
    for (QueuePosition position : positions)
      scheduler_.wait(arrival.queue->number, position);
  QueuePosition done; // in the first queue, whose piece executes the work for all
  for (const Arrival &arrival : arrivals) {
    Queue &queue = *arrival.queue;
    bool isFirst = &arrival == &arrivals.front();
    if (!isFirst)
      scheduler_.wait(queue.number, done);
    uint64_t sequence = scheduler_.end(queue.number).sequence + 1;
    queue.order = order;
    queue.order.advance(queue.number, sequence);
    queue.last = {begin, end};
    queue.free = end;
    try {
      auto text = std::make_shared<const std::string>(arrival.what + " in queue " + queue.name);
      noteRaces({queue.number, sequence, text}, arrival.accesses, queue.order);
    } catch (const Error &error) {
      queue.failures.push_back(std::make_shared<Failure>(error));
    }
    QueuePosition position = scheduler_.enqueue(queue.number, isFirst ? std::move(work) : std::function<void()>([] {}));
    done = isFirst ? position : done;
  }
}

void Machine::beginCapture(Queue &queue) {
  checkCapturesNot(queue, "begin another capture");
  queue.captured = Sequence{queue.device, {}};
}

Sequence Machine::endCapture(Queue &queue) {
  if (!queue.captured)
    throw Error(SLUICE_USAGE, "sim: queue " + queue.name + " does not capture");
  return *std::exchange(queue.captured, std::nullopt);
}

void Machine::replay(Queue &queue, const Sequence &sequence, const Host &host) {
  checkCapturesNot(queue, "replay");
  if (sequence.device != queue.device)
    throw Error(SLUICE_USAGE, "sim: what was captured for " + deviceText(sequence.device) +
                                  " is replayed in a queue of " + deviceText(queue.device));
  for (const Piece &piece : sequence.pieces)
    checkAccesses(piece.what, piece.accesses);
  putInOrder(queue, host, [this, &queue, &sequence](const Host &then) { enqueueAll(queue, sequence, then); });
}

/// Each piece has a separate position in the queue, so that work of other queues can run in between.
void Machine::enqueueAll(Queue &queue, const Sequence &sequence, const Host &host) {
  double start = earliest(queue, host);
  for (const Piece &piece : sequence.pieces) {
    enqueue(queue, piece, host);
    start = &piece == &sequence.pieces.front() ? queue.last.start : start;
  }
  queue.last.start = sequence.pieces.empty() ? queue.last.start : start;
}

} // namespace sluice::sim
