// Reads the next batches in a thread of its own while a step runs.
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
  /// Begins to read the rows of `order`, `batchRows` at a time and as many as are left at the end. Both arguments must
  /// outlive this.
  ReadAhead(const Feed &feed, std::span<const uint32_t> order, int64_t batchRows);
  ReadAhead(const ReadAhead &) = delete;
  ReadAhead &operator=(const ReadAhead &) = delete;
  /// Does not wait for rows that nobody wants any more, but for those of the batch at hand.
  ~ReadAhead();

  /// The next batch, of which there is one; valid until the next call. What went wrong with it in the thread is thrown
  /// here.
  const Batch &next();

private:
  /// One in use and two ahead.
  static constexpr size_t ring = 3;

  void readAll();
  bool waitForRoom();

  const Feed &feed_;
  std::span<const uint32_t> order_;
  size_t batchRows_;
  std::array<Batch, ring> batches_;
  std::mutex mutex_; ///< over what follows
  std::condition_variable changed_;
  size_t filled_ = 0, given_ = 0; ///< batches so far
  bool isStopped_ = false;
  std::exception_ptr error_; ///< of batch number `filled_`
  std::thread thread_;
};

} // namespace sluice::runtime
