// Measured rates of this machine, and their file: `sluice devices --measure` writes it, placement reads it.
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

/// The timed kernels of a device, by kind.
struct DeviceCalibration {
  std::string device; ///< as in `--devices`: "cpu", "sim:0"
  std::map<std::string, std::vector<passes::KernelSample>> kinds;

  passes::DeviceCosts costs() const;
};

struct LinkCalibration {
  std::string from, to; ///< as in `--devices`
  double bytesPerSecond = 0, latency = 0;
};

/// A kind of kernel that could not be timed on a device; placement then uses its other kinds, or the device's
/// description.
struct UnmeasuredKind {
  std::string device, kind, reason;
};

/// Measurements by one clock. A simulator that also runs the host's work has its own clock, with separate measurements
/// of the host.
struct ClockCalibration {
  std::string clock;   ///< "cpu" for the wall clock, else the backend's name
  std::string machine; ///< the CPU and its number of threads
  std::vector<DeviceCalibration> devices;
  std::vector<LinkCalibration> links;
  std::vector<UnmeasuredKind> unmeasured;

  /// Of the device, or of another device of its backend; null if there is none.
  const DeviceCalibration *findDevice(const ir::TargetDevice &device) const;
  const LinkCalibration *findLink(const ir::TargetDevice &from, const ir::TargetDevice &to) const;
};

struct Calibration {
  std::vector<ClockCalibration> clocks;

  /// The measurements by this clock on this machine; null if there are none.
  const ClockCalibration *find(llvm::StringRef clock) const;
};

/// The name of the clock that times a target's work.
std::string clockOf(const ir::Target &target, const std::vector<runtime::BackendFile> &backends);
/// "AMD EPYC 9R45, 2 threads"
std::string machineName();

/// SLUICE_CALIBRATION, else sluice/calibration.json in the user's cache folder; empty if there is none.
std::string calibrationPath();

/// The reason why measurements could not be saved, checked before measuring. Creates the file's folder.
llvm::Error checkCalibrationPath();
/// Empty if there is no file; a damaged file is an error that names it.
llvm::Expected<Calibration> readCalibration();
llvm::json::Value toJson(const ClockCalibration &clock);
/// Replaces the measurements of the same clock and machine in the file.
llvm::Error writeCalibration(const ClockCalibration &measured);

} // namespace sluice::compiler
