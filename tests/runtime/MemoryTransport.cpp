#include "MemoryTransport.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

using namespace sluice::test;

namespace {

/// State shared by the ranks of a run.
struct Wire {
  std::condition_variable changed;
  std::map<int, WireFault> faults;
  std::map<int, bool> isThere; // by rank; false: it connected and left
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> under_way;
  int aborted = -1;
};

std::mutex mutex; // guards all wires
std::map<std::string, std::shared_ptr<Wire>> wires;

Wire &wireOf(const std::string &secret) {
  std::shared_ptr<Wire> &wire = wires[secret];
  if (!wire)
    wire = std::make_shared<Wire>();
  return *wire;
}

} // namespace

struct sluice_transfer {
  int from; // -1 for a send
  std::byte *to;
  size_t bytes;
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
};

struct sluice_transport {
  Wire &wire;
  int rank, size;
  std::string error{};
  std::list<sluice_transfer> transfers{}; // transfers in progress

  void end(const sluice_transfer *transfer) {
    transfers.remove_if([=](const sluice_transfer &other) { return &other == transfer; });
  }
  sluice_status fail(sluice_status status, std::string text) {
    error = std::move(text);
    return status;
  }
};

static sluice_status openMemory(const sluice_transport_options *options, sluice_transport **transport) {
  std::unique_lock lock(mutex);
  Wire &wire = wireOf(options->secret);
  *transport = new sluice_transport{wire, options->rank, options->size};
  wire.isThere[options->rank] = true;
  wire.changed.notify_all();
  auto allHere = [&] { return wire.isThere.size() == size_t(options->size); };
  if (wire.changed.wait_for(lock, std::chrono::duration<double>(options->deadline), allHere))
    return SLUICE_OK;
  return (*transport)->fail(SLUICE_DEADLINE, "not all ranks came");
}

static void closeMemory(sluice_transport *transport) {
  std::lock_guard lock(mutex);
  transport->wire.isThere[transport->rank] = false;
  delete transport;
}

static const char *lastMemoryError(sluice_transport *transport) { return transport->error.c_str(); }

static sluice_status sendMemory(sluice_transport *transport, int32_t rank, const void *from, size_t bytes,
                                sluice_transfer **transfer) {
  std::lock_guard lock(mutex);
  std::vector<std::byte> message(bytes);
  if (bytes > 0)
    std::memcpy(message.data(), from, bytes);
  WireFault fault = transport->wire.faults[transport->rank];
  if (fault == WireFault::longer)
    message.emplace_back();
  if (fault != WireFault::silent)
    transport->wire.under_way[{transport->rank, rank}].push_back(std::move(message));
  *transfer = &transport->transfers.emplace_back(sluice_transfer{-1, nullptr, bytes});
  return SLUICE_OK;
}

static sluice_status receiveMemory(sluice_transport *transport, int32_t rank, void *to, size_t bytes,
                                   sluice_transfer **transfer) {
  std::lock_guard lock(mutex);
  *transfer = &transport->transfers.emplace_back(sluice_transfer{rank, static_cast<std::byte *>(to), bytes});
  return SLUICE_OK;
}

static sluice_status testMemory(sluice_transport *transport, sluice_transfer *transfer, int *done) {
  std::lock_guard lock(mutex);
  Wire &wire = transport->wire;
  sluice_transfer its = *transfer;
  auto &messages = wire.under_way[{its.from, transport->rank}];
  bool isAwaited = wire.aborted < 0 && its.from >= 0 && messages.empty() && wire.isThere[its.from];
  isAwaited |= wire.faults[transport->rank] == WireFault::late && its.from >= 0 &&
               std::chrono::steady_clock::now() - its.begun < kLateness;
  *done = isAwaited ? 0 : 1;
  if (isAwaited)
    return SLUICE_OK;
  transport->end(transfer);
  if (wire.aborted >= 0)
    return transport->fail(SLUICE_PEER_LOST, "rank " + std::to_string(wire.aborted) + " ended the run");
  if (its.from < 0)
    return SLUICE_OK;
  if (messages.empty())
    return transport->fail(SLUICE_PEER_LOST, "rank " + std::to_string(its.from) + " went away");
  std::vector<std::byte> message = std::move(messages.front());
  messages.pop_front();
  if (message.size() != its.bytes)
    return transport->fail(SLUICE_INVALID, "rank " + std::to_string(its.from) + " sent " +
                                               std::to_string(message.size()) + " bytes, and not " +
                                               std::to_string(its.bytes));
  if (!message.empty())
    std::memcpy(its.to, message.data(), message.size());
  return SLUICE_OK;
}

static void abortMemory(sluice_transport *transport) {
  std::lock_guard lock(mutex);
  if (transport->wire.aborted < 0)
    transport->wire.aborted = transport->rank;
}

const sluice_transport_library &sluice::test::memoryTransport() {
  static const sluice_transport_library library = {sizeof(sluice_transport_library),
                                                   SLUICE_TRANSPORT_MAJOR,
                                                   SLUICE_TRANSPORT_MINOR,
                                                   "memory",
                                                   openMemory,
                                                   closeMemory,
                                                   lastMemoryError,
                                                   sendMemory,
                                                   receiveMemory,
                                                   testMemory,
                                                   abortMemory};
  return library;
}

void sluice::test::setWireFault(const std::string &secret, int rank, WireFault fault) {
  std::lock_guard lock(mutex);
  wireOf(secret).faults[rank] = fault;
}
