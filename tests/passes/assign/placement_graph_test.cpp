// Tests the conversion of an entry point to a placement problem and back, with backends that run and fuse everything.
#include "ir/Module.h"
#include "ir/text/DiagnosticText.h"
#include "ir/text/ParseGuard.h"
#include "mlir/IR/Verifier.h"
#include "passes/Passes.h"
#include "passes/assign/ChosenDevices.h"
#include "passes/assign/PlacementGraph.h"
#include "passes/driver/Pipeline.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <set>

using namespace mlir;
using namespace sluice::ir;
using namespace sluice::passes;

namespace {

/// A compile half that accepts every request.
sluice_backend_compile willing(const char *name) {
  sluice_backend_compile half{};
  half.describe = [](sluice_session *, sluice_target_info *) { return SLUICE_OK; };
  half.struct_size = sizeof(half);
  half.name = name;
  half.begin = [](const sluice_target_options *, sluice_session **) { return SLUICE_OK; };
  half.end = [](sluice_session *) {};
  half.last_error = [](sluice_session *) { return ""; };
  half.can_fuse = [](sluice_session *, const sluice_kernel_view *, int *fuses) {
    *fuses = 1;
    return SLUICE_OK;
  };
  return half;
}

/// A backend that only supports products and additions, and never fuses.
sluice_backend_compile lacking(const char *name) {
  sluice_backend_compile half = willing(name);
  half.can_fuse = nullptr;
  half.last_error = [](sluice_session *) { return "it adds and multiplies alone"; };
  half.supports = [](sluice_session *, const sluice_kernel_view *op) {
    llvm::StringRef named = op->ops[0].name;
    return named == "sluice.einsum" || named == "sluice.add" ? SLUICE_OK : SLUICE_UNSUPPORTED;
  };
  return half;
}

/// A module's body for a host and two accelerators.
class PlacementGraphs : public testing::Test {
protected:
  void parse(const std::string &body) {
    std::string text = R"(module @m {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "fake" 0
  sluice.device "acc1" = "fake" 1)" +
                       body + "}";
    auto parsed = parseModuleText(text, "model.mlir", context);
    ASSERT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError());
    module = std::move(*parsed);
    backends = DeviceBackends::create(*module, {&host, &accelerator}, {});
  }

  PlacementGraph graph(llvm::StringRef entry) {
    return buildPlacementGraph(module->lookupSymbol<EntryOp>(entry), *backends, costs, /*fuse=*/true);
  }

  static uint32_t find(const PlacementGraph &graph, const std::string &name) {
    auto found = llvm::find_if(graph.groups, [&](const PlacedGroup &group) { return group.name == name; });
    EXPECT_NE(found, graph.groups.end()) << "no group " << name;
    return uint32_t(found - graph.groups.begin());
  }

  /// The value that passes from one group to another.
  static const PlacementProblem::Value &between(const PlacementGraph &graph, const std::string &from,
                                                const std::string &to) {
    uint32_t producer = find(graph, from), consumer = find(graph, to);
    auto found = llvm::find_if(graph.problem.values, [&](const PlacementProblem::Value &value) {
      return value.producer == producer && llvm::is_contained(value.consumers, consumer);
    });
    EXPECT_NE(found, graph.problem.values.end()) << from << " to " << to;
    return *found;
  }

  /// Places all free groups on acc0 and continues with the compiler's passes.
  LogicalResult compileOnAccelerator(llvm::StringRef entry) {
    PlacementGraph all = graph(entry);
    std::vector<uint32_t> devices;
    for (const PlacementProblem::Group &group : all.problem.groups)
      devices.push_back(group.pinned.value_or(group.times[1] == PlacementProblem::kImpossible ? 0 : 1));
    applyPlacement(all, devices, backends->target());
    return compile("train");
  }

  LogicalResult compile(const std::string &from) {
    getModel(*module).setCopies(CopyPolicy::Insert);
    PipelineInputs inputs;
    inputs.backends = {&host, &accelerator};
    inputs.compileFrom = from;
    inputs.compileTo = "fused";
    return LogicalResult(runPipeline(*module, {}, inputs));
  }

  /// The devices of the results of all ops with a name.
  std::set<std::string> devicesOf(llvm::StringRef op) {
    std::set<std::string> devices;
    module->walk([&](Operation *found) {
      if (found->getName().getStringRef() == op)
        devices.insert(getDevice(found->getResult(0).getType()).str());
    });
    return devices;
  }

  static std::string chosenFor(Operation *op) {
    StringAttr device = getChosenDevice(op);
    return device ? device.str() : "";
  }

  /// The devices chosen for the ops with a name, in program order.
  std::vector<std::string> placesOf(llvm::StringRef op) {
    std::vector<std::string> places;
    module->walk([&](Operation *found) {
      if (found->getName().getStringRef() == op)
        places.push_back(chosenFor(found));
    });
    return places;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  sluice_backend_compile host = willing("cpu"), accelerator = willing("fake");
  std::unique_ptr<DeviceBackends> backends;
  CostModel costs;
};

