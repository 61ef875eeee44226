// Exchanges are NCCL work in the streams of queues.
//
// If all ranks have equal shares, they are NCCL's collectives. Otherwise a gather is a broadcast from each rank, and a
// scatter a reduction to each, in one group. If there is nothing to move, no rank calls NCCL.
//
// Ranks of other processes are found by the id alone, with any transport. Only the transport's deadline is used, for
// calls that wait until all ranks have joined.
#include "backends/cuda/runtime/Communicator.h"

#include "backends/exchange/Arithmetic.h"

#include <algorithm>
#include <utility>

namespace sluice::cuda {

using exchange::Part;
using exchange::Signature;

//===- calls of NCCL ----------------------------------------------------------------------------------------------===//

static NcclType ncclTypeOf(sluice_dtype type) {
  switch (type) {
  case SLUICE_DTYPE_f64:
    return NcclType::F64;
  case SLUICE_DTYPE_i32:
    return NcclType::I32;
  case SLUICE_DTYPE_i64:
    return NcclType::I64;
  case SLUICE_DTYPE_f16:
    return NcclType::F16;
  case SLUICE_DTYPE_bf16:
    return NcclType::BF16;
  case SLUICE_DTYPE_f32:
  case SLUICE_DTYPE_u8: // not exchanged
  case SLUICE_DTYPE_boolean:
    break;
  }
  return NcclType::F32;
}

static NcclReduction ncclReductionOf(sluice_reduction reduction) {
  return reduction == SLUICE_MAX ? NcclReduction::Max : NcclReduction::Sum;
}

static bool isEven(const Signature &signature) {
  const std::vector<size_t> &counts = signature.counts;
  return std::all_of(counts.begin(), counts.end(), [&](size_t count) { return count == counts.front(); });
}

/// Calls `ask` with each rank's number, the offset of its share in the whole, and the share's elements.
template <typename Ask> static NcclResult forEachShare(const Signature &signature, Ask ask) {
  size_t offset = 0;
  NcclResult result = NcclResult::Success;
  for (size_t rank = 0; rank < signature.counts.size() && result == NcclResult::Success; ++rank) {
    size_t count = signature.counts[rank];
    if (count > 0)
      result = ask(int(rank), offset, count);
    offset += count * exchange::exchangedBytes(signature.dtype);
  }
  return result;
}

/// Must be called in an NCCL group.
static NcclResult gather(const Nccl &nccl, const Part &part, NcclCommunicator communicator, DriverStream stream) {
  const Signature &signature = part.signature;
  NcclType type = ncclTypeOf(signature.dtype);
  if (isEven(signature))
    return nccl.allGather(part.sent, part.received, signature.counts.front(), type, communicator, stream);
  return forEachShare(signature, [&](int root, size_t offset, size_t count) {
    std::byte *receive = static_cast<std::byte *>(part.received) + offset;
    return nccl.broadcast(part.sent, receive, count, type, root, communicator, stream);
  });
}

/// Must be called in an NCCL group.
static NcclResult scatter(const Nccl &nccl, const Part &part, NcclCommunicator communicator, DriverStream stream) {
  const Signature &signature = part.signature;
  NcclType type = ncclTypeOf(signature.dtype);
  NcclReduction reduction = ncclReductionOf(signature.reduction);
  if (isEven(signature))
    return nccl.reduceScatter(part.sent, part.received, signature.counts.front(), type, reduction, communicator,
                              stream);
  return forEachShare(signature, [&](int root, size_t offset, size_t count) {
    const std::byte *send = static_cast<const std::byte *>(part.sent) + offset;
    return nccl.reduce(send, part.received, count, type, reduction, root, communicator, stream);
  });
}

static NcclResult askForExchange(const Nccl &nccl, const Part &part, NcclCommunicator communicator,
                                 DriverStream stream) {
  const Signature &signature = part.signature;
  NcclType type = ncclTypeOf(signature.dtype);
  if (signature.elements() == 0)
    return NcclResult::Success;
  switch (signature.kind) {
  case SLUICE_ALL_REDUCE:
    return nccl.allReduce(part.sent, part.received, signature.counts.front(), type,
                          ncclReductionOf(signature.reduction), communicator, stream);
  case SLUICE_BROADCAST:
    return nccl.broadcast(part.sent, part.received, signature.counts.front(), type, signature.root, communicator,
                          stream);
  case SLUICE_ALL_GATHER:
    return gather(nccl, part, communicator, stream);
  case SLUICE_REDUCE_SCATTER:
    return scatter(nccl, part, communicator, stream);
  }
  return NcclResult::InvalidArgument;
}

//===- the communicator -------------------------------------------------------------------------------------------===//

sluice_unique_id RunHalf::uniqueId() {
  const Nccl &nccl = Nccl::get();
  sluice_unique_id id{};
  if (NcclResult result = nccl.makeId(&id); result != NcclResult::Success)
    throw nccl.errorOf(result, nullptr, "an id for ranks");
  return id;
}

static double patienceOf(const sluice_communicator_options &options) {
  bool hasTransport = SLUICE_HAS_MEMBER(sluice_communicator_options, &options, transport) && options.transport;
  return hasTransport ? options.transport->deadline : 0;
}

Communicator::Communicator(RunHalf &context, const sluice_communicator_options &options) : context_(context) {
  Nccl::get();
  if (options.device == SLUICE_HOST)
    throw Error(SLUICE_UNSUPPORTED, "cuda exchanges among devices, and not with the host");
  const Device &device = context.device(options.device);
  std::shared_ptr<Ranks> ranks = context.ranks().ranksOf(*options.id, options.rank, options.size);
  rank_ = std::make_shared<Rank>(ranks, options.rank, device.ordinal, device.context, patienceOf(options));
  ranks->join(*rank_);
  connect(*options.id);
}

/// Creates NCCL's communicator. A failure ends the other ranks, which wait for this one.
void Communicator::connect(const sluice_unique_id &id) {
  try {
    auto call = [its = rank_.get(), id](const Nccl &nccl) {
      NcclConfig config;
      return nccl.init(&its->handle(), its->ranks->size(), id, its->number, &config);
    };
    context_.request({rank_, call, "the communicator"});
  } catch (const Error &error) {
    rank_->ranks->fail(error);
    rank_->ranks->leave(*rank_);
    throw;
  }
}

void Communicator::exchange(Queue &queue, const sluice_exchange &asked) {
  context_.work(queue, [&] {
    Context::checkCapturesNot(queue, "exchange with other ranks");
    if (queue.device->ordinal != rank_->device)
      throw Error(SLUICE_USAGE, "the queue is of cuda:" + std::to_string(queue.device->ordinal) + ", and of " +
                                    rank_->text() + " is the communicator");
    rank_->ranks->check();
    Part part = exchange::partOf(asked, rank_->number, rank_->ranks->size());
    if (exchange::reduces(part.signature.kind) && part.signature.reduction == SLUICE_TREE_SUM)
      throw Error(SLUICE_UNSUPPORTED, noTreeSums);
    std::string what = part.signature.text();
    queue.exchanges[rank_] = rank_->ranks->put(*rank_, part);
    auto call = [its = rank_.get(), stream = queue.stream, part = std::move(part)](const Nccl &nccl) {
      NcclResult result = askForExchange(nccl, part, its->handle(), stream);
      its->countIssued(part.signature);
      return result;
    };
    context_.request({rank_, std::move(call), std::move(what)});
  });
}

/// Called from any thread, because the context's thread may be in a blocking call.
void Communicator::abort() {
  rank_->ranks->fail(Error(SLUICE_PEER_LOST, exchange::rankText(rank_->number) + " was aborted"));
}

void Communicator::leave() {
  context_.driver().contextSetCurrent(rank_->context);
  rank_->ranks->leave(*rank_);
}

} // namespace sluice::cuda
