// Tests the kernels and gradients read from a hand-written plan. It has two parameters. Work takes time in proportion
// to its flops, because the costs have no launch time and almost no time for bytes.
#include "tools/compiler/scale/ReplicaStep.h"
#include "llvm/Support/Error.h"
#include "gtest/gtest.h"

using namespace sluice;
using namespace sluice::compiler;

namespace {

constexpr int64_t kSlotBytes = 64;

runtime::State parameter(const std::string &name, int64_t offset, int64_t elements) {
  runtime::State state;
  state.name = name;
  state.shape = {elements};
  state.slot.offset = offset;
  state.bytes = kSlotBytes;
  return state;
}

/// Launches a kernel that accesses the memory at an offset.
runtime::Action launch(size_t kernel, int64_t offset, runtime::Access access) {
  runtime::Launch work;
  work.kernel = kernel;
  work.buffers.push_back({{.offset = offset}, kSlotBytes, access});
  runtime::Action action;
  action.work = work;
  action.queues = {0};
  return action;
}

runtime::Plan smallPlan() {
  runtime::Plan plan;
  plan.model = "small";
  plan.capacity = 10;
  plan.devices = {{"cpu", "cpu"}};
  plan.arenas = {{"states", 0, 1024}};
  plan.states = {parameter("first", 0, 6), parameter("last", kSlotBytes, 2), parameter("frozen", 2 * kSlotBytes, 9)};
  plan.kernels.resize(3);
  plan.kernels[0].cost.flopsPerRow = 6e6; // 60 Mflop with 10 rows
  plan.kernels[1].cost.flops = 10e6;
  plan.kernels[2].cost.flops = 5e6;
  runtime::Loop loop;
  loop.count = 6;
  loop.actions.push_back(launch(2, 0, runtime::Access::readWrite)); // 6 x 5 Mflop
  runtime::Action looped;
  looped.work = loop;
  looped.queues = {0};
  runtime::Entry train;
  train.name = "train_step";
  train.actions = {launch(0, 0, runtime::Access::read), launch(1, kSlotBytes, runtime::Access::readWrite), looped};
  plan.entries = {train};
  return plan;
}

passes::CostModel flopsAlone() {
  passes::CostModel costs;
  costs.device("cpu").any.flopsPerSecond = 1e9;
  costs.device("cpu").any.bytesPerSecond = 1e18;
  return costs;
}

std::string errorOf(const runtime::Plan &plan) {
  auto step = replicaStepOf(plan, flopsAlone());
  return step ? "" : llvm::toString(step.takeError());
}

TEST(ReplicaStepTest, GradientsAreReadyWhenTheirParameterIsUpdated) {
  auto step = replicaStepOf(smallPlan(), flopsAlone());
  ASSERT_TRUE(bool(step));
  ASSERT_EQ(step->gradients.size(), 2u); // nothing updates the frozen parameter
  EXPECT_EQ(step->gradients[0].name, "last");
  EXPECT_EQ(step->gradients[0].elements, 2);
  EXPECT_NEAR(step->gradients[0].ready, 0.7, 1e-3); // 60 and 10 of 100 Mflop
  EXPECT_EQ(step->gradients[1].name, "first");
  EXPECT_EQ(step->gradients[1].elements, 6);
  EXPECT_NEAR(step->gradients[1].ready, 1, 1e-12);
  EXPECT_EQ(step->parameters(), 8);
}

TEST(ReplicaStepTest, WhatALoopRepeatsIsCounted) {
  auto step = replicaStepOf(smallPlan(), flopsAlone());
  ASSERT_TRUE(bool(step));
  EXPECT_EQ(step->kernels.size(), 3u);
  EXPECT_EQ(step->launches(), 8);
  EXPECT_EQ(step->rows, 10);
}

TEST(ReplicaStepTest, WhatTrainsNothingIsAnError) {
  runtime::Plan plan = smallPlan();
  plan.entries[0].actions.resize(1);
  EXPECT_EQ(errorOf(plan), "small trains no parameter: replicas would have nothing to reduce");
  plan.entries[0].name = "predict";
  EXPECT_EQ(errorOf(plan), "small has no train_step to replicate; its entry points are predict");
}

} // namespace