constexpr const char *kTraining = R"(
  sluice.state parameter @w : tensor<3x2xf32> = <"constant", 1.0 : f64>
  sluice.state slot @w.momentum : tensor<3x2xf32> = <"constant", 0.0 : f64> of @w
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 1.0 : f64>
  sluice.entry @step ["x"] -> [] (%x: tensor<3x2xf32>) {
    %w = sluice.get @w : tensor<3x2xf32>
    %m = sluice.get @w.momentum : tensor<3x2xf32>
    %next = sluice.add %m, %x : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
    sluice.set @w.momentum, %next : tensor<3x2xf32>
    %lr = sluice.get @lr : tensor<f32>
    %rate = sluice.expand %lr {dims = array<i64>, shape = array<i64: 3, 2>} : (tensor<f32>) -> tensor<3x2xf32>
    %part = sluice.mul %next, %rate : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
    %new = sluice.sub %w, %part : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
    sluice.set @w, %new : tensor<3x2xf32>
    sluice.return
  }
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<?x3xf32>) {
    %w = sluice.get @w : tensor<3x2xf32>
    %y = sluice.einsum "ab,bc->ac" %x, %w : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
    sluice.return %y : tensor<?x2xf32>
  })";

} // namespace

TEST_F(PlacementGraphs, AStateIsOneGroupWithItsSlots) {
  parse(kTraining);
  PlacementGraph step = graph("step");
  EXPECT_EQ(llvm::count_if(step.groups, [](const PlacedGroup &group) { return group.kind == PlacedGroup::State; }), 2);
  constexpr int64_t kParameterAndSlot = 2 * 3 * 2 * sizeof(float);
  const PlacementProblem::Group &w = step.problem.groups[find(step, "w")];
  EXPECT_EQ(w.memory, std::vector<int64_t>(3, kParameterAndSlot));
  EXPECT_FALSE(w.pinned);
  EXPECT_EQ(step.problem.groups[find(step, "lr")].pinned, 0u);
}

TEST_F(PlacementGraphs, ASlotFollowsItsParameter) {
  parse(kTraining);
  PlacementGraph step = graph("step");
  std::vector<uint32_t> devices(step.groups.size(), 0);
  devices[find(step, "w")] = 2;
  applyPlacement(step, devices, backends->target());
  EXPECT_EQ(chosenFor(module->lookupSymbol("w")), "acc1");
  EXPECT_EQ(chosenFor(module->lookupSymbol("lr")), "");
  ASSERT_TRUE(succeeded(placeValues(*module, backends.get())));
  EXPECT_EQ(getDevice(module->lookupSymbol<StateOp>("w.momentum").getStoredType()), "acc1");
}

TEST_F(PlacementGraphs, WhatACallLeavesAloneIsCopiedForFree) {
  parse(kTraining);
  EXPECT_TRUE(between(graph("predict"), "w", "einsum").isFree);
  PlacementGraph step = graph("step");
  std::string update = step.groups.back().name;
  EXPECT_FALSE(between(step, "w", update).isFree);
  EXPECT_TRUE(between(step, "lr", update).isFree);
  EXPECT_FALSE(between(step, "inputs", update).isFree);
}

TEST_F(PlacementGraphs, ANewValueGoesToItsState) {
  parse(kTraining);
  PlacementGraph step = graph("step");
  EXPECT_FALSE(between(step, step.groups.back().name, "w").isFree);
}

