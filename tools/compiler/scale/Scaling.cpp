#include "tools/compiler/scale/Scaling.h"

#include "tools/compiler/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include <array>
#include <fmt/format.h>

namespace json = llvm::json;

namespace sluice::compiler {

static constexpr std::array<llvm::StringLiteral, 7> kLimitNames = {"compute",    "small batch", "latency", "bandwidth",
                                                                   "stragglers", "contention",  "copies"};

llvm::StringRef nameOf(ScalingLimit limit) { return kLimitNames[size_t(limit)]; }

static std::vector<int64_t> powersOfTwo(int64_t most) {
  std::vector<int64_t> counts;
  for (int64_t count = 1; count < most; count *= 2)
    counts.push_back(count);
  counts.push_back(most);
  return counts;
}

/// The largest component of a step's time beyond `ideal`; compute if none is 2 % of the step.
static ScalingLimit limitOf(const StepPrediction &step, double ideal) {
  constexpr double kNoticed = 0.02;
  double exposedShare = step.exposed > 0 ? step.exposed / step.communication() : 0;
  const std::pair<ScalingLimit, double> losses[] = {{ScalingLimit::SmallBatch, step.compute - ideal},
                                                    {ScalingLimit::Latency, exposedShare * step.latency},
                                                    {ScalingLimit::Bandwidth, exposedShare * step.transfer},
                                                    {ScalingLimit::Stragglers, step.straggler},
                                                    {ScalingLimit::Contention, step.contention},
                                                    {ScalingLimit::Copies, step.copies}};
  const auto *largest = std::max_element(std::begin(losses), std::end(losses),
                                         [](const auto &a, const auto &b) { return a.second < b.second; });
  return largest->second > kNoticed * step.seconds() ? largest->first : ScalingLimit::Compute;
}

llvm::Expected<ScalingReport> predictScaling(const ReplicaStep &step, const ComputeTime &compute,
                                             const Cluster &cluster, const ScalingRequest &request) {
  ScalingReport report;
  report.model = step.model;
  report.entry = step.entry;
  report.computeSource = compute.source;
  report.cluster = cluster;
  report.isStrong = request.isStrong;
  report.rows = request.rows > 0 ? request.rows : std::max<int64_t>(step.rows, 1);
  report.parameters = step.parameters();
  double alone = compute.seconds(report.rows);
  for (int64_t replicas : request.replicas.empty() ? powersOfTwo(cluster.devices()) : request.replicas) {
    if (replicas > cluster.devices())
      return makeError(ExitCode::Usage,
                       fmt::format("{} replicas: {} has {} accelerators", replicas, cluster.name, cluster.devices()));
    ScalingPoint point;
    point.nodes = cluster.nodesFor(replicas);
    point.rows = request.isStrong ? (report.rows + replicas - 1) / replicas : report.rows;
    point.globalRows = request.isStrong ? report.rows : report.rows * replicas;
    point.step = predictStep(cluster, step.gradients, compute.seconds(point.rows), replicas);
    double ideal = alone * double(point.globalRows) / double(replicas) / double(report.rows);
    point.efficiency = ideal / point.step.seconds();
    point.limit = limitOf(point.step, ideal);
    report.points.push_back(std::move(point));
  }
  return report;
}

//===- JSON -------------------------------------------------------------------------------------------------------===//

static double toMs(double seconds) { return seconds * 1e3; }

static json::Value toJson(const GradientBucket &bucket) {
  return json::Object{{"bytes", bucket.bytes},
                      {"gradients", bucket.gradients},
                      {"ready_ms", toMs(bucket.ready)},
                      {"start_ms", toMs(bucket.start)},
                      {"end_ms", toMs(bucket.end)}};
}

static json::Value toJson(const ScalingPoint &point) {
  const StepPrediction &step = point.step;
  json::Array collectives;
  for (const GradientBucket &bucket : step.buckets)
    collectives.push_back(toJson(bucket));
  return json::Object{{"replicas", step.replicas},
                      {"nodes", point.nodes},
                      {"rows", point.rows},
                      {"global_rows", point.globalRows},
                      {"predicted_ms", toMs(step.seconds())},
                      {"rows_per_second", point.rowsPerSecond()},
                      {"efficiency", point.efficiency},
                      {"compute_ms", toMs(step.compute)},
                      {"straggler_ms", toMs(step.straggler)},
                      {"contention_ms", toMs(step.contention)},
                      {"copy_ms", toMs(step.copies)},
                      {"communication_ms", toMs(step.communication())},
                      {"exposed_ms", toMs(step.exposed)},
                      {"limit", nameOf(point.limit)},
                      {"collectives", std::move(collectives)}};
}

json::Value toJson(const ScalingReport &report) {
  json::Array points;
  for (const ScalingPoint &point : report.points)
    points.push_back(toJson(point));
  const Cluster &cluster = report.cluster;
  return json::Object{{"model", report.model},
                      {"entry", report.entry},
                      {"cluster", cluster.name},
                      {"device", cluster.device.name},
                      {"nodes", cluster.nodes},
                      {"accelerators", cluster.accelerators},
                      {"scaling", report.isStrong ? "strong" : "weak"},
                      {"rows", report.rows},
                      {"compute", report.computeSource},
                      {"parameters", report.parameters},
                      {"gradient_bytes", report.parameters * double(cluster.wireBytes)},
                      {"points", std::move(points)}};
}

} // namespace sluice::compiler
