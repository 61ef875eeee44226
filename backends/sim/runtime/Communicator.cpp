#include "backends/sim/runtime/Communicator.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sluice::sim {

static std::string textOf(const sluice_unique_id &id) { return {id.bytes, strnlen(id.bytes, sizeof id.bytes)}; }

sluice_unique_id Context::uniqueId() {
  auto &all = machine_->ranks();
  std::string text =
      "sim " + std::to_string(reinterpret_cast<uintptr_t>(machine_.get())) + " " + std::to_string(all.size());
  sluice_unique_id id{};
  std::copy(text.begin(), text.end(), id.bytes);
  all.try_emplace(text);
  return id;
}

/// All ranks of one id; the first caller fixes their number.
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

Communicator::Communicator(Context &context, const sluice_communicator_options &options)
    : context_(context), rank_(options.rank), device_(options.device) {
  if (SLUICE_HAS_MEMBER(sluice_communicator_options, &options, transport) && options.transport)
    throw Error(SLUICE_UNSUPPORTED, std::string("sim: all ranks are in one process, whose clock they share; ") +
                                        options.transport->library->name + " has ranks in several");
  if (device_ != SLUICE_HOST)
    context.machine().memory(device_); // checks the number
  ranks_ = ranksOf(context.machine(), options);
  ranks_->join(rank_, device_);
}

/// Settles also after an error: an exchange that breaks the ranks frees the queues that wait for it.
void Communicator::put(Queue &queue, const exchange::Part &part) {
  try {
    ranks_->put(rank_, queue, part, context_.host());
  } catch (const Error &) {
    context_.machine().settle();
    throw;
  }
  context_.machine().settle();
}

void Communicator::exchange(Queue &queue, const sluice_exchange &exchange) {
  Machine::checkCapturesNot(queue, "exchange with other ranks");
  if (queue.device != device_)
    throw Error(SLUICE_USAGE, "sim: queue " + queue.name + " is of " + deviceText(queue.device) + ", and rank " +
                                  std::to_string(rank_) + " of " + deviceText(device_));
  check();
  context_.putTogether([this, &queue, part = ranks_->partOf(rank_, exchange)] { put(queue, part); });
}

/// The parallel_for of callers without the threads of an instance.
static void runInOrder(void *, int64_t tasks, void (*function)(void *, int64_t, int64_t), void *argument) {
  for (int64_t task = 0; task < tasks; ++task)
    function(argument, task, task + 1);
}

/// Called from any thread, because the context's thread may be in a blocking call.
void Communicator::abort() {
  static const sluice_run_services alone{sizeof alone, nullptr, runInOrder};
  Machine &machine = context_.machine();
  Machine::Turn turn(machine, alone);
  ranks_->fail(Error(SLUICE_PEER_LOST, "rank " + std::to_string(rank_) + " was aborted"));
  machine.settle();
}

void Communicator::leave() {
  ranks_->leave(rank_);
  context_.machine().settle();
}

} // namespace sluice::sim
