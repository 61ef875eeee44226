#include "backends/transport/openmpi/Messages.h"

#include "backends/transport/openmpi/Library.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace sluice::transport {

using exchange::rankText;

static constexpr size_t kMostPartBytes = size_t(1) << 30; // MPI counts bytes in an int
static constexpr int kTag = 1;
static constexpr std::chrono::microseconds kEagerness{50}; // polling without sleep after progress
static constexpr std::chrono::microseconds kSleep{50};     // between later polls

void Messages::check(int code, int32_t rank, const char *what) {
  if (code == MPI_SUCCESS)
    return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail(SLUICE_PEER_LOST, rankText(rank), " is lost: ", what, ": ", std::string(text, static_cast<size_t>(length)));
}

Messages::Messages(int32_t rank, int32_t size) : rank_(rank), size_(size) {
  showOpenMpi();
  int isInitialised = 0, provided = 0;
  MPI_Initialized(&isInitialised);
  if (!isInitialised)
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), rank, "MPI_Init_thread");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int ownRank = 0, ownSize = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &ownRank);
  MPI_Comm_size(MPI_COMM_WORLD, &ownSize);
  if (ownRank != rank || ownSize != size)
    fail(SLUICE_USAGE, "openmpi: this is ", rankText(rank), " of ", size, ", but for Open MPI it is ",
         rankText(ownRank), " of ", ownSize, "; its own launcher must start the ranks");
  for (MPI_Comm *own : {&world_, &aborts_}) {
    check(MPI_Comm_dup(MPI_COMM_WORLD, own), rank, "MPI_Comm_dup");
    MPI_Comm_set_errhandler(*own, MPI_ERRORS_RETURN);
  }
  check(MPI_Irecv(&aborted_, 1, MPI_INT32_T, MPI_ANY_SOURCE, kTag, aborts_, &abortOfOther_), rank, "MPI_Irecv");
}

/// Messages in flight would block MPI_Finalize; they end with the process instead.
Messages::~Messages() {
  tellAbort();
  int isFinalised = 0;
  MPI_Finalized(&isFinalised);
  if (isFinalised || broken_ || isAborted_ || !transfers_.empty() || world_ == MPI_COMM_NULL)
    return;
  MPI_Cancel(&abortOfOther_);
  MPI_Wait(&abortOfOther_, MPI_STATUS_IGNORE);
  MPI_Comm_free(&aborts_);
  MPI_Comm_free(&world_);
  MPI_Finalize();
}

//===- aborts -----------------------------------------------------------------------------------------------------===//

/// Does not wait for these messages: they are small enough to be sent within the call.
void Messages::tellAbort() {
  if (!isAborted_ || std::exchange(hasToldAbort_, true))
    return;
  int32_t culprit = aborted_ >= 0 ? aborted_ : rank_;
  for (int32_t rank = 0; rank < size_; ++rank) {
    MPI_Request request = MPI_REQUEST_NULL;
    int done = 0;
    if (rank != rank_ && MPI_Isend(&culprit, 1, MPI_INT32_T, rank, kTag, aborts_, &request) == MPI_SUCCESS)
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  }
  if (!broken_)
    broken_.emplace(SLUICE_PEER_LOST, rankText(rank_) + " was aborted");
}

void Messages::hearAbort() {
  if (broken_ || abortOfOther_ == MPI_REQUEST_NULL)
    return;
  int heard = 0;
  MPI_Status status;
  if (MPI_Test(&abortOfOther_, &heard, &status) != MPI_SUCCESS || !heard)
    return;
  broken_.emplace(SLUICE_PEER_LOST, rankText(status.MPI_SOURCE) + " was aborted" +
                                        (aborted_ == status.MPI_SOURCE ? "" : ", because of " + rankText(aborted_)));
}

//===- messages ---------------------------------------------------------------------------------------------------===//

void Messages::beginPart(sluice_transfer &transfer, size_t first) {
  auto count = static_cast<int>(std::min(kMostPartBytes, transfer.bytes - first));
  MPI_Request request = MPI_REQUEST_NULL;
  std::byte *at = transfer.memory + first;
  check(transfer.sends ? MPI_Isend(at, count, MPI_BYTE, transfer.rank, kTag, world_, &request)
                       : MPI_Irecv(at, count, MPI_BYTE, transfer.rank, kTag, world_, &request),
        transfer.rank, transfer.sends ? "MPI_Isend" : "MPI_Irecv");
  transfer.parts.push_back(request);
}

sluice_transfer *Messages::begin(int32_t rank, bool sends, void *memory, size_t bytes) {
  if (rank < 0 || rank >= size_ || rank == rank_)
    fail(SLUICE_USAGE, "there is no other ", rankText(rank), " of ", size_);
  if (broken_)
    throw *broken_;
  sluice_transfer &transfer =
      transfers_.emplace_front(sluice_transfer{rank, sends, static_cast<std::byte *>(memory), bytes});
  transfer.self = transfers_.begin();
  size_t first = 0;
  do {
    beginPart(transfer, first);
    first += kMostPartBytes;
  } while (first < bytes);
  return &transfer;
}

void Messages::checkSize(const sluice_transfer &transfer, MPI_Status &status, size_t part) const {
  int count = 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  size_t expected = std::min(kMostPartBytes, transfer.bytes - part * kMostPartBytes);
  if (static_cast<size_t>(count) != expected)
    fail(SLUICE_INVALID, rankText(transfer.rank), " sent a message of ",
         part * kMostPartBytes + static_cast<size_t>(count), " bytes, where ", transfer.bytes, " were to come");
}

/// Whether all parts are complete; parts complete in order.
bool Messages::testParts(sluice_transfer &transfer) {
  for (int done = 0; transfer.done < transfer.parts.size(); ++transfer.done) {
    MPI_Status status{};
    int code = MPI_Test(&transfer.parts[transfer.done], &done, &status);
    int kind = code;
    if (code != MPI_SUCCESS)
      MPI_Error_class(code, &kind);
    if (kind == MPI_ERR_TRUNCATE)
      fail(SLUICE_INVALID, rankText(transfer.rank), " sent a message of more than the ", transfer.bytes,
           " bytes that were to come");
    check(code, transfer.rank, "MPI_Test");
    if (!done)
      return false;
    if (!transfer.sends)
      checkSize(transfer, status, transfer.done);
  }
  return true;
}

/// Sleeps if there was no progress for a while: MPI's waits would be busy loops.
void Messages::pause() {
  if (Clock::now() - lastMove_ > kEagerness)
    std::this_thread::sleep_for(kSleep);
}

bool Messages::test(sluice_transfer *transfer) {
  try {
    tellAbort();
    hearAbort();
    if (broken_)
      throw *broken_;
    if (!testParts(*transfer)) {
      pause();
      return false;
    }
  } catch (const Error &error) {
    if (!broken_)
      broken_ = error;
    throw; // the transfer stays in `transfers_`, because MPI may still use it
  }
  transfers_.erase(transfer->self);
  lastMove_ = Clock::now();
  return true;
}

} // namespace sluice::transport
