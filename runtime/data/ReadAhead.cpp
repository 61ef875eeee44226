#include "runtime/data/ReadAhead.h"

#include <algorithm>

namespace sluice::runtime {

ReadAhead::ReadAhead(const Feed &feed, std::span<const uint32_t> order, int64_t batchRows)
    : feed_(feed), order_(order), batchRows_(static_cast<size_t>(batchRows)), thread_([this] { readAll(); }) {}

ReadAhead::~ReadAhead() {
  {
    std::lock_guard lock(mutex_);
    isStopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

/// Waits for a batch slot that is not in use; false if no more batches are requested.
bool ReadAhead::waitForRoom() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return isStopped_ || filled_ + 1 < given_ + ring; });
  return !isStopped_;
}

void ReadAhead::readAll() {
  for (size_t begin = 0; begin < order_.size() && waitForRoom(); begin += batchRows_) {
    std::exception_ptr error;
    try {
      feed_.read(order_.subspan(begin, std::min(batchRows_, order_.size() - begin)), batches_[filled_ % ring]);
    } catch (...) {
      error = std::current_exception();
    }
    {
      std::lock_guard lock(mutex_);
      error_ = error;
      filled_ += !error;
    }
    changed_.notify_all();
    if (error)
      return;
  }
}

const Batch &ReadAhead::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || filled_ > given_; });
  if (filled_ == given_)
    std::rethrow_exception(error_);
  const Batch &batch = batches_[given_++ % ring];
  lock.unlock();
  changed_.notify_all();
  return batch;
}

} // namespace sluice::runtime
