// Times of kernels on a target's devices and of copies between devices.
#pragma once

#include "ir/Dialect.h"
#include "passes/analysis/KernelRates.h"
#include "llvm/ADT/StringMap.h"
#include <map>
#include <string>

namespace sluice::passes {

/// The origin of a figure.
enum class CostSource { Nominal, Published, Description, Measured, Given };
llvm::StringRef nameOf(CostSource source);

struct DeviceCosts {
  KernelRates any; ///< of kinds without measurements
  llvm::StringMap<KernelRates> kinds;
  llvm::StringMap<KernelRates> endings; ///< by the ending of a kind, e.g. "_bf16"; for kinds without measurements
  std::map<std::string, std::string> estimated; ///< kinds of `kinds` without measurements: the source of the estimate
  CostSource source = CostSource::Nominal;
  std::string architecture; ///< e.g. "sm_90", if the rates contain published peaks of it; else empty

  const KernelRates &ratesOf(llvm::StringRef kind) const;

  /// Estimates kinds without measurements whose ending has a published peak. Such a kind is assumed to
  /// reach the same share of its peak as the closest measured kind with the same stem, else as all measured kinds.
  void estimateUnmeasured(const DeviceCosts &published);
};

struct LinkCosts {
  double bytesPerSecond = 12e9, latency = 5e-6; ///< latency in seconds
  CostSource source = CostSource::Nominal;
};

/// Costs of logical devices ("cpu", "acc0"). The link of a device with itself connects the physical devices that
/// replicas use for it. Devices and links without a description have nominal costs.
class CostModel {
public:
  DeviceCosts &device(llvm::StringRef name) { return devices[name]; }
  LinkCosts &link(llvm::StringRef from, llvm::StringRef to) { return links[{from.str(), to.str()}]; }
  const DeviceCosts &device(llvm::StringRef name) const;
  const LinkCosts &link(llvm::StringRef from, llvm::StringRef to) const;

  double kernelSeconds(llvm::StringRef device, llvm::StringRef kind, double flops, double bytes) const;
  /// The time of a ring of replicas, each on its device called `device`, that reduces, broadcasts, scatters or gathers
  /// `bytes`.
  double collectiveSeconds(llvm::StringRef device, ir::CollectiveKind kind, double bytes, int64_t replicas) const;
  double copySeconds(llvm::StringRef from, llvm::StringRef to, double bytes) const;

private:
  llvm::StringMap<DeviceCosts> devices;
  std::map<std::pair<std::string, std::string>, LinkCosts> links;
};

} // namespace sluice::passes
