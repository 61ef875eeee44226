#include "tools/sluice/scale/Text.h"

#include "tools/sluice/Amounts.h"
#include <fmt/format.h>

using sluice::compiler::Cluster;
using sluice::compiler::ScalingPoint;
using sluice::compiler::ScalingReport;

namespace sluice::tool {

static void printSetting(llvm::raw_ostream &out, const ScalingReport &report) {
  const Cluster &cluster = report.cluster;
  out << fmt::format("{}, {} of {} rows{}, on {}: {} {} of {} x {}\n", report.model, report.entry, report.rows,
                     report.isStrong ? " in all" : " each", cluster.name, cluster.nodes,
                     cluster.nodes == 1 ? "node" : "nodes", cluster.accelerators, cluster.device.name);
  out << fmt::format("  compute: {}\n", report.computeSource);
  out << fmt::format("  gradients: {:.0f} elements, {} on the wire{}\n", report.parameters,
                     printBytes(int64_t(report.parameters * double(cluster.wireBytes))),
                     cluster.bucketBytes ? ", in buckets of " + printBytes(int64_t(*cluster.bucketBytes)) : "");
}

void printScaling(llvm::raw_ostream &out, const ScalingReport &report) {
  printSetting(out, report);
  out << fmt::format("  {:>8} {:>9} {:>11} {:>12} {:>10} {:>11}  limited by\n", "replicas", "rows each", "step ms",
                     "rows/s", "efficiency", "exposed ms");
  for (const ScalingPoint &point : report.points)
    out << fmt::format("  {:>8} {:>9} {:>11.3f} {:>12.0f} {:>8.1f} % {:>11.3f}  {}\n", point.step.replicas, point.rows,
                       point.step.seconds() * 1e3, point.rowsPerSecond(), point.efficiency * 100,
                       point.step.exposed * 1e3, std::string(compiler::nameOf(point.limit)));
}

} // namespace sluice::tool
