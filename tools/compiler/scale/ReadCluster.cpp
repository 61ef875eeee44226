#include "tools/compiler/scale/ReadCluster.h"

#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/JsonFile.h"
#include "tools/compiler/scale/JsonFields.h"

namespace sluice::compiler {

static constexpr int64_t kMostNodes = 1'000'000, kMostInNode = 1024, kMostRows = 1'000'000'000;

static void readMeasured(JsonFields &fields, std::vector<MeasuredStep> &measured) {
  MeasuredStep step;
  step.model = fields.text("model");
  step.rows = fields.integer("batch", 1, kMostRows);
  step.seconds = fields.seconds("step");
  if (step.seconds <= 0)
    fields.fault("step", "is 0, and no step takes no time");
  for (const MeasuredStep &other : measured)
    if (other.model == step.model && other.rows == step.rows)
      fields.fault("batch", "is " + llvm::Twine(step.rows) + " twice for " + step.model);
  measured.push_back(std::move(step));
}

static void readDevice(JsonFields &fields, ClusterDevice &device) {
  device.name = fields.text("name");
  if (fields.has("peak_flops") || fields.has("memory_bandwidth")) {
    device.peakFlops = fields.number("peak_flops", 1, 1e18);
    device.memoryBytesPerSecond = fields.bytesPerSecond("memory_bandwidth");
  }
  if (fields.has("efficiency"))
    device.efficiency = fields.number("efficiency", 0.001, 1);
  if (fields.has("kernel_time"))
    device.kernelSeconds = fields.seconds("kernel_time");
  fields.list("measured", [&](JsonFields &step) { readMeasured(step, device.measured); });
}

static void readLink(JsonFields &fields, ClusterLink &link) {
  link.kind = fields.text("kind");
  link.bytesPerSecond = fields.bytesPerSecond("bandwidth");
  link.latency = fields.seconds("latency");
}

static void readLinks(JsonFields &fields, Cluster &cluster) {
  if (cluster.accelerators > 1 || fields.has("node_link"))
    fields.object("node_link", [&](JsonFields &link) { readLink(link, cluster.nodeLink); });
  if (cluster.nodes > 1 || fields.has("network"))
    fields.object("network", [&](JsonFields &link) {
      readLink(link, cluster.network);
      if (link.has("per_node"))
        cluster.networkLinks = link.integer("per_node", 1, kMostInNode);
    });
}

static void readAllReduce(JsonFields &fields, Cluster &cluster) {
  static constexpr llvm::StringRef names[] = {"fastest", "ring", "tree", "hierarchical"};
  std::string name = fields.word("algorithm", names);
  cluster.algorithm = name == "ring"           ? AllReduceAlgorithm::Ring
                      : name == "tree"         ? AllReduceAlgorithm::Tree
                      : name == "hierarchical" ? AllReduceAlgorithm::Hierarchical
                                               : AllReduceAlgorithm::Fastest;
  cluster.collectiveSeconds = fields.seconds("base");
  if (fields.has("bucket"))
    cluster.bucketBytes = fields.bytes("bucket");
  static constexpr llvm::StringRef types[] = {"f32", "f16", "bf16"};
  cluster.wireBytes = fields.word("wire", types, /*isRequired=*/false) == "f32" ? 4 : 2;
}

static void readConstants(JsonFields &fields, Cluster &cluster) {
  cluster.overlap = fields.number("overlap", 0, 1);
  if (fields.has("straggler"))
    cluster.straggler = fields.number("straggler", 0, 1);
  if (fields.has("contention"))
    cluster.contention = fields.number("contention", 0, 10);
  if (fields.has("copy_bandwidth"))
    cluster.copyBytesPerSecond = fields.bytesPerSecond("copy_bandwidth");
}

llvm::Expected<Cluster> readCluster(const std::string &path) {
  auto content = readJsonFile(path);
  if (!content)
    return content.takeError();
  JsonFaults faults(path);
  JsonFields fields(*content, "", faults);
  Cluster cluster;
  fields.integer("format", 1, 1);
  cluster.name = fields.text("name");
  cluster.nodes = fields.integer("nodes", 1, kMostNodes);
  cluster.accelerators = fields.integer("accelerators", 1, kMostInNode);
  fields.object("device", [&](JsonFields &device) { readDevice(device, cluster.device); });
  readLinks(fields, cluster);
  fields.object("all_reduce", [&](JsonFields &allReduce) { readAllReduce(allReduce, cluster); });
  readConstants(fields, cluster);
  fields.texts("sources");
  fields.finish();
  if (llvm::Error error = faults.take())
    return std::move(error);
  return cluster;
}

} // namespace sluice::compiler
