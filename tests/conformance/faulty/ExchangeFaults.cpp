// Faults of exchanges between ranks; otherwise like `sim`.
#include "sluice/backend/collectives.h"
#include "tests/conformance/faulty/Faulty.h"

#include <map>
#include <mutex>

namespace sluice::faulty {

static sluice_backend_run sound; // without the fault
static sluice_backend_collectives exchanges;
static std::mutex mutex;

// maximal_sums: the largest of the summands.
static sluice_status exchangeMaxima(sluice_communicator *rank, sluice_queue *queue, const sluice_exchange *exchange) {
  sluice_exchange other = *exchange;
  if (other.reduction == SLUICE_SUM)
    other.reduction = SLUICE_MAX;
  return exchanges.exchange(rank, queue, &other);
}

// ascending_sums: a sum in a tree is added as any other.
static sluice_status exchangeAscending(sluice_communicator *rank, sluice_queue *queue,
                                       const sluice_exchange *exchange) {
  sluice_exchange other = *exchange;
  if (other.reduction == SLUICE_TREE_SUM)
    other.reduction = SLUICE_SUM;
  return exchanges.exchange(rank, queue, &other);
}

// ignored_differences: ranks may put in their exchanges in any order.
static sluice_status exchangeUnnamed(sluice_communicator *rank, sluice_queue *queue, const sluice_exchange *exchange) {
  sluice_exchange other = *exchange;
  other.label = nullptr;
  return exchanges.exchange(rank, queue, &other);
}

// exchanged_bytes: bytes are taken for integers.
static sluice_status exchangeIntegers(sluice_communicator *rank, sluice_queue *queue, const sluice_exchange *exchange) {
  sluice_exchange other = *exchange;
  if (other.dtype == SLUICE_DTYPE_u8)
    other.dtype = SLUICE_DTYPE_i32;
  return exchanges.exchange(rank, queue, &other);
}

// unordered_exchanges: they are put into a queue that nobody waits for.
static std::map<sluice_communicator *, sluice_queue *> ownQueues;

static sluice_status initWithQueue(sluice_run *run, const sluice_communicator_options *options,
                                   sluice_communicator **rank) {
  sluice_status status = exchanges.init(run, options, rank);
  sluice_queue *queue = nullptr;
  sound.queue_create(run, options->device, SLUICE_QUEUE_COMMUNICATION, "own", &queue);
  std::lock_guard<std::mutex> lock(mutex);
  ownQueues[*rank] = queue;
  return status;
}

static sluice_status exchangeElsewhere(sluice_communicator *rank, sluice_queue *, const sluice_exchange *exchange) {
  std::unique_lock<std::mutex> lock(mutex);
  sluice_queue *queue = ownQueues[rank];
  lock.unlock();
  return exchanges.exchange(rank, queue, exchange);
}

// reversed_ranks: the last one is the first. wandering_ranks: another one is the first each time.
static int32_t ids = 0;

static sluice_status nextId(sluice_run *run, sluice_unique_id *id) {
  ++ids;
  return exchanges.unique_id(run, id);
}

static sluice_status initOther(sluice_run *run, const sluice_communicator_options *options,
                               sluice_communicator **rank) {
  sluice_communicator_options other = *options;
  other.rank = kFault == "reversed_ranks" ? options->size - 1 - options->rank : (options->rank + ids) % options->size;
  return exchanges.init(run, &other, rank);
}

// miscounted_exchanges: by the rank's own elements.
static sluice_status countOwn(sluice_communicator *rank, int32_t kind, int64_t *count, int64_t *bytes) {
  sluice_status status = exchanges.counts(rank, kind, count, bytes);
  *bytes /= 2;
  return status;
}

static void doNothing(sluice_communicator *) {}

const sluice_backend_compile *addFault(sluice_backend_run &run) {
  run = sound = loadRunHalf(SIM_RUN_HALF);
  static sluice_backend_collectives faulty = exchanges = *sound.collectives;
  run.collectives = &faulty;
  if (kFault == "maximal_sums")
    faulty.exchange = exchangeMaxima;
  else if (kFault == "ascending_sums")
    faulty.exchange = exchangeAscending;
  else if (kFault == "ignored_differences")
    faulty.exchange = exchangeUnnamed;
  else if (kFault == "exchanged_bytes")
    faulty.exchange = exchangeIntegers;
  else if (kFault == "unordered_exchanges") {
    faulty.init = initWithQueue;
    faulty.exchange = exchangeElsewhere;
  } else if (kFault == "reversed_ranks" || kFault == "wandering_ranks") {
    faulty.unique_id = nextId;
    faulty.init = initOther;
  } else if (kFault == "miscounted_exchanges")
    faulty.counts = countOwn;
  else if (kFault == "deaf_aborts")
    faulty.abort = doNothing;
  else if (kFault == "silent_departures")
    faulty.destroy = doNothing;
  return nullptr;
}

} // namespace sluice::faulty
