// Measures algorithms of cublasLt when code is loaded, for kernels that were compiled with algorithms=timed, and stores
// the choices.
//
// The first context that loads such a product chooses for all contexts of its group, so replicas of one process round
// alike. Each process times separately, so replicas in several processes may differ in rounding.
#pragma once

#include "backends/cuda/runtime/BlasLt.h"
#include "backends/cuda/runtime/Driver.h"

#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace sluice::cuda {

/// The choices so far, by the contexts of a group.
class FastestAlgorithms {
public:
  /// The algorithm of a product, keyed with its device and library. Calls `choose` if there is no choice yet. Other
  /// threads with the same key wait.
  BlasAlgorithm find(const std::string &product, const std::function<BlasAlgorithm()> &choose);

private:
  std::mutex mutex;
  std::map<std::string, BlasAlgorithm> chosen;
};

/// The context in which a device's products are timed.
struct TimingPlace {
  const Driver &driver;
  DriverStream stream; ///< of the device, whose context is current
  std::string device;  ///< its name
  FastestAlgorithms &fastest;
};

/// Zeroed device memory, freed with this object.
class ScratchMemory {
public:
  ScratchMemory(const TimingPlace &where, size_t bytes);
  ~ScratchMemory();
  ScratchMemory(const ScratchMemory &) = delete;
  ScratchMemory &operator=(const ScratchMemory &) = delete;

  /// Null if the allocation failed.
  std::byte *begin() const { return reinterpret_cast<std::byte *>(address); }

private:
  const TimingPlace &where;
  DeviceAddress address = 0;
};

/// Two events around work in the stream.
class StreamTimer {
public:
  explicit StreamTimer(const TimingPlace &where);
  ~StreamTimer();
  StreamTimer(const StreamTimer &) = delete;
  StreamTimer &operator=(const StreamTimer &) = delete;

  /// Milliseconds of device time for the work that `put` enqueues: the best of three runs after a warm-up. Infinite if
  /// `put` returns a nonzero status, or if the driver cannot time events.
  float best(const std::function<int()> &put) const;

private:
  const TimingPlace &where;
  DriverEvent from = nullptr, to = nullptr;
};

} // namespace sluice::cuda
