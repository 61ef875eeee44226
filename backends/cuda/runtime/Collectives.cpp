// Exchanges are NCCL's work in the streams of queues. Where all ranks have equal shares they are its own collectives; else a gather
// is a broadcast from each rank, and a scatter a reduction to each, in one group. Where nothing is to be moved NCCL is not asked,
// by any rank. Ranks of other processes are found by the id alone, whatever transport there is; of that only the deadline is
// taken, for calls that wait until all ranks have come.
#include "backends/cuda/runtime/Collectives.h"

#include "backends/cuda/runtime/Handles.h"
#include "backends/exchange/Arithmetic.h"

#include <algorithm>
#include <utility>

using namespace sluice::cuda;
using sluice::exchange::Part;
using sluice::exchange::Signature;

static constexpr const char *kNoTreeSums =
    "NCCL adds in an order of its own, not in a tree: replicas on devices of cuda "
    "cannot be --deterministic, and one alone can";

struct sluice_communicator {
  sluice_run *run;
  std::shared_ptr<Rank> rank;
};

//===- what NCCL is asked for -------------------------------------------------------------------------------------===//

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

/// Calls `ask` with each rank's number, the place of its share in the whole, and the share's elements.
template <typename Ask> static NcclResult forEachShare(const Signature &signature, Ask ask) {
  size_t offset = 0;
  NcclResult result = NcclResult::Success;
  for (size_t rank = 0; rank < signature.counts.size() && result == NcclResult::Success; ++rank) {
    size_t count = signature.counts[rank];
    if (count > 0)
      result = ask(int(rank), offset, count);
    offset += count * sluice::exchange::exchangedBytes(signature.dtype);
  }
  return result;
}

/// In a group of NCCL's.
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

/// The same.
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

//===- the table --------------------------------------------------------------------------------------------------===//

static sluice_status uniqueId(sluice_run *run, sluice_unique_id *id) {
  return guarded(run, [&] {
    const Nccl &nccl = Nccl::get();
    if (NcclResult result = nccl.makeId(id); result != NcclResult::Success)
      throw nccl.errorOf(result, nullptr, "an id for ranks");
  });
}

static double patienceOf(const sluice_communicator_options &options) {
  bool hasTransport = SLUICE_HAS_MEMBER(sluice_communicator_options, &options, transport) && options.transport;
  return hasTransport ? options.transport->deadline : 0;
}

/// A rank that cannot be made ends those that wait for it.
static void connect(sluice_run *run, const std::shared_ptr<Rank> &rank, const sluice_unique_id &id) {
  try {
    auto call = [its = rank.get(), id](const Nccl &nccl) {
      NcclConfig config;
      return nccl.init(&its->handle(), its->ranks->size(), id, its->number, &config);
    };
    run->ncclGroup.add(run->context->driver(), {rank, call, "the communicator"});
  } catch (const Error &error) {
    rank->ranks->fail(error);
    rank->ranks->leave(*rank);
    throw;
  }
}

static sluice_status init(sluice_run *run, const sluice_communicator_options *options,
                          sluice_communicator **communicator) {
  return guarded(run, [&] {
    Nccl::get();
    if (options->device == SLUICE_HOST)
      throw Error(SLUICE_UNSUPPORTED, "cuda exchanges among devices, and not with the host");
    const Device &device = run->context->device(options->device);
    std::shared_ptr<Ranks> ranks = run->ranks->ranksOf(*options->id, options->rank, options->size);
    auto rank = std::make_shared<Rank>(ranks, options->rank, device.ordinal, device.context, patienceOf(*options));
    ranks->join(*rank);
    connect(run, rank, *options->id);
    *communicator = new sluice_communicator{run, std::move(rank)};
  });
}

static sluice_status putIn(sluice_communicator *communicator, sluice_queue *queue, const sluice_exchange *exchange) {
  return guardedWork(queue, [&](Context &context, Queue &its) {
    std::shared_ptr<Rank> rank = communicator->rank;
    Context::checkCapturesNot(its, "exchange with other ranks");
    if (its.device->ordinal != rank->device)
      throw Error(SLUICE_USAGE, "the queue is of cuda:" + std::to_string(its.device->ordinal) + ", and of " +
                                    rank->text() + " is the communicator");
    rank->ranks->check();
    Part part = sluice::exchange::partOf(*exchange, rank->number, rank->ranks->size());
    if (sluice::exchange::reduces(part.signature.kind) && part.signature.reduction == SLUICE_TREE_SUM)
      throw Error(SLUICE_UNSUPPORTED, kNoTreeSums);
    std::string what = part.signature.text();
    its.exchanges[rank] = rank->ranks->put(*rank, part);
    auto call = [its = rank.get(), stream = its.stream, part = std::move(part)](const Nccl &nccl) {
      NcclResult result = askForExchange(nccl, part, its->handle(), stream);
      its->countIssued(part.signature);
      return result;
    };
    communicator->run->ncclGroup.add(context.driver(), {rank, std::move(call), std::move(what)});
  });
}

static sluice_status begin(sluice_run *run) {
  run->ncclGroup.begin();
  return SLUICE_OK;
}

static sluice_status end(sluice_run *run) {
  return guarded(run, [&] { run->ncclGroup.end(run->context->driver()); });
}

static sluice_status error(sluice_communicator *communicator) {
  return guarded(communicator->run, [&] { communicator->rank->isReady(); });
}

/// In any thread: the context's own may be in a call that waits.
static void abortRanks(sluice_communicator *communicator) {
  const Rank &rank = *communicator->rank;
  rank.ranks->fail(Error(SLUICE_PEER_LOST, sluice::exchange::rankText(rank.number) + " was aborted"));
}

static void destroy(sluice_communicator *communicator) {
  guarded(communicator->run, [&] {
    communicator->run->context->driver().contextSetCurrent(communicator->rank->context);
    communicator->rank->ranks->leave(*communicator->rank);
  });
  delete communicator;
}

/// Those that NCCL was asked for: it does not say what became of them one by one.
static sluice_status counts(sluice_communicator *communicator, int32_t kind, int64_t *exchanges, int64_t *bytes) {
  return guarded(communicator->run, [&] {
    sluice::exchange::Roster::Count count = communicator->rank->count(kind);
    *exchanges = count.exchanges;
    *bytes = count.bytes;
  });
}

const sluice_backend_collectives &sluice::cuda::collectives() {
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
    filled.order =
        "NCCL's own, by its choice of algorithm for the counts and the machine; the same program on the same "
        "machine repeats its bits";
    filled.counts = counts;
    filled.no_tree_sums = kNoTreeSums;
    return filled;
  }();
  return table;
}
