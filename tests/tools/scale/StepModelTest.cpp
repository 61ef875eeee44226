// Compares the exposed part of collectives with hand calculations: two gradients of 40 MB, ready after a half and after
// all of 10 ms of work. Two replicas with 10 GB/s and no latency take 4 ms for each.
#include "tools/compiler/scale/StepModel.h"
#include "gtest/gtest.h"

using namespace sluice::compiler;

namespace {

const std::vector<Gradient> kGradients = {{"late layer", 10e6, 0.5}, {"early layer", 10e6, 1}};

Cluster pair() {
  Cluster cluster;
  cluster.accelerators = 2;
  cluster.nodeLink = {"pcie", 10e9, 0};
  cluster.algorithm = AllReduceAlgorithm::Ring;
  cluster.straggler = 0;
  cluster.contention = 0;
  cluster.copyBytesPerSecond = 1e18;
  return cluster;
}

double exposedMs(const Cluster &cluster) { return predictStep(cluster, kGradients, 10e-3, 2).exposed * 1e3; }

TEST(StepModelTest, OneReplicaOnlyComputes) {
  StepPrediction step = predictStep(pair(), kGradients, 10e-3, 1);
  EXPECT_DOUBLE_EQ(step.seconds(), 10e-3);
  EXPECT_TRUE(step.buckets.empty());
}

TEST(StepModelTest, ABucketRunsBehindTheWorkThatIsLeft) {
  Cluster cluster = pair();
  cluster.bucketBytes = 40e6;
  StepPrediction step = predictStep(cluster, kGradients, 10e-3, 2);
  ASSERT_EQ(step.buckets.size(), 2u);
  EXPECT_NEAR(step.buckets[0].start * 1e3, 5, 1e-9);
  EXPECT_NEAR(step.buckets[0].end * 1e3, 9, 1e-9);
  EXPECT_NEAR(step.buckets[1].end * 1e3, 14, 1e-9);
  EXPECT_NEAR(step.exposed * 1e3, 4, 1e-9);
  EXPECT_NEAR(step.seconds() * 1e3, 14, 1e-6); // copies take 1e-7
}

TEST(StepModelTest, OneBucketIsReadyWithItsLastGradient) {
  StepPrediction step = predictStep(pair(), kGradients, 10e-3, 2);
  ASSERT_EQ(step.buckets.size(), 1u);
  EXPECT_EQ(step.buckets[0].gradients, 2);
  EXPECT_NEAR(step.exposed * 1e3, 8, 1e-9);
}

TEST(StepModelTest, CollectivesOfAQueueFollowEachOther) {
  Cluster cluster = pair();
  cluster.bucketBytes = 40e6;
  cluster.nodeLink.bytesPerSecond = 5e9; // 8 ms each: the second waits until 13 ms
  EXPECT_NEAR(exposedMs(cluster), 11, 1e-9);
}

TEST(StepModelTest, OverlapIsAShareOfTheWorkThatIsLeft) {
  Cluster cluster = pair();
  cluster.bucketBytes = 40e6;
  cluster.overlap = 0;
  EXPECT_NEAR(exposedMs(cluster), 8, 1e-9);
  cluster.overlap = 0.5; // the first begins at 7.5 ms
  EXPECT_NEAR(exposedMs(cluster), 5.5, 1e-9);
}

TEST(StepModelTest, HiddenCollectivesContendAndGradientsAreCopied) {
  Cluster cluster = pair();
  cluster.bucketBytes = 40e6;
  cluster.contention = 0.5;         // of the 4 hidden ms
  cluster.copyBytesPerSecond = 8e9; // 80 MB
  StepPrediction step = predictStep(cluster, kGradients, 10e-3, 2);
  EXPECT_NEAR(step.contention * 1e3, 2, 1e-9);
  EXPECT_NEAR(step.copies * 1e3, 10, 1e-9);
  EXPECT_NEAR(step.seconds() * 1e3, 26, 1e-9);
}

TEST(StepModelTest, TheWireHalvesTheBytes) {
  Cluster cluster = pair();
  cluster.wireBytes = 2;
  EXPECT_NEAR(exposedMs(cluster), 4, 1e-9);
}

TEST(StepModelTest, TheSlowestReplicaStretchesAllTimes) {
  Cluster cluster = pair();
  cluster.bucketBytes = 40e6;
  cluster.straggler = 0.1;
  StepPrediction step = predictStep(cluster, kGradients, 10e-3, 2);
  EXPECT_NEAR(step.straggler, 1e-3 * expectedMaximum(2), 1e-12);
  EXPECT_NEAR(step.buckets[0].ready, (10e-3 + step.straggler) / 2, 1e-12);
}

// Exact expectations of the largest of n standard normal variables, from tables of order statistics.
TEST(StepModelTest, TheLargestOfManyIsAsTablesHaveIt) {
  EXPECT_EQ(expectedMaximum(1), 0);
  EXPECT_NEAR(expectedMaximum(2), 0.56419, 0.03);
  EXPECT_NEAR(expectedMaximum(5), 1.16296, 0.02);
  EXPECT_NEAR(expectedMaximum(10), 1.53875, 0.01);
  EXPECT_NEAR(expectedMaximum(100), 2.50759, 0.01);
  EXPECT_NEAR(expectedMaximum(1000), 3.24144, 0.02);
}

} // namespace
