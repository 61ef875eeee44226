// Algorithms of cublasLt that are timed when code is loaded, for products whose kernels were compiled with algorithms=timed,
// and what was chosen so. The first that loads such a product chooses for all contexts of its group: replicas of one
// process round alike. Each process times for itself, so replicas of several may differ in their roundings.
#pragma once

#include "backends/cuda/runtime/BlasLt.h"
#include "backends/cuda/runtime/Driver.h"

#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace sluice::cuda {

/// What was chosen so far, by the contexts of a group.
class FastestAlgorithms {
public:
  /// The algorithm of a product, which is told with its device and library; what `choose` gives if nobody asked before.
  /// Other threads that ask wait for it.
  BlasAlgorithm find(const std::string &product, const std::function<BlasAlgorithm()> &choose);

private:
  std::mutex mutex;
  std::map<std::string, BlasAlgorithm> chosen;
};

/// Where a device's products are timed.
struct TimingPlace {
  const Driver &driver;
  DriverStream stream; ///< of the device, whose context is current
  std::string device;  ///< its name
  FastestAlgorithms &fastest;
};

/// Memory of a device for as long as that lives, all zeros.
class ScratchMemory {
public:
  ScratchMemory(const TimingPlace &where, size_t bytes);
  ~ScratchMemory();
  ScratchMemory(const ScratchMemory &) = delete;
  ScratchMemory &operator=(const ScratchMemory &) = delete;

  /// Null if the device has no memory for it.
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

  /// How many milliseconds the device takes for what `put` puts into the stream, at best: of three, behind one that is not
  /// counted. Infinite if `put` gives a status that is not 0, or if the driver has no times.
  float best(const std::function<int()> &put) const;

private:
  const TimingPlace &where;
  DriverEvent from = nullptr, to = nullptr;
};

} // namespace sluice::cuda
