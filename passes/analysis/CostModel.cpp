#include "passes/analysis/CostModel.h"

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

const KernelRates &DeviceCosts::ratesOf(llvm::StringRef kind) const {
  if (auto measured = kinds.find(kind); measured != kinds.end())
    return measured->second;
  for (const auto &ending : endings) // of which no kind has two
    if (kind.ends_with(ending.first()))
      return ending.second;
  return any;
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

// Each replica passes n - 1 parts of the value on to the next, of which a broadcast has one less than others: once, and of
// an all-reduce once more with the sums.
double CostModel::collectiveSeconds(llvm::StringRef device, ir::CollectiveKind kind, double bytes,
                                    int64_t replicas) const {
  double others = double(replicas - 1), rounds = kind == ir::CollectiveKind::AllReduce ? 2 * others : others;
  const LinkCosts &costs = link(device, device);
  double part = kind == ir::CollectiveKind::Broadcast ? bytes / others : bytes / double(replicas);
  return rounds * costs.latency + rounds * part / costs.bytesPerSecond;
}

} // namespace sluice::passes
