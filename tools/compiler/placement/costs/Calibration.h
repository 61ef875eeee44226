// Rates that were measured on this machine, and the file that keeps them: `sluice devices --measure` writes it,
// placement reads it.
#pragma once

#include "ir/Target.h"
#include "passes/analysis/CostModel.h"
#include "runtime/plugins/BackendLoader.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <string>
#include <vector>

namespace sluice::compiler {

/// The kernels that were timed on a device, by kind.
struct DeviceCalibration {
  std::string device; ///< as in `--devices`: "cpu", "sim:0"
  std::map<std::string, std::vector<passes::KernelSample>> kinds;

  passes::DeviceCosts costs() const;
};

struct LinkCalibration {
  std::string from, to; ///< as in `--devices`
  double bytesPerSecond = 0, latency = 0;
};

/// A kind of kernel that a device could not be timed with; placement then goes by its other kinds, or by what the
/// device tells of itself.
struct UnmeasuredKind {
  std::string device, kind, reason;
};

/// What was measured by one clock. A simulator that takes the host's work too has a clock of its own, by which the same
/// host is another one.
struct ClockCalibration {
  std::string clock;   ///< "cpu" for the wall clock, else the backend's name
  std::string machine; ///< the CPU and its number of threads
  std::vector<DeviceCalibration> devices;
  std::vector<LinkCalibration> links;
  std::vector<UnmeasuredKind> unmeasured;

  /// Of the device, or of another one of its backend; null if there is none.
  const DeviceCalibration *findDevice(const ir::TargetDevice &device) const;
  const LinkCalibration *findLink(const ir::TargetDevice &from, const ir::TargetDevice &to) const;
};

struct Calibration {
  std::vector<ClockCalibration> clocks;

  /// What was measured by this clock on this machine; null if nothing was.
  const ClockCalibration *find(llvm::StringRef clock) const;
};

/// The name of the clock that a target's work is timed by.
std::string clockOf(const ir::Target &target, const std::vector<runtime::BackendFile> &backends);
/// "AMD EPYC 9R45, 2 threads"
std::string machineName();

/// SLUICE_CALIBRATION, else sluice/calibration.json in the user's cache folder; empty if there is none.
std::string calibrationPath();

/// Why nothing that is measured could be kept, better learnt before measuring. Makes the folder of the file.
llvm::Error checkCalibrationPath();
/// Empty if there is no file; a file that is damaged is an error that names it.
llvm::Expected<Calibration> readCalibration();
llvm::json::Value toJson(const ClockCalibration &clock);
/// Replaces what the file has of the same clock and machine.
llvm::Error writeCalibration(const ClockCalibration &measured);

} // namespace sluice::compiler
