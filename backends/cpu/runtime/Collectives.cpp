#include "backends/cpu/runtime/Collectives.h"

#include "backends/cpu/runtime/Handles.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

using namespace sluice::cpu;
using sluice::exchange::Error;
using sluice::exchange::rankText;

struct sluice_communicator {
  sluice_run *run;
  std::shared_ptr<Ranks> ranks;
  std::unique_ptr<sluice::exchange::Across> across; // instead, if the other ranks are in other processes
  int32_t rank, device;

  int32_t size() const { return across ? across->size() : ranks->size(); }
  void check() const { across ? across->check() : ranks->check(); }
};

/// Runs `body`; an error that it throws becomes the context's last one.
template <typename Body> static sluice_status guardedExchange(sluice_run *run, Body body) {
  try {
    body();
    return SLUICE_OK;
  } catch (const Error &error) {
    return run->fail(error.status(), error.what());
  } catch (const std::bad_alloc &) {
    return run->fail(SLUICE_EXHAUSTED, "the host is out of memory");
  }
}

/// Only contexts of this process know it.
static sluice_status uniqueId(sluice_run *run, sluice_unique_id *id) {
  return guardedExchange(run, [&] {
    std::string text = run->hall->addId();
    *id = {};
    std::copy(text.begin(), text.end(), id->bytes);
  });
}

/// Ranks of this process.
static std::unique_ptr<sluice_communicator> joinHere(sluice_run *run, const sluice_communicator_options &options) {
  std::string id(options.id->bytes, strnlen(options.id->bytes, sizeof options.id->bytes));
  std::shared_ptr<Ranks> ranks = run->hall->ranksOf(id, options.rank, options.size);
  auto made = std::make_unique<sluice_communicator>(
      sluice_communicator{run, std::move(ranks), nullptr, options.rank, options.device});
  made->ranks->join(options.rank, options.device);
  return made;
}

/// Ranks of other processes, which the transport has found.
static std::unique_ptr<sluice_communicator> joinAcross(sluice_run *run, const sluice_communicator_options &options) {
  auto across = std::make_unique<sluice::exchange::Across>(*options.transport, options.rank, options.size);
  return std::make_unique<sluice_communicator>(
      sluice_communicator{run, nullptr, std::move(across), options.rank, options.device});
}

static sluice_status init(sluice_run *run, const sluice_communicator_options *options,
                          sluice_communicator **communicator) {
  if (options->device != SLUICE_HOST)
    if (sluice_status status = run->checkDevice(options->device); status != SLUICE_OK)
      return status;
  return guardedExchange(run, [&] {
    bool hasTransport = SLUICE_HAS_MEMBER(sluice_communicator_options, options, transport) && options->transport;
    *communicator = (hasTransport ? joinAcross(run, *options) : joinHere(run, *options)).release();
  });
}

static const char *placeText(int32_t device) { return device == SLUICE_HOST ? "the host" : "cpu:0"; }

static sluice_status putIn(sluice_communicator *communicator, sluice_queue *queue, const sluice_exchange *exchange) {
  sluice_run *run = communicator->run;
  return guardedExchange(run, [&] {
    int32_t rank = communicator->rank;
    if (queue->device != communicator->device)
      throw Error(SLUICE_USAGE, std::string("the queue is of ") + placeText(queue->device) + ", and " + rankText(rank) +
                                    " of " + placeText(communicator->device));
    communicator->check();
    sluice::exchange::Part part = sluice::exchange::partOf(*exchange, rank, communicator->size());
    std::string what = part.signature.text() + " of " + rankText(rank);
    Pending pending{communicator->ranks, communicator->across.get(), rank, queue, std::move(part), std::move(what)};
    if (run->together.isOpen())
      return run->together.add(std::move(pending));
    std::vector<Pending> alone;
    alone.push_back(std::move(pending));
    exchangeAll(*run->hall, std::move(alone), *run->services);
  });
}

static sluice_status begin(sluice_run *run) {
  run->together.begin();
  return SLUICE_OK;
}

static sluice_status end(sluice_run *run) {
  return guardedExchange(run, [&] { run->together.end(*run->hall, *run->services); });
}

static sluice_status error(sluice_communicator *communicator) {
  return guardedExchange(communicator->run, [&] { communicator->check(); });
}

/// In any thread: the context's own may be in a call that waits.
static void abortRanks(sluice_communicator *communicator) {
  if (communicator->across)
    return communicator->across->abort();
  communicator->ranks->fail(Error(SLUICE_PEER_LOST, rankText(communicator->rank) + " was aborted"));
}

static void destroy(sluice_communicator *communicator) {
  if (communicator->ranks)
    communicator->ranks->leave(communicator->rank);
  delete communicator;
}

static sluice_status counts(sluice_communicator *communicator, int32_t kind, int64_t *exchanges, int64_t *bytes) {
  return guardedExchange(communicator->run, [&] {
    sluice::exchange::Roster::Count count =
        communicator->across ? communicator->across->count(kind) : communicator->ranks->count(communicator->rank, kind);
    *exchanges = count.exchanges;
    *bytes = count.bytes;
  });
}

const sluice_backend_collectives &sluice::cpu::collectives() {
  static const sluice_backend_collectives table = [] {
    sluice_backend_collectives filled{};
    filled.struct_size = sizeof filled;
    filled.unique_id = uniqueId;
    filled.init = init;
    filled.exchange = putIn;
    filled.begin = begin;
    filled.end = end;
    filled.error = error;
    filled.abort = abortRanks;
    filled.destroy = destroy;
    filled.order = "ascending ranks";
    filled.counts = counts;
    return filled;
  }();
  return table;
}
