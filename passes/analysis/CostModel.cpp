#include "passes/analysis/CostModel.h"

namespace sluice::passes {

llvm::StringRef nameOf(CostSource source) {
  switch (source) {
  case CostSource::Nominal:
    return "assumed";
  case CostSource::Description:
    return "roofline";
  case CostSource::Measured:
    return "measured";
  case CostSource::Given:
    return "given";
  }
  return "";
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
  const DeviceCosts &costs = device(name);
  auto measured = costs.kinds.find(kind);
  return (measured == costs.kinds.end() ? costs.any : measured->second).seconds(flops, bytes);
}

double CostModel::copySeconds(llvm::StringRef from, llvm::StringRef to, double bytes) const {
  const LinkCosts &costs = link(from, to);
  return costs.latency + bytes / costs.bytesPerSecond;
}

} // namespace sluice::passes
