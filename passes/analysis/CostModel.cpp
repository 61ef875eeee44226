#include "passes/analysis/CostModel.h"

#include "llvm/ADT/STLExtras.h"
#include <cmath>

namespace sluice::passes {

llvm::StringRef nameOf(CostSource source) {
  switch (source) {
  case CostSource::Nominal:
    return "assumed";
  case CostSource::Published:
    return "published";
  case CostSource::Description:
    return "roofline";
  case CostSource::Measured:
    return "measured";
  case CostSource::Given:
    return "given";
  }
  return "";
}

/// The known ending of a kind, such as "_bf16"; empty if there is none.
static llvm::StringRef endingOf(llvm::StringRef kind, const llvm::StringMap<KernelRates> &endings) {
  for (llvm::StringRef ending : endings.keys()) // no kind has two endings
    if (kind.ends_with(ending))
      return ending;
  return "";
}

const KernelRates &DeviceCosts::ratesOf(llvm::StringRef kind) const {
  if (auto its = kinds.find(kind); its != kinds.end())
    return its->second;
  auto ending = endings.find(endingOf(kind, endings));
  return ending == endings.end() ? any : ending->second;
}

/// The same rates with another arithmetic speed. The residuals of the roofline are kept.
static KernelRates withArithmetic(const KernelRates &rates, double flopsPerSecond) {
  KernelRates result = rates;
  result.flopsPerSecond = flopsPerSecond;
  for (KernelSample &sample : result.samples)
    sample.seconds *= result.roofline(sample.flops, sample.bytes) / rates.roofline(sample.flops, sample.bytes);
  return result;
}

void DeviceCosts::estimateUnmeasured(const DeviceCosts &published) {
  auto peakOf = [&](llvm::StringRef ending) {
    return (ending.empty() ? published.any : published.endings.find(ending)->second).flopsPerSecond;
  };
  std::map<std::string, std::vector<std::string>> measured; // kinds by stem: their endings
  for (llvm::StringRef kind : kinds.keys()) {
    llvm::StringRef ending = endingOf(kind, published.endings);
    measured[kind.drop_back(ending.size()).str()].push_back(ending.str());
  }
  for (llvm::StringRef ending : published.endings.keys()) {
    double peak = peakOf(ending);
    // The roofline of all kinds, scaled to this peak and limited by it.
    endings[ending] = withArithmetic(any, std::min(any.flopsPerSecond * peak / peakOf(""), peak));
    for (const auto &[begin, others] : measured) {
      if (llvm::is_contained(others, ending))
        continue;
      auto farness = [&](const std::string &other) {
        return std::pair(std::abs(std::log2(peakOf(other) / peak)), other);
      };
      std::string nearest = *std::min_element(others.begin(), others.end(),
                                              [&](const auto &a, const auto &b) { return farness(a) < farness(b); });
      std::string kind = begin + ending.str();
      estimated[kind] = begin + nearest;
      const KernelRates &like = kinds[begin + nearest];
      kinds[kind] = withArithmetic(like, like.flopsPerSecond * peak / peakOf(nearest));
    }
  }
  if (!published.endings.empty())
    architecture = published.architecture;
}

const DeviceCosts &CostModel::device(llvm::StringRef name) const {
  static const DeviceCosts nominal;
  auto it = devices.find(name);
  return it == devices.end() ? nominal : it->second;
}

const LinkCosts &CostModel::link(llvm::StringRef from, llvm::StringRef to) const {
  static const LinkCosts nominal;
  auto it = links.find({from.str(), to.str()});
  return it == links.end() ? nominal : it->second;
}

double CostModel::kernelSeconds(llvm::StringRef name, llvm::StringRef kind, double flops, double bytes) const {
  return device(name).ratesOf(kind).seconds(flops, bytes);
}

double CostModel::copySeconds(llvm::StringRef from, llvm::StringRef to, double bytes) const {
  const LinkCosts &costs = link(from, to);
  return costs.latency + bytes / costs.bytesPerSecond;
}

// A ring runs n - 1 rounds. In each, a replica sends one of the n parts of the value (n - 1 parts in a broadcast). An
// all-reduce runs as many rounds again for the sums.
double CostModel::collectiveSeconds(llvm::StringRef device, ir::CollectiveKind kind, double bytes,
                                    int64_t replicas) const {
  double others = double(replicas - 1), rounds = kind == ir::CollectiveKind::AllReduce ? 2 * others : others;
  const LinkCosts &costs = link(device, device);
  double part = kind == ir::CollectiveKind::Broadcast ? bytes / others : bytes / double(replicas);
  return rounds * costs.latency + rounds * part / costs.bytesPerSecond;
}

} // namespace sluice::passes
