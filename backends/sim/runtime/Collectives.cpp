#include "backends/sim/runtime/Collectives.h"

#include "backends/sim/runtime/Handles.h"
#include "backends/sim/runtime/Ranks.h"

#include <algorithm>
#include <cstring>
#include <utility>

using namespace sluice::sim;

struct sluice_communicator {
  sluice_run *run;
  std::shared_ptr<Ranks> ranks;
  int32_t rank, device;
};

static std::string textOf(const sluice_unique_id &id) { return {id.bytes, strnlen(id.bytes, sizeof id.bytes)}; }

static sluice_status uniqueId(sluice_run *run, sluice_unique_id *id) {
  return guarded(run, [&](Context &context) {
    auto &all = context.machine().ranks();
    std::string text =
        "sim " + std::to_string(reinterpret_cast<uintptr_t>(&context.machine())) + " " + std::to_string(all.size());
    *id = {};
    std::copy(text.begin(), text.end(), id->bytes);
    all.try_emplace(text);
  });
}

/// All ranks of one id; the first to come says how many there are.
static std::shared_ptr<Ranks> ranksOf(Machine &machine, const sluice_communicator_options &options) {
  auto found = machine.ranks().find(textOf(*options.id));
  if (found == machine.ranks().end())
    throw Error(SLUICE_USAGE, "sim: the id was not made by a context of this group");
  if (options.size < 1)
    throw Error(SLUICE_USAGE, "sim: there are no " + std::to_string(options.size) + " ranks");
  if (!found->second)
    found->second = std::make_shared<Ranks>(machine, options.size);
  if (found->second->size() != options.size)
    throw Error(SLUICE_USAGE, "sim: rank " + std::to_string(options.rank) + " is one of " +
                                  std::to_string(options.size) + ", but others are of " +
                                  std::to_string(found->second->size()));
  return found->second;
}

static sluice_status init(sluice_run *run, const sluice_communicator_options *options,
                          sluice_communicator **communicator) {
  return guarded(run, [&](Context &context) {
    if (SLUICE_HAS_MEMBER(sluice_communicator_options, options, transport) && options->transport)
      throw Error(SLUICE_UNSUPPORTED, std::string("sim: all ranks are in one process, whose clock they share; ") +
                                          options->transport->library->name + " has ranks in several");
    if (options->device != SLUICE_HOST)
      context.machine().memory(options->device); // checks the number
    std::shared_ptr<Ranks> ranks = ranksOf(context.machine(), *options);
    ranks->join(options->rank, options->device);
    *communicator = new sluice_communicator{run, std::move(ranks), options->rank, options->device};
  });
}

/// An exchange that breaks the ranks lets others go on, too.
static void put(sluice_communicator &communicator, Context &context, Queue &queue, const sluice::exchange::Part &part) {
  try {
    communicator.ranks->put(communicator.rank, queue, part, context.host());
  } catch (const Error &) {
    context.machine().settle();
    throw;
  }
  context.machine().settle();
}

static sluice_status putIn(sluice_communicator *communicator, sluice_queue *queue, const sluice_exchange *exchange) {
  return guarded(queue, [&](Context &context, Queue &its) {
    Machine::checkCapturesNot(its, "exchange with other ranks");
    if (its.device != communicator->device)
      throw Error(SLUICE_USAGE, "sim: queue " + its.name + " is of " + deviceText(its.device) + ", and rank " +
                                    std::to_string(communicator->rank) + " of " + deviceText(communicator->device));
    communicator->ranks->check();
    sluice::exchange::Part part = communicator->ranks->partOf(communicator->rank, *exchange);
    context.putTogether(
        [communicator, &context, &its, part = std::move(part)] { put(*communicator, context, its, part); });
  });
}

static sluice_status begin(sluice_run *run) {
  return guarded(run, [](Context &context) { context.beginTogether(); });
}

static sluice_status end(sluice_run *run) {
  return guarded(run, [](Context &context) { context.endTogether(); });
}

static sluice_status error(sluice_communicator *communicator) {
  return guarded(communicator->run, [&](Context &) { communicator->ranks->check(); });
}

/// For whoever has no threads of an instance.
static void runInOrder(void *, int64_t tasks, void (*function)(void *, int64_t, int64_t), void *argument) {
  for (int64_t task = 0; task < tasks; ++task)
    function(argument, task, task + 1);
}

/// In any thread: the context's own may be in a call that waits.
static void abortRanks(sluice_communicator *communicator) {
  static const sluice_run_services alone{sizeof alone, nullptr, runInOrder};
  Machine &machine = communicator->run->context->machine();
  Machine::Turn turn(machine, alone);
  communicator->ranks->fail(Error(SLUICE_PEER_LOST, "rank " + std::to_string(communicator->rank) + " was aborted"));
  machine.settle();
}

static void destroy(sluice_communicator *communicator) {
  guarded(communicator->run, [&](Context &context) {
    communicator->ranks->leave(communicator->rank);
    context.machine().settle();
  });
  delete communicator;
}

static sluice_status counts(sluice_communicator *communicator, int32_t kind, int64_t *exchanges, int64_t *bytes) {
  return guarded(communicator->run, [&](Context &) {
    sluice::exchange::Roster::Count count = communicator->ranks->count(communicator->rank, kind);
    *exchanges = count.exchanges;
    *bytes = count.bytes;
  });
}

const sluice_backend_collectives &sluice::sim::collectives() {
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
