#include "backends/cpu/runtime/Communicator.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sluice::cpu {

using exchange::Error;
using exchange::rankText;

/// Unique only among contexts of this process.
sluice_unique_id Context::uniqueId() {
  sluice_unique_id id{};
  std::string text = hall_->addId();
  std::copy(text.begin(), text.end(), id.bytes);
  return id;
}

Communicator::Communicator(Context &context, const sluice_communicator_options &options)
    : context_(context), rank_(options.rank), device_(options.device) {
  if (device_ != SLUICE_HOST)
    Context::checkDevice(device_);
  if (SLUICE_HAS_MEMBER(sluice_communicator_options, &options, transport) && options.transport) {
    across_ = std::make_unique<exchange::Across>(*options.transport, rank_, options.size);
    return;
  }
  std::string id(options.id->bytes, strnlen(options.id->bytes, sizeof options.id->bytes));
  ranks_ = context.hall().ranksOf(id, rank_, options.size);
  ranks_->join(rank_, device_);
}

static const char *placeText(int32_t device) { return device == SLUICE_HOST ? "the host" : "cpu:0"; }

void Communicator::exchange(const Context::Queue &queue, const sluice_exchange &asked) {
  if (queue.device != device_)
    throw Error(SLUICE_USAGE, std::string("the queue is of ") + placeText(queue.device) + ", and " + rankText(rank_) +
                                  " of " + placeText(device_));
  check();
  exchange::Part part = exchange::partOf(asked, rank_, across_ ? across_->size() : ranks_->size());
  std::string what = part.signature.text() + " of " + rankText(rank_);
  context_.exchange({ranks_, across_.get(), rank_, &queue, std::move(part), std::move(what)});
}

void Communicator::abort() {
  if (across_)
    return across_->abort();
  ranks_->fail(Error(SLUICE_PEER_LOST, rankText(rank_) + " was aborted"));
}

void Communicator::leave() {
  if (ranks_)
    ranks_->leave(rank_);
}

exchange::Roster::Count Communicator::count(int32_t kind) const {
  return across_ ? across_->count(kind) : ranks_->count(rank_, kind);
}

} // namespace sluice::cpu
