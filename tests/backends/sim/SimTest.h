// The simulator's run half, loaded as executables load it and used through its C table alone.
#pragma once

#include "sluice/backend/run.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace sluice::test {

/// The table of lib/sluice/backends/sluice_sim_run.so.
const sluice_backend_run &simulator();

struct TestBuffer {
  void *address;
  size_t bytes;
  sluice_access access;
};

/// One context; `error` has the message after a call that did not return SLUICE_OK.
class Simulation {
public:
  explicit Simulation(const std::string &settings = "", sluice_group *group = nullptr);
  ~Simulation();
  Simulation(const Simulation &) = delete;

  sluice_status status; // of opening it
  std::string error() const { return simulator().last_error(run); }

  void *allocate(int32_t device, size_t bytes);
  sluice_queue *queue(int32_t device, const char *name);
  sluice_event *event();
  /// An event for the end of `queue`.
  sluice_event *record(sluice_queue *queue);
  void wait(sluice_queue *queue, sluice_event *event);
  void finish(sluice_queue *queue);
  /// Start and end of the last work of `queue` on the virtual clock.
  std::pair<double, double> times(sluice_queue *queue);

  sluice_status copy(sluice_queue *queue, int32_t fromDevice, const void *from, int32_t toDevice, void *to,
                     size_t bytes);
  /// A kernel of one task, which is called with the addresses of `buffers`.
  sluice_status launch(sluice_queue *queue, const char *name, sluice_host_stage function,
                       const std::vector<TestBuffer> &buffers, double flops = 0, double bytes = 0);

  sluice_run *run = nullptr;

private:
  std::vector<sluice_queue *> queues;
  std::vector<sluice_event *> events;
};

/// Adds one to the i32 in buffer 0.
void increment(void *const *buffers, int64_t rows, int64_t begin, int64_t end);
/// Doubles the i32 in buffer 0.
void twice(void *const *buffers, int64_t rows, int64_t begin, int64_t end);
/// Does nothing: for work that is only timed or ordered.
void nothing(void *const *buffers, int64_t rows, int64_t begin, int64_t end);

} // namespace sluice::test
