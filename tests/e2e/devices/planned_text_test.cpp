// The text of a planned module contains everything that its plan needs: parsing it gives the same plan.
#include "ir/text/ParseGuard.h"
#include "passes/artifact/BuildPlan.h"
#include "runtime/plan/WritePlan.h"
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/Harness.h"
#include <gtest/gtest.h>

using namespace sluice;
using namespace sluice::test;

static std::string textOf(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module->print(out, mlir::OpPrintingFlags().enableDebugInfo());
  return text;
}

static runtime::Plan planOf(mlir::ModuleOp module) {
  mlir::FailureOr<ir::Target> target = ir::Target::of(module);
  EXPECT_TRUE(mlir::succeeded(target));
  sluice_target_info host{};
  host.struct_size = sizeof host;
  host.cpu = "any";
  return passes::buildPlan(module, {*target, host, "", "", {}, {}}).plan;
}

static constexpr const char *kOnCuda = "--batch 8 --devices cpu,cuda:0 --pin conv=gpu:0 --copies insert";

class PlannedText : public testing::TestWithParam<const char *> {};

TEST_P(PlannedText, GivesTheSamePlanAgain) {
  useCudaDoubles(/*devices=*/1);
  Interpreted model(modelText("lenet", GetParam()), "planned");
  mlir::MLIRContext context;
  context.loadDialect<ir::SluiceDialect>();
  auto again = ir::parseModuleText(textOf(model.module()), "planned.mlir", context);
  ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError());
  EXPECT_EQ(runtime::writePlan(planOf(model.module())), runtime::writePlan(planOf(**again)));
}

INSTANTIATE_TEST_SUITE_P(LeNet, PlannedText,
                         testing::Values("--batch 8", "--batch 8 --devices cpu,sim:0 --pin conv=gpu:0 --copies insert",
                                         "--batch 8 --devices sim:0,sim:1,cpu --pin fc=gpu:1 --copies insert",
                                         kOnCuda));

/// All slots of buffers on a device.
static std::vector<runtime::Slot> slotsOn(const runtime::Plan &plan, size_t device) {
  std::vector<runtime::Slot> slots;
  auto add = [&](const runtime::Slot &slot) {
    if (plan.deviceOf(slot) == device)
      slots.push_back(slot);
  };
  for (const runtime::State &state : plan.states) {
    add(state.slot);
    for (const runtime::Slot &mirror : state.mirrors)
      add(mirror);
  }
  for (const runtime::Entry &entry : plan.entries)
    for (const auto &listed : entry.allActions())
      for (const runtime::Buffer &buffer : listed.action->buffers())
        add(buffer.slot);
  return slots;
}

TEST(PlannedSlots, AreAlignedAsTheDevicesLikeIt) {
  useCudaDoubles(/*devices=*/1);
  Interpreted model(modelText("lenet", kOnCuda), "planned");
  runtime::Plan plan = planOf(model.module());
  EXPECT_EQ(plan.devices[0].alignment, 64);
  EXPECT_EQ(plan.devices[1].alignment, 256);
  for (size_t device : {0, 1}) {
    std::vector<runtime::Slot> slots = slotsOn(plan, device);
    EXPECT_FALSE(slots.empty());
    auto alignment = plan.devices[device].alignment;
    for (const runtime::Slot &slot : slots)
      EXPECT_EQ(slot.offset % alignment + slot.stride % alignment, 0);
  }
}
