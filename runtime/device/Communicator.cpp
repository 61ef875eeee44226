#include "runtime/device/Communicator.h"

#include "runtime/base/Text.h"

namespace sluice::runtime {

sluice_unique_id Communicator::makeId(DeviceContext &context) {
  sluice_unique_id id{};
  context.check(context.half().collectives->unique_id(context.get(), &id),
                concat("an id for ranks of ", context.backend()));
  return id;
}

Communicator::Communicator(DeviceContext &context, const sluice_unique_id &id, const Rank &rank,
                           const sluice_transport_link *link)
    : context_(context), table_(*context.half().collectives) {
  sluice_communicator_options options{sizeof options, &id, rank.number, rank.size, rank.device, link};
  context.check(table_.init(context.get(), &options, &communicator_),
                concat("rank ", rank.number, " of ", rank.size, " of ", context.backend()));
}

Communicator::~Communicator() { table_.destroy(communicator_); }

std::optional<CollectiveCount> Communicator::counted(int32_t kind) const {
  if (!table_.counts)
    return std::nullopt;
  CollectiveCount count;
  context_.check(table_.counts(communicator_, kind, &count.exchanges, &count.bytes),
                 concat("the exchanges of ", context_.backend()));
  return count;
}

} // namespace sluice::runtime
