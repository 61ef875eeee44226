#include "runtime/exec/PreparedCollective.h"

#include "runtime/base/Text.h"

namespace sluice::runtime {

sluice_exchange_kind abiKindOf(Collective::Kind kind) {
  switch (kind) {
  case Collective::Kind::allReduce:
    return SLUICE_ALL_REDUCE;
  case Collective::Kind::broadcast:
    return SLUICE_BROADCAST;
  case Collective::Kind::allGather:
    return SLUICE_ALL_GATHER;
  case Collective::Kind::reduceScatter:
    return SLUICE_REDUCE_SCATTER;
  }
  return SLUICE_ALL_REDUCE;
}

static sluice_reduction abiReductionOf(Reduction reduction) {
  switch (reduction) {
  case Reduction::sum:
    return SLUICE_SUM;
  case Reduction::max:
    return SLUICE_MAX;
  case Reduction::treeSum:
    return SLUICE_TREE_SUM;
  }
  return SLUICE_SUM;
}

static void moveBy(std::vector<std::byte *> &addresses, int64_t bytes) {
  for (std::byte *&address : addresses)
    address += bytes;
}

PreparedCollective::PreparedCollective(const Action &action, const Plan &plan, Devices &devices)
    : collective_(*action.collective()), devices_(devices), device_(plan.queues[action.queues.front()].device),
      queue_(action.queues.front()), send_(devices.addresses(collective_.send.slot)),
      receive_(devices.addresses(collective_.receive.slot)), bytes_(collective_.bytesFor(plan.replicas)),
      label_(collective_.source.empty() ? collective_.name : concat(collective_.name, ", ", collective_.source)),
      text_(concat(Collective::kindNames[static_cast<size_t>(collective_.kind)], " of ", label_)) {
  // In place, each replica reads or writes its part of the common buffer.
  int64_t before = devices.replica() * collective_.partBytes();
  if (collective_.isInPlace() && collective_.kind == Collective::Kind::allGather)
    moveBy(send_, before);
  if (collective_.isInPlace() && collective_.kind == Collective::Kind::reduceScatter)
    moveBy(receive_, before);
}

void PreparedCollective::put(size_t number, WorkTimes &times, Work work, CollectiveCounts &counts) {
  sluice_exchange exchange{};
  exchange.struct_size = sizeof exchange;
  exchange.kind = abiKindOf(collective_.kind);
  exchange.dtype = static_cast<sluice_dtype>(collective_.dtype);
  exchange.reduction = abiReductionOf(collective_.reduction);
  exchange.root = collective_.root;
  exchange.send = send_[number];
  exchange.receive = receive_[number];
  exchange.count = static_cast<size_t>(collective_.count);
  exchange.label = label_.c_str();
  DeviceQueue &queue = devices_.queue(queue_);
  auto put = [&] {
    devices_.comeTo(text_);
    devices_.communicator(device_).exchange(queue, exchange);
    devices_.comeBack();
    CollectiveCount &count = counts[static_cast<size_t>(collective_.kind)];
    ++count.exchanges;
    count.bytes += bytes_;
  };
  if (!times.wants(work.call))
    return put();
  work.name = label_;
  work.queue = queue_;
  work.bytes = bytes_;
  times.note(std::move(work), queue, put);
}

} // namespace sluice::runtime
