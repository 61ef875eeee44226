// A double of NCCL, beside that of the driver, into whose streams it puts its work. Ranks are threads of this process and other
// processes of this machine, whose emulated devices they share.
//
// What it assumes of NCCL, and enforces with an error, is in CONTRACTS.md. Communicators do not block: whoever gets "in
// progress" asks for the communicator's state until it is another, and uses it for nothing else before; only then is work in its
// stream. Groups nest, and do everything at the last end. A difference between what ranks call for is an error of the
// communicators. After abort or destroy nothing is to be done with one.
//
// CUDA_EMU_NCCL_VERSION sets what version it says it has, CUDA_EMU_NCCL_DELAY how many times a call that is done is still said to be in
// progress, CUDA_EMU_NCCL_FAULT=RESULT@RANK:CALL which error a rank finds at which call for work, from 1 on.
#include "tests/cuda_emu/DriverState.h"
#include "tests/cuda_emu/NcclArithmetic.h"
#include "tests/cuda_emu/NcclTable.h"

#include <cstdio>
#include <cstring>
#include <unistd.h>
#include <utility>

namespace sluice::nccl_emu {

using namespace cuda_driver;

namespace {

enum Result { Fine, CudaError, SystemError, InternalError, InvalidArgument, InvalidUsage, RemoteError, InProgress };
enum Kind { AllReduce, Broadcast, Reduce, AllGather, ReduceScatter };

struct Id {
  char bytes[kIdBytes];
};

struct Config {
  size_t size;
  unsigned magic, version;
  int blocking;
};

/// What a rank calls for.
struct Work {
  Call call;
  const std::byte *send;
  std::byte *receive;
  size_t sendBytes, receiveBytes;
  Stream *stream;
};

struct Communicator {
  Communicator(std::shared_ptr<Table> table, const Id &id, int rank, int size, Device *device)
      : table(std::move(table)), id(id), rank(rank), size(size), device(device) {}

  std::shared_ptr<Table> table;
  Id id;
  int rank, size;
  Device *device;
  uint64_t asked = 0;     // calls for work
  std::vector<Work> late; // what is not yet in its stream
  int delay = 0;          // times that it is still in progress
  bool isAborted = false, isFinalizing = false;
  int error = Fine;

