// How long kernels take on the devices of a target, and copies between them.
#pragma once

#include "ir/Dialect.h"
#include "passes/analysis/KernelRates.h"
#include "llvm/ADT/StringMap.h"
#include <map>
#include <string>

namespace sluice::passes {

/// Where a figure comes from.
enum class CostSource { Nominal, Published, Description, Measured, Given };
llvm::StringRef nameOf(CostSource source);

struct DeviceCosts {
  KernelRates any; ///< of kinds that were not measured
  llvm::StringMap<KernelRates> kinds;
  llvm::StringMap<KernelRates> endings;         ///< of kinds that end so, as "_bf16", and were not measured
  std::map<std::string, std::string> estimated; ///< of `kinds` those that were not measured, and what they are made of
  CostSource source = CostSource::Nominal;
  std::string architecture; ///< "sm_90", if published peaks of it are among the rates; else empty

  const KernelRates &ratesOf(llvm::StringRef kind) const;

  /// For kinds that were not measured and end as some do of which peaks are published: they reach the share of their peak that
  /// a measured kind reaches of its own, of those that begin as they do the one with the nearest; without any, what all reach.
  void estimateUnmeasured(const DeviceCosts &published);
};

struct LinkCosts {
  double bytesPerSecond = 12e9, latency = 5e-6;
  CostSource source = CostSource::Nominal;
};

/// Costs of logical devices ("cpu", "acc0"). A link of a device with itself is that between the devices which replicas have for it.
/// A device or link that nothing was said of has nominal ones.
class CostModel {
public:
  DeviceCosts &device(llvm::StringRef name) { return devices[name]; }
  LinkCosts &link(llvm::StringRef from, llvm::StringRef to) { return links[{from.str(), to.str()}]; }
  const DeviceCosts &device(llvm::StringRef name) const;
  const LinkCosts &link(llvm::StringRef from, llvm::StringRef to) const;

  double kernelSeconds(llvm::StringRef device, llvm::StringRef kind, double flops, double bytes) const;
  /// Of a ring of replicas, each on its device called `device`, that reduces, broadcasts, scatters or gathers `bytes`.
  double collectiveSeconds(llvm::StringRef device, ir::CollectiveKind kind, double bytes, int64_t replicas) const;
  double copySeconds(llvm::StringRef from, llvm::StringRef to, double bytes) const;

private:
  llvm::StringMap<DeviceCosts> devices;
  std::map<std::pair<std::string, std::string>, LinkCosts> links;
};

} // namespace sluice::passes
