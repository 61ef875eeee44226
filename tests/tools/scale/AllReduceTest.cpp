// Compares times of collectives with hand calculations: 80 MB on 2 nodes of 4 accelerators, 100 GB/s and 1 us within a
// node, two links of 10 GB/s and 10 us between them, 5 us of fixed overhead.
#include "tools/compiler/scale/AllReduce.h"
#include "gtest/gtest.h"

using namespace sluice::compiler;

namespace {

constexpr double kBytes = 80e6;

Cluster twoNodes(AllReduceAlgorithm algorithm) {
  Cluster cluster;
  cluster.nodes = 2;
  cluster.accelerators = 4;
  cluster.nodeLink = {"nvlink", 100e9, 1e-6};
  cluster.network = {"infiniband", 10e9, 10e-6};
  cluster.networkLinks = 2;
  cluster.collectiveSeconds = 5e-6;
  cluster.algorithm = algorithm;
  return cluster;
}

void expectTime(const CollectiveTime &time, double latencyUs, double transferMs) {
  EXPECT_NEAR(time.latency * 1e6, latencyUs, 1e-9);
  EXPECT_NEAR(time.transfer * 1e3, transferMs, 1e-9);
}

TEST(AllReduceTest, OneReplicaReducesNothing) {
  expectTime(allReduceTime(twoNodes(AllReduceAlgorithm::Ring), 1, kBytes), 0, 0);
}

TEST(AllReduceTest, ARingWithinANodeUsesItsLinks) {
  // 6 steps of 1 us; 6/4 of the bytes at 100 GB/s.
  expectTime(allReduceTime(twoNodes(AllReduceAlgorithm::Ring), 4, kBytes), 5 + 6, 1.2);
}

TEST(AllReduceTest, ARingThroughNodesIsAsFastAsTheNetwork) {
  // 4 steps over the network and 10 within nodes; 14/8 of the bytes at 20 GB/s.
  expectTime(allReduceTime(twoNodes(AllReduceAlgorithm::Ring), 8, kBytes), 5 + 40 + 10, 7);
}

TEST(AllReduceTest, ARingOfSingleAcceleratorsStepsOverTheNetworkAlone) {
  Cluster cluster = twoNodes(AllReduceAlgorithm::Ring);
  cluster.nodes = 3;
  cluster.accelerators = 1;
  cluster.nodeLink = {};
  // 4 steps in all; 4/3 of the bytes at 20 GB/s.
  expectTime(allReduceTime(cluster, 3, kBytes), 5 + 40, 80.0 * 4 / 3 / 20);
}

TEST(AllReduceTest, ATreeHasALogarithmOfHops) {
  // Up and down: 3 hops in a node and 1 between two.
  expectTime(allReduceTime(twoNodes(AllReduceAlgorithm::Tree), 8, kBytes), 5 + 2 * (3 + 10), 7);
  Cluster large = twoNodes(AllReduceAlgorithm::Tree);
  large.nodes = 128;
  EXPECT_NEAR(allReduceTime(large, 512, kBytes).latency * 1e6, 5 + 2 * (3 + 70), 1e-9);
}

TEST(AllReduceTest, TheHierarchicalOneSendsThePartsOfANodeAtOnce) {
  // Three phases of 5 us, 6 us in nodes, 20 us between them; 6/4 of the bytes in nodes, all of the bytes between them.
  expectTime(allReduceTime(twoNodes(AllReduceAlgorithm::Hierarchical), 8, kBytes), 15 + 6 + 20, 1.2 + 4);
}

TEST(AllReduceTest, ReplicasThatFillPartOfANodeCountItsLinks) {
  // 3 of 4 in one node: 4 steps, 4/3 of the bytes.
  expectTime(allReduceTime(twoNodes(AllReduceAlgorithm::Ring), 3, kBytes), 5 + 4, 80.0 * 4 / 3 / 100);
}

TEST(AllReduceTest, TheFastestDependsOnTheBytes) {
  Cluster cluster = twoNodes(AllReduceAlgorithm::Fastest);
  expectTime(allReduceTime(cluster, 8, kBytes), 41, 5.2);                    // hierarchical
  EXPECT_NEAR(allReduceTime(cluster, 8, 0).latency * 1e6, 31, 1e-9);         // tree
  EXPECT_NEAR(allReduceTime(cluster, 4, 8).seconds() * 1e6, 11.00012, 1e-6); // all equal within a node
}

} // namespace
