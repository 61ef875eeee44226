// Ranks with a process each, which has one emulated device, and the final result of each.
#pragma once

#include "sluice/backend/collectives.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sluice::test {

using Environment = std::vector<std::pair<std::string, std::string>>;

/// Loads the run half in this process, which from now on has these variables and the doubles.
const sluice_backend_run &loadCudaRunHalf(const Environment &environment);

/// A context with a communicator, a queue and a little memory. Errors are thrown as "STATUS: message of last_error".
class DeviceRank {
public:
  DeviceRank(const sluice_backend_run &half, int32_t device = 0);
  ~DeviceRank();
  DeviceRank(const DeviceRank &) = delete;

  sluice_unique_id makeId();
  /// `patience`: seconds to wait for other ranks; 0: no limit.
  void join(const sluice_unique_id &id, int32_t rank, int32_t size, double patience = 0);
  /// Exchanges elements of all ranks: receives the largest, or all in rank order.
  std::vector<float> exchange(sluice_exchange_kind kind, const std::vector<float> &values,
                              const std::vector<size_t> &counts = {});
  void put(sluice_exchange_kind kind, size_t count, const std::vector<size_t> &counts = {},
           sluice_reduction reduction = SLUICE_MAX);
  void wait();
  void abort() { table().abort(communicator); }
  void leave();
  sluice_status error() { return table().error(communicator); }
  std::string lastError() const { return half.last_error(run); }

  void check(sluice_status status) const;
  const sluice_backend_collectives &table() const { return *half.collectives; }

  const sluice_backend_run &half;
  sluice_run *run = nullptr;
  sluice_queue *queue = nullptr;
  sluice_communicator *communicator = nullptr;

private:
  void copy(const void *from, void *to, size_t bytes, bool up);

  int32_t device;
  void *memory = nullptr; // sent bytes, followed by received bytes
};

/// Passes the id of rank 0 to all.
using ShareId = std::function<sluice_unique_id(DeviceRank &rank)>;
/// Runs `body` in this many processes at the same time, and returns the result or error of each; "killed" for a killed
/// process.
std::vector<std::string> inProcesses(int32_t size,
                                     const std::function<std::string(int32_t rank, const ShareId &share)> &body,
                                     const Environment &environment = {});

} // namespace sluice::test