TEST_F(PlacementGraphs, RematerializedOpsAreClonedForEachDevice) {
  parse(R"(
  sluice.entry @predict ["x", "b"] -> ["y", "z"] (%x: tensor<?x2xf32>, %b: tensor<2xf32>) {
    %e = sluice.expand %b {dims = array<i64: 1>, shape = array<i64: ?, 2>} : (tensor<2xf32>) -> tensor<?x2xf32>
    %t = sluice.transpose %e {permutation = array<i64: 1, 0>} : (tensor<?x2xf32>) -> tensor<2x?xf32>
    %y = sluice.add %x, %e : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    %z = sluice.exp %t : (tensor<2x?xf32>) -> tensor<2x?xf32>
    sluice.return %y, %z : tensor<?x2xf32>, tensor<2x?xf32>
  })");
  PlacementGraph predict = graph("predict");
  uint32_t add = find(predict, "add"), exp = find(predict, "exp");
  EXPECT_EQ(between(predict, "inputs", "exp").consumers, (std::vector<uint32_t>{add, exp}))
      << "the small input crosses";
  std::vector<uint32_t> devices(predict.groups.size(), 0);
  devices[add] = 1;
  devices[exp] = 2;
  applyPlacement(predict, devices, backends->target());
  EXPECT_EQ(placesOf("sluice.add"), std::vector<std::string>{"acc0"});
  EXPECT_EQ(placesOf("sluice.exp"), std::vector<std::string>{"acc1"});
  std::vector<std::string> expands = placesOf("sluice.expand");
  llvm::sort(expands);
  EXPECT_EQ(expands, (std::vector<std::string>{"acc0", "acc1"}));
  EXPECT_TRUE(succeeded(verify(*module)));
}

TEST_F(PlacementGraphs, MemoryAtThePeakIsOfWhatIsAliveThere) {
  host = lacking("cpu"), accelerator = lacking("fake");
  parse(R"(
  sluice.state parameter @w : tensor<4x8xf32> = <"constant", 1.0 : f64>
  sluice.state parameter @v : tensor<8x8xf32> = <"constant", 1.0 : f64>
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<?x4xf32>) {
    %w = sluice.get @w : tensor<4x8xf32>
    %v = sluice.get @v : tensor<8x8xf32>
    %a = sluice.einsum "ab,bc->ac" %x, %w : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>
    %b = sluice.einsum "ab,bc->ac" %a, %v : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
    %c = sluice.add %a, %b : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    %y = sluice.einsum "ab,bc->ac" %c, %v : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
    %z = sluice.add %y, %y : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    sluice.return %z : tensor<?x8xf32>
  })");
  PlacementGraph all = graph("predict"), peak = all;
  countAtPeak(peak);
  constexpr int64_t kState = 8 * 8 * sizeof(float), kValue = 4 * 8 * sizeof(float); // four rows
  auto memoryOf = [](const PlacementGraph &graph, const char *name) {
    return graph.problem.groups[find(graph, name)].memory;
  };
  EXPECT_EQ(memoryOf(all, "einsum_2"), std::vector<int64_t>(3, kValue));
  for (const char *alive : {"einsum", "einsum_1", "add"})
    EXPECT_EQ(memoryOf(peak, alive), std::vector<int64_t>(3, kValue)) << alive;
  for (const char *other : {"inputs", "einsum_2", "add_1"}) // dead by then, or computed later
    EXPECT_EQ(memoryOf(peak, other), std::vector<int64_t>(3, 0)) << other;
  EXPECT_EQ(memoryOf(peak, "v"), std::vector<int64_t>(3, kState));
  EXPECT_EQ(between(peak, "einsum", "add").copyMemory, kValue);
  EXPECT_EQ(between(peak, "add", "einsum_2").copyMemory, kValue);
  EXPECT_EQ(between(peak, "einsum_2", "add_1").copyMemory, 0);
  EXPECT_EQ(between(peak, "v", "einsum_2").copyMemory, kState);
}

