// Reads the next batches in a separate thread while a step runs.
#pragma once

#include "runtime/data/Feed.h"

#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace sluice::runtime {

class ReadAhead {
public:
  /// Starts reading the rows of `order` in batches of `batchRows`; the last batch has the remainder. `feed` and the
  /// elements of `order` must outlive this.
  ReadAhead(const Feed &feed, std::span<const uint32_t> order, int64_t batchRows);
  ReadAhead(const ReadAhead &) = delete;
  ReadAhead &operator=(const ReadAhead &) = delete;
  /// Cancels the remaining batches, and waits for the batch in progress.
  ~ReadAhead();

  /// The next batch, which must exist; valid until the next call. Throws the reader thread's error for this batch.
  const Batch &next();

private:
  /// One batch in use and two read ahead.
  static constexpr size_t ring = 3;

  void readAll();
  bool waitForRoom();

  const Feed &feed_;
  std::span<const uint32_t> order_;
  size_t batchRows_;
  std::array<Batch, ring> batches_;
  std::mutex mutex_; ///< guards the members below
  std::condition_variable changed_;
  size_t filled_ = 0, given_ = 0; ///< batches filled and returned so far
  bool isStopped_ = false;
  std::exception_ptr error_; ///< error of batch number `filled_`
  std::thread thread_;
};

} // namespace sluice::runtime
