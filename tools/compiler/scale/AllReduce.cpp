// An all-reduce moves 2 (n-1)/n of its bytes out of each replica with any algorithm. The algorithms differ in the
// number of sequential hops. In a ring each of the 2 (n-1) steps waits for the previous one. A tree uses a chain of the
// accelerators of a node and goes up and down a binary tree of nodes. The hierarchical algorithm reduces within each
// node, then between nodes over all network links at once, each accelerator its part, and gathers within each node.
#include "tools/compiler/scale/AllReduce.h"

#include <algorithm>
#include <bit>

namespace sluice::compiler {

namespace {

/// The participating part of a cluster.
struct Group {
  const Cluster &cluster;
  int64_t replicas, nodes, inNode;

  Group(const Cluster &cluster, int64_t replicas)
      : cluster(cluster), replicas(replicas), nodes(cluster.nodesFor(replicas)),
        inNode(std::min(replicas, cluster.accelerators)) {}

  /// The number of levels of a binary tree of the nodes.
  int64_t treeHops() const { return int64_t(std::bit_width(uint64_t(nodes - 1))); }
  double networkBytesPerSecond() const { return cluster.network.bytesPerSecond * double(cluster.networkLinks); }
  /// The rate of the slowest link on a ring through all replicas.
  double ringBytesPerSecond() const {
    if (nodes == 1)
      return cluster.nodeLink.bytesPerSecond;
    return inNode == 1 ? networkBytesPerSecond() : std::min(cluster.nodeLink.bytesPerSecond, networkBytesPerSecond());
  }
};

} // namespace

/// The bytes that each of n replicas sends, as a multiple of the bytes of its gradients: n - 1 of n parts in the
/// reduce-scatter, and as many in the all-gather.
static double shareSent(int64_t n) { return 2 * double(n - 1) / double(n); }

static CollectiveTime ringTime(const Group &group, double bytes) {
  int64_t hops = 2 * (group.replicas - 1);
  int64_t networkHops = group.nodes > 1 ? std::min(2 * group.nodes, hops) : 0;
  const Cluster &cluster = group.cluster;
  return {cluster.collectiveSeconds + double(networkHops) * cluster.network.latency +
              double(hops - networkHops) * cluster.nodeLink.latency,
          shareSent(group.replicas) * bytes / group.ringBytesPerSecond()};
}

static CollectiveTime treeTime(const Group &group, double bytes) {
  const Cluster &cluster = group.cluster;
  return {cluster.collectiveSeconds + 2 * (double(group.inNode - 1) * cluster.nodeLink.latency +
                                           double(group.treeHops()) * cluster.network.latency),
          shareSent(group.replicas) * bytes / group.ringBytesPerSecond()};
}

static CollectiveTime hierarchicalTime(const Group &group, double bytes) {
  const Cluster &cluster = group.cluster;
  CollectiveTime time{cluster.collectiveSeconds, 0};
  if (group.inNode > 1) {
    time.latency += 2 * double(group.inNode - 1) * cluster.nodeLink.latency;
    time.transfer += shareSent(group.inNode) * bytes / cluster.nodeLink.bytesPerSecond;
  }
  if (group.nodes > 1) {
    int64_t hops = std::min(2 * (group.nodes - 1), 2 * group.treeHops());
    int64_t phases = group.inNode > 1 ? 2 : 0; // reduction and gather within the nodes
    time.latency += double(hops) * cluster.network.latency + double(phases) * cluster.collectiveSeconds;
    time.transfer += shareSent(group.nodes) * bytes / group.networkBytesPerSecond();
  }
  return time;
}

CollectiveTime allReduceTime(const Cluster &cluster, int64_t replicas, double bytes) {
  if (replicas <= 1)
    return {};
  Group group(cluster, replicas);
  switch (cluster.algorithm) {
  case AllReduceAlgorithm::Ring:
    return ringTime(group, bytes);
  case AllReduceAlgorithm::Tree:
    return treeTime(group, bytes);
  case AllReduceAlgorithm::Hierarchical:
    return hierarchicalTime(group, bytes);
  case AllReduceAlgorithm::Fastest:
    break;
  }
  auto isShorter = [](const CollectiveTime &a, const CollectiveTime &b) { return a.seconds() < b.seconds(); };
  return std::min({ringTime(group, bytes), treeTime(group, bytes), hierarchicalTime(group, bytes)}, isShorter);
}

} // namespace sluice::compiler
