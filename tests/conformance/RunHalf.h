// A context of the backend's run half, its devices' memory, queues and events, released at the end of a test.
#pragma once

#include "tests/conformance/Larger.h"
#include "tests/conformance/Suite.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace sluice::conformance {

using Bytes = std::vector<unsigned char>;

/// Bytes that differ from place to place and from seed to seed.
Bytes pattern(size_t bytes, unsigned seed = 1);

/// A launch with nothing but its name and its rows, which must outlive it.
sluice_launch launchOf(const char *name, const sluice_call &call);

/// Its replays must be done when it goes.
using Sequence = std::unique_ptr<sluice_sequence, void (*)(sluice_sequence *)>;

class RunHalf {
public:
  /// Opens a context; skips the test if the backend has no run half here, or fewer devices than the test needs.
  explicit RunHalf(const Subject &subject, int32_t devices = 1, sluice_group *group = nullptr);
  ~RunHalf();
  RunHalf(const RunHalf &) = delete;

  /// Members that the backend lacks are null.
  const sluice_backend_run &table() const { return table_; }
  sluice_run *get() const { return run_; }
  int32_t devices() const { return devices_; }
  /// Timeout of a test's waits, in seconds.
  double patience() const { return patience_; }
  std::string lastError() const;

  /// Fails the test unless `status` is SLUICE_OK.
  void check(sluice_status status, const std::string &what) const;

  /// Of the host it is memory of the suite.
  void *allocate(size_t bytes, int32_t device = 0);
  void release(void *address, int32_t device = 0);
  sluice_queue *queue(int32_t device = 0, sluice_queue_kind kind = SLUICE_QUEUE_COPY);
  sluice_event *event();
  /// An event for the end of the queue.
  sluice_event *record(sluice_queue *queue);
  /// Makes a queue record times; skips the test if the backend has no times.
  void noteTimes(sluice_queue *queue);
  /// Start and end of the last work before an event that is done.
  std::pair<double, double> times(sluice_event *event) const;
  void wait(sluice_queue *queue, sluice_event *event);
  void finish(sluice_queue *queue);
  sluice_device_info info(int32_t device = 0) const;

  void copy(sluice_queue *queue, const sluice_copy &copy);
  /// Puts copies between host and device memory into the queue; the host's bytes must live until they are done.
  void upload(sluice_queue *queue, const Bytes &from, void *to, int32_t device = 0);
  void download(sluice_queue *queue, const void *from, Bytes &to, int32_t device = 0);
  /// Whether its queues keep sequences.
  bool captures() const { return table_.capture_begin != nullptr; }
  /// A sequence of the work that `put` submits.
  Sequence capture(sluice_queue *queue, const std::function<void()> &put);
  void replay(sluice_queue *queue, const Sequence &sequence);

  /// The present contents of device memory.
  Bytes read(const void *from, size_t bytes, int32_t device = 0);

private:
  sluice_backend_run table_;
  sluice_run *run_ = nullptr;
  int32_t devices_ = 0;
  double patience_;
  std::vector<sluice_queue *> queues_;
  std::vector<sluice_event *> events_;
  std::vector<std::pair<int32_t, void *>> memory_;
};

} // namespace sluice::conformance