TEST_F(PlacementGraphs, PinsKeepOpsApart) {
  const std::string text = R"(
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<?x2xf32>) {
    %a = sluice.exp %x {FIRST} : (tensor<?x2xf32>) -> tensor<?x2xf32>
    %b = sluice.tanh %a {SECOND} : (tensor<?x2xf32>) -> tensor<?x2xf32>
    sluice.return %b : tensor<?x2xf32>
  })";
  auto groups = [&](const std::string &first, const std::string &second) {
    std::string pinned = text;
    pinned.replace(pinned.find("FIRST"), 5, first).replace(pinned.find("SECOND"), 6, second);
    parse(pinned);
    std::vector<std::string> names;
    for (const PlacedGroup &group : graph("predict").groups)
      if (group.kind == PlacedGroup::Launch)
        names.push_back(group.name + (group.isFixed ? "!" : ""));
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(groups("", ""), Names{"exp_tanh"});
  EXPECT_EQ(groups("sluice.pin = \"acc0\"", "sluice.pin = \"acc0\""), Names{"exp_tanh!"});
  EXPECT_EQ(groups("sluice.pin = \"acc0\"", "sluice.pin = \"acc1\""), (Names{"exp!", "tanh!"}));
  EXPECT_EQ(groups("sluice.pin = \"acc0\"", ""), (Names{"exp!", "tanh"}));
}

// Graph and compiler use the same rule: the compiler accepts every placement that the graph permits.
TEST_F(PlacementGraphs, NumbersThatADeviceCannotMakeAreCopiedThere) {
  accelerator = lacking("fake");
  parse(R"(
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<?x2xf32>) {
    %rows = sluice.rows {to = f32} : () -> tensor<f32>
    %e = sluice.expand %rows {dims = array<i64>, shape = array<i64: ?, 2>} : (tensor<f32>) -> tensor<?x2xf32>
    %y = sluice.add %x, %e : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    sluice.return %y : tensor<?x2xf32>
  })");
  std::vector<std::string> launches;
  for (const PlacedGroup &group : graph("predict").groups)
    if (group.kind == PlacedGroup::Launch)
      launches.push_back(group.name);
  EXPECT_EQ(launches, std::vector<std::string>{"add"}) << "what is made where it is read has no place of its own";
  ASSERT_TRUE(succeeded(compileOnAccelerator("predict")));
  EXPECT_EQ(devicesOf("sluice.add"), std::set<std::string>{"acc0"});
  EXPECT_EQ(devicesOf("sluice.rows"), std::set<std::string>{"cpu"});
}

TEST_F(PlacementGraphs, APinnedParameterBeginsWhereItsValueCanBeMade) {
  const std::string model = R"(
  sluice.state parameter @w : tensor<3x2xf32> = <"uniform", 0.0 : f64, 1.0 : f64> physical tensor<3x2xf32, #sluice.at<device = "acc0">>
  sluice.graph ["x"] (%x: tensor<?x3xf32>) {
    %w = sluice.get @w : tensor<3x2xf32, #sluice.at<device = "acc0">>
    %y = sluice.einsum "ab,bc->ac" %x, %w {sluice.pin = "acc0"} : (tensor<?x3xf32>, tensor<3x2xf32, #sluice.at<device = "acc0">>) -> tensor<?x2xf32>
    sluice.output "y", %y : tensor<?x2xf32>
  })";
  for (bool lacks : {false, true}) {
    accelerator = lacks ? lacking("fake") : willing("fake");
    parse(model);
    ASSERT_TRUE(succeeded(compile("model"))) << lacks;
    EXPECT_EQ(devicesOf("sluice.einsum"), std::set<std::string>{"acc0"});
    EXPECT_EQ(devicesOf("sluice.uniform"), std::set<std::string>{lacks ? "cpu" : "acc0"});
  }
}

TEST_F(PlacementGraphs, WorkThatADeviceLacksIsRefusedByBothAlike) {
  accelerator = lacking("fake");
  const std::string model = R"(
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32>) {
    %y = sluice.exp %x {sluice.pin = "acc0"} : (tensor<2xf32>) -> tensor<2xf32>
    sluice.return %y : tensor<2xf32>
  })";
  parse(model);
  PlacementGraph predict = graph("predict");
  uint32_t exp = find(predict, "exp");
  EXPECT_EQ(predict.problem.groups[exp].times[1], PlacementProblem::kImpossible);
  EXPECT_NE(predict.groups[exp].unsupported.find("gpu(0): it adds and multiplies alone"), std::string::npos);
  DiagnosticText diagnostics(&context);
  EXPECT_TRUE(failed(compile("train")));
  EXPECT_NE(diagnostics.errors().find("it adds and multiplies alone"), std::string::npos);
}
