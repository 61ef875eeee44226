#include "tools/scale/PublishedFile.h"

#include "tools/compiler/JsonFile.h"
#include "tools/compiler/scale/JsonFields.h"
#include "tools/compiler/scale/ReadCluster.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace sluice::compiler;

namespace sluice::scale {

namespace {

/// A part of a network, in forward order.
struct Part {
  double parameters = 0, work = 0;
  int64_t tensors = 1; ///< of about equal size
};

} // namespace

/// Backward work is twice the forward work, in reverse order. A tensor's gradient is ready when its share of the part's
/// backward work is done.
static std::vector<Gradient> gradientsOf(const std::vector<Part> &parts) {
  constexpr double kForward = 1.0 / 3;
  double total = 0, done = 0;
  for (const Part &part : parts)
    total += part.work;
  std::vector<Gradient> gradients;
  for (const Part &part : llvm::reverse(parts))
    for (int64_t tensor = 0; tensor < part.tensors; ++tensor) {
      auto count = double(part.tensors);
      done += part.work / count;
      gradients.push_back({"", part.parameters / count, kForward + (1 - kForward) * done / total});
    }
  return gradients;
}

static PublishedPoint readPoint(JsonFields &fields) {
  PublishedPoint point;
  point.replicas = fields.integer("replicas", 1, 1'000'000);
  point.rows = fields.integer("batch", 1, 1'000'000);
  if (fields.has("efficiency"))
    point.efficiency = fields.number("efficiency", 0.01, 1);
  else
    point.rowsPerSecond = fields.number("rows_per_second", 0.01, 1e12);
  point.isFitted = fields.has("fitted") && fields.integer("fitted", 0, 1) == 1;
  return point;
}

/// Settings of the program, independent of the cluster.
static void readProgram(JsonFields &fields, Cluster &cluster) {
  cluster.overlap = fields.number("overlap", 0, 1);
  cluster.bucketBytes.reset();
  if (fields.has("bucket"))
    cluster.bucketBytes = fields.bytes("bucket");
  cluster.wireBytes = fields.integer("wire_bytes", 2, 4);
  if (fields.has("network_links"))
    cluster.networkLinks = fields.integer("network_links", 1, 1024);
}

llvm::Expected<std::vector<PublishedCase>> readPublished(const std::string &path, const std::string &clusters) {
  auto content = readJsonFile(path);
  if (!content)
    return content.takeError();
  JsonFaults faults(path);
  JsonFields fields(*content, "", faults);
  std::map<std::string, std::vector<Gradient>> workloads;
  fields.list("workloads", [&](JsonFields &workload) {
    std::vector<Part> parts;
    workload.list("parts", [&](JsonFields &part) {
      part.text("name");
      parts.push_back(
          {part.number("parameters", 1, 1e12), part.number("work", 0, 1e6), part.integer("tensors", 1, 1e6)});
    });
    workloads[workload.text("name")] = gradientsOf(parts);
    workload.text("source");
  });
  std::vector<PublishedCase> cases;
  std::vector<std::string> names;
  fields.list("cases", [&](JsonFields &one) {
    PublishedCase published;
    published.name = one.text("name");
    one.text("source");
    published.timesOf = one.has("times_of") ? one.text("times_of") : "";
    published.fixedOf = one.has("fixed_of") ? one.text("fixed_of") : "";
    published.calibrates = one.has("calibrates") && one.integer("calibrates", 0, 1) == 1;
    published.gradients = workloads[one.text("workload")];
    names.push_back(one.text("cluster"));
    cases.push_back(std::move(published));
    readProgram(one, cases.back().cluster);
    one.list("points", [&](JsonFields &point) { cases.back().points.push_back(readPoint(point)); });
  });
  fields.finish();
  if (llvm::Error error = faults.take())
    return std::move(error);
  for (auto [published, name] : llvm::zip_equal(cases, names)) {
    auto cluster = readCluster(clusters + "/" + name);
    if (!cluster)
      return cluster.takeError();
    Cluster &own = published.cluster;
    cluster->overlap = own.overlap;
    cluster->bucketBytes = own.bucketBytes;
    cluster->wireBytes = own.wireBytes;
    if (own.networkLinks > 1)
      cluster->networkLinks = own.networkLinks;
    own = std::move(*cluster);
  }
  return cases;
}

} // namespace sluice::scale