  Seat &seat() { return table->seats[rank]; }
};

std::map<Communicator *, std::shared_ptr<Communicator>> &live() {
  static auto *all = new std::map<Communicator *, std::shared_ptr<Communicator>>;
  return *all;
}

char lastError[256] = "";

int fail(int result, const std::string &why) {
  std::snprintf(lastError, sizeof lastError, "%s", why.c_str());
  return result;
}

void spoil(Communicator &its, int result, const std::string &why) {
  if (its.error == Fine)
    its.error = fail(result, why);
}

//===- work, in streams -------------------------------------------------------------------------------------------===//

/// Whether the stream goes on: all ranks have come so far, or it was aborted.
bool mayGoOn(Communicator &its, std::atomic<uint64_t> Seat::*progress, uint64_t number, uint64_t call) {
  if (its.isAborted)
    return true;
  if (its.error == Fine)
    if (int lost = its.table->findLost(call); lost >= 0)
      spoil(its, RemoteError, "rank " + std::to_string(lost) + " closed its connection");
  return its.error == Fine && its.table->haveAll(progress, number);
}

void send(Communicator &its, const Work &work, uint64_t number) {
  if (its.isAborted)
    return;
  if (work.sendBytes > 0) {
    sim::Unlocked unlocked({bufferAt(reinterpret_cast<Address>(work.send), work.sendBytes)});
    std::memcpy(its.table->sent[its.rank], work.send, work.sendBytes);
  }
  its.seat().call = work.call;
  its.seat().arrived.store(number, std::memory_order_release);
}

/// The first rank that calls for something else.
int findDifference(Communicator &its, const Call &call) {
  for (int rank = 0; rank < its.size; ++rank)
    if (!(its.table->seats[rank].call == call))
      return rank;
  return -1;
}

void receive(Communicator &its, const Work &work) {
  const Call &call = work.call;
  std::vector<const std::byte *> sent;
  for (int rank = 0; rank < its.size; ++rank)
    sent.push_back(its.table->sent[rank]);
  sim::Unlocked unlocked({bufferAt(reinterpret_cast<Address>(work.receive), work.receiveBytes)});
  size_t share = call.count * bytesOf(call.type);
  switch (call.kind) {
  case AllReduce:
  case Reduce:
    return reduce(call.type, sent, 0, call.count, call.reduction, work.receive);
  case ReduceScatter:
    return reduce(call.type, sent, size_t(its.rank) * call.count, call.count, call.reduction, work.receive);
  case Broadcast:
    std::memcpy(work.receive, sent[size_t(call.root)], share);
    return;
  default:
    for (int rank = 0; rank < its.size; ++rank)
      std::memcpy(work.receive + size_t(rank) * share, sent[size_t(rank)], share);
  }
}

/// What all ranks sent is there: it stays until all have taken it.
void putInStream(const std::shared_ptr<Communicator> &its, const Work &work, uint64_t number) {
  sim::Scheduler &scheduler = *driver().scheduler;
  size_t queue = work.stream->queue;
  scheduler.waitUntil(queue, [=] { return mayGoOn(*its, &Seat::left, number - 1, number); });
  scheduler.enqueue(queue, [=] { send(*its, work, number); });
  scheduler.waitUntil(queue, [=] {
    if (!mayGoOn(*its, &Seat::arrived, number, number))
      return false;
    int other = its->isAborted ? -1 : findDifference(*its, work.call);
    if (other >= 0)
      spoil(*its, InvalidUsage, "rank " + std::to_string(other) + " calls for something else");
    return other < 0;
  });
  scheduler.enqueue(queue, [=] {
    if (its->isAborted)
      return;
    if (work.receiveBytes > 0)
      receive(*its, work);
    its->seat().left.store(number, std::memory_order_release);
  });
}

//===- communicators ----------------------------------------------------------------------------------------------===//

std::shared_ptr<Communicator> find(Communicator *communicator) {
  auto found = live().find(communicator);
  return found == live().end() ? nullptr : found->second;
}

/// CUDA_EMU_NCCL_FAULT.
bool isToFail(const Communicator &its, uint64_t call, int &result) {
  const char *fault = std::getenv("CUDA_EMU_NCCL_FAULT");
  int rank = 0;
  unsigned long long number = 0;
  return fault && std::sscanf(fault, "%d@%d:%llu", &result, &rank, &number) == 3 && rank == its.rank && number == call;
}

/// Whether all ranks have come to what this one waits for.
bool haveCome(Communicator &its) {
  bool isMade = its.table->joined == its.size;
  return isMade && (its.asked == 0 || its.table->haveAll(&Seat::asked, 1));
}

bool hasDoneAll(Communicator &its) { return its.late.empty() && its.seat().left == its.asked; }

/// Time passes: what was called for comes into its streams.
int progress(const std::shared_ptr<Communicator> &its) {
  if (its->error != Fine)
    return its->error;
  if (int lost = its->table->findLost(1); lost >= 0 && !haveCome(*its))
    spoil(*its, RemoteError, "rank " + std::to_string(lost) + " closed its connection");
  if (!haveCome(*its) || its->delay-- > 0)
    return its->error != Fine ? its->error : InProgress;
  its->delay = 0;
  uint64_t number = its->asked - its->late.size();
  for (const Work &work : std::exchange(its->late, {})) {
    int result = Fine;
    if (isToFail(*its, ++number, result))
      spoil(*its, result, "a planted fault");
    putInStream(its, work, number);
  }
  if (its->isFinalizing && !hasDoneAll(*its)) {
    driver().scheduler->runAny();
    return InProgress;
  }
  return its->error;
}

bool isBusy(const Communicator &its) { return its.delay > 0 || !its.late.empty(); }

void begin(Communicator &its) { its.delay = int(setting("CUDA_EMU_NCCL_DELAY", 2)); }

int join(Communicator **communicator, int size, const Id &id, int rank, const Config &config, Device *device) {
  std::shared_ptr<Table> table = openTable(id.bytes);
  if (!table)
    return fail(InvalidArgument, "the id is of nobody");
  if (size > kMostRanks || rank < 0 || rank >= size || config.magic != 0xcafebeef || config.blocking != 0)
    return fail(InvalidArgument, "the double has no such ranks");
  if (table->size != 0 && table->size != size)
    return fail(InvalidArgument, "others are of another number of ranks");
  if (table->seats[rank].presence != Presence::Absent)
    return fail(InvalidUsage, "the rank is there already");
  int number = 0;
  for (const Device &other : driver().devices) {
    if (&other == device)
      break;
    ++number;
  }
  for (const Seat &seat : table->seats)
    if (seat.presence == Presence::Here && seat.device == number)
      return fail(InvalidUsage, "Duplicate GPU detected: two ranks have device " + std::to_string(number));
  table->size = size;
  Seat &seat = table->seats[rank];
  seat.process = getpid();
  seat.device = number;
  seat.presence = Presence::Here;
  if (++table->joined == size)
    closeTable(id.bytes);
  auto made = std::make_shared<Communicator>(table, id, rank, size, device);
  begin(*made);
  live()[made.get()] = made;
  *communicator = made.get();
  return InProgress;
}

//===- groups -----------------------------------------------------------------------------------------------------===//

thread_local int depth = 0;
thread_local std::vector<std::function<int()>> grouped;

int groupEnd() {
  if (depth == 0)
    return fail(InvalidUsage, "a group ends that did not begin");
  if (--depth > 0)
    return Fine;
  int result = Fine;
  for (const auto &call : std::exchange(grouped, {}))
    if (int its = call(); result == Fine || result == InProgress)
      result = its == Fine ? result : its;
  return result;
}

int doOrGroup(std::function<int()> call) {
  if (depth == 0)
    return call();
  grouped.push_back(std::move(call));
  return Fine;
}

bool isSound(const Communicator &its, const Work &work) {
  const Call &call = work.call;
  auto liesThere = [&](const std::byte *place, size_t bytes) {
    return bytes == 0 || isOf(*its.device, reinterpret_cast<Address>(place), bytes);
  };
  if (bytesOf(call.type) == 0 || (call.reduction != Sum && call.reduction != Max) || call.root < 0 ||
      call.root >= its.size || work.sendBytes > kMostBytes || !liesThere(work.send, work.sendBytes) ||
      !liesThere(work.receive, work.receiveBytes))
    return false;
  size_t share = call.count * bytesOf(call.type);
  const std::byte *inPlace = call.kind == AllGather       ? work.receive + size_t(its.rank) * share
                             : call.kind == ReduceScatter ? work.receive - size_t(its.rank) * share
                                                          : work.receive;
  bool isApart = work.send + work.sendBytes <= work.receive || work.receive + work.receiveBytes <= work.send;
  return work.sendBytes == 0 || work.receiveBytes == 0 || work.send == inPlace || isApart;
}

/// Why a communicator cannot be asked for this.
int whyNot(const Communicator &its, const Work &work, bool isBusyBefore) {
  if (isBusyBefore || its.isFinalizing)
    return fail(InvalidArgument, "the communicator is used while it is in progress, or after its end");
  if (!work.stream || work.stream->device != its.device)
    return fail(CudaError, "the stream is of another device");
  if (work.stream->capture)
    return fail(InvalidUsage, "the double is not captured");
  return isSound(its, work) ? Fine : fail(InvalidArgument, "memory, type, reduction or root are wrong");
}

/// What calls of one group ask for is asked for at once: the communicator is busy only behind the last. What is wrong spoils it.
int askFor(Communicator *communicator, const Work &work, bool isBusyBefore) {
  std::shared_ptr<Communicator> its = find(communicator);
  if (!its)
    return fail(InvalidArgument, "the communicator is no more, or never was");
  if (its->error == Fine)
    its->error = whyNot(*its, work, isBusyBefore);
  if (its->error != Fine)
    return its->error;
  its->late.push_back(work);
  its->seat().asked.store(++its->asked, std::memory_order_release);
  begin(*its);
  return InProgress;
}

int call(Communicator *communicator, Work work) {
  std::shared_ptr<Communicator> its = find(communicator);
  size_t share = work.call.count * bytesOf(work.call.type), all = its ? share * size_t(its->size) : 0;
  bool isRoot = its && work.call.root == its->rank;
  work.sendBytes = work.call.kind == ReduceScatter ? all : work.call.kind == Broadcast && !isRoot ? 0 : share;
  work.receiveBytes = work.call.kind == AllGather ? all : work.call.kind == Reduce && !isRoot ? 0 : share;
  bool busy = its && (its->table->joined < its->size || isBusy(*its)); // before the group
  if (work.call.count == 0)
    return its ? Fine : fail(InvalidArgument, "the communicator is no more, or never was");
  return doOrGroup([=] { return askFor(communicator, work, busy); });
}

Work workOf(Kind kind, const void *send, void *receive, size_t count, int type, int reduction, int root,
            Stream *stream) {
  return {{kind, type, reduction, root, count},
          static_cast<const std::byte *>(send),
          static_cast<std::byte *>(receive),
          0,
          0,
          stream};
}

int retire(Communicator *communicator, Presence presence) {
  std::shared_ptr<Communicator> its = find(communicator);
  if (!its)
    return fail(InvalidArgument, "the communicator is no more, or never was");
  its->isAborted = presence == Presence::Aborted;
  its->seat().presence = presence;
  live().erase(communicator);
  return Fine;
}

} // namespace

//===- the interface ----------------------------------------------------------------------------------------------===//

EXPORTED int ncclGetVersion(int *version) {
  *version = int(setting("CUDA_EMU_NCCL_VERSION", 22809));
  return Fine;
}

EXPORTED const char *ncclGetErrorString(int result) {
  static const char *const texts[] = {"no error",          "a CUDA call failed", "a system call failed",
                                      "an internal error", "invalid argument",   "invalid usage",
                                      "a remote error",    "in progress"};
  return result >= Fine && result <= InProgress ? texts[result] : "an unknown result";
}

EXPORTED const char *ncclGetLastError(Communicator *) { return lastError; }

EXPORTED int ncclGetUniqueId(Id *id) {
  Turn turn;
  makeId(id->bytes);
  return Fine;
}

EXPORTED int ncclCommInitRankConfig(Communicator **communicator, int size, Id id, int rank, Config *config) {
  Turn turn;
  *communicator = nullptr;
  if (!current)
    return fail(CudaError, "no context is current");
  return doOrGroup(
      [=, config = *config, device = current] { return join(communicator, size, id, rank, config, device); });
}

EXPORTED int ncclCommGetAsyncError(Communicator *communicator, int *error) {
  Turn turn;
  std::shared_ptr<Communicator> its = find(communicator);
  if (!its)
    return fail(InvalidArgument, "the communicator is no more, or never was");
  *error = progress(its);
  return Fine;
}

EXPORTED int ncclCommFinalize(Communicator *communicator) {
  Turn turn;
  std::shared_ptr<Communicator> its = find(communicator);
  if (!its || isBusy(*its) || its->isFinalizing)
    return fail(InvalidArgument, "the communicator is no more, or in progress");
  if (its->error != Fine)
    return its->error;
  its->isFinalizing = true;
  begin(*its);
  return InProgress;
}

EXPORTED int ncclCommDestroy(Communicator *communicator) {
  Turn turn;
  std::shared_ptr<Communicator> its = find(communicator);
  if (its && (!its->isFinalizing || its->delay > 0 || !hasDoneAll(*its)))
    return fail(InvalidUsage, "the communicator is not finalized");
  return retire(communicator, Presence::Gone);
}

EXPORTED int ncclCommAbort(Communicator *communicator) {
  Turn turn;
  return retire(communicator, Presence::Aborted);
}

EXPORTED int ncclGroupStart() {
  ++depth;
  return Fine;
}

EXPORTED int ncclGroupEnd() {
  Turn turn;
  return groupEnd();
}

EXPORTED int ncclAllReduce(const void *send, void *receive, size_t count, int type, int reduction,
                           Communicator *communicator, Stream *stream) {
  Turn turn;
  return call(communicator, workOf(AllReduce, send, receive, count, type, reduction, 0, stream));
}

EXPORTED int ncclBroadcast(const void *send, void *receive, size_t count, int type, int root,
                           Communicator *communicator, Stream *stream) {
  Turn turn;
  return call(communicator, workOf(Broadcast, send, receive, count, type, Sum, root, stream));
}

EXPORTED int ncclReduce(const void *send, void *receive, size_t count, int type, int reduction, int root,
                        Communicator *communicator, Stream *stream) {
  Turn turn;
  return call(communicator, workOf(Reduce, send, receive, count, type, reduction, root, stream));
}

EXPORTED int ncclAllGather(const void *send, void *receive, size_t count, int type, Communicator *communicator,
                           Stream *stream) {
  Turn turn;
  return call(communicator, workOf(AllGather, send, receive, count, type, Sum, 0, stream));
}

EXPORTED int ncclReduceScatter(const void *send, void *receive, size_t count, int type, int reduction,
                               Communicator *communicator, Stream *stream) {
  Turn turn;
  return call(communicator, workOf(ReduceScatter, send, receive, count, type, reduction, 0, stream));
}

} // namespace sluice::nccl_emu
