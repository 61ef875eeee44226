// Conflicting layouts are resolved by relayouts, never by an error, even if one backend only supports row-major and
// another has no relayouts. Both are the CPU's compile half with a part left out.
#include "backends/cpu/compiler/Plugin.h"
#include "ir/Layout.h"
#include "ir/Module.h"
#include "ir/Target.h"
#include "ir/text/DiagnosticText.h"
#include "ir/text/ParseGuard.h"
#include "passes/driver/Pipeline.h"
#include "sluice/sluice.h"
#include "tests/e2e/torch/MixedGraph.h"
#include <cstring>
#include <gmock/gmock.h>
#include <random>

using namespace mlir;
using namespace sluice;
using namespace sluice::ir;
using testing::HasSubstr;

namespace {

const sluice_backend_compile &cpu() { return *sluice_cpu_backend_compile(); }

const char *nameOf(const sluice_kernel_view *op) { return sluice_kernel_op_at(op, 0)->name; }
bool isRelayout(const sluice_kernel_view *op) { return std::strcmp(nameOf(op), "sluice.relayout") == 0; }
bool isConvolution(const sluice_kernel_view *op) { return std::strstr(nameOf(op), "conv2d") != nullptr; }

bool isLaidOut(Type type) {
  AtAttr at = getAt(type);
  return at && at.getLayout();
}

bool isRowMajor(const sluice_kernel_view *kernel) {
  for (size_t number = 0; number < kernel->num_values; ++number)
    if (sluice_kernel_value_at(kernel, number)->num_layout > 0)
      return false;
  return true;
}

const char *refusal(sluice_session *) { return "row-major tensors, and relayouts of none"; }

/// Supports only row-major tensors, has no convolutions, and proposes no layouts.
sluice_backend_compile plain() {
  sluice_backend_compile half = cpu();
  half.name = "plain";
  half.propose_layout = nullptr;
  half.last_error = refusal;
  half.supports = [](sluice_session *, const sluice_kernel_view *op) {
    return isRelayout(op) || isConvolution(op) || !isRowMajor(op) ? SLUICE_UNSUPPORTED : SLUICE_OK;
  };
  half.prepare = [](sluice_session *session, const sluice_kernel_view *kernel, sluice_launch_info *launch) {
    return isRowMajor(kernel) ? cpu().prepare(session, kernel, launch) : SLUICE_UNSUPPORTED;
  };
  return half;
}

/// Proposes the CPU's layouts, but has no relayouts.
sluice_backend_compile stiff() {
  sluice_backend_compile half = cpu();
  half.name = "stiff";
  half.last_error = refusal;
  half.supports = [](sluice_session *session, const sluice_kernel_view *op) {
    return isRelayout(op) ? SLUICE_UNSUPPORTED : cpu().supports(session, op);
  };
  return half;
}

class Layouts : public testing::Test {
protected:
  /// Compiles up to the kernels, including their preparation; returns the errors if it fails.
  std::string compile(const Graph &graph) {
    module = llvm::cantFail(parseModuleText(graph.str(), "model.mlir", context));
    return compile();
  }

  std::string compile() {
    passes::PipelineInputs inputs;
    inputs.backends = {&cpu(), &plainHalf, &stiffHalf};
    inputs.compileTo = "scheduled";
    DiagnosticText diagnostics(&context);
    return failed(passes::runPipeline(*module, {}, inputs)) ? diagnostics.errors() : "";
  }

  /// A random graph for the host and a plain accelerator, which gets a third of the elementwise ops.
  void parseSpread(uint32_t seed) {
    module = llvm::cantFail(parseModuleText(test::mixedGraph(seed, f32, 4, 10), "random.mlir", context));
    llvm::cantFail(ir::Target::parse("cpu,plain:0")).record(*module);
    getModel(*module).setCopies(CopyPolicy::Insert);
    std::mt19937 random(seed);
    module->walk([&](ElementwiseOp op) {
      if (random() % 3 == 0)
        op->setAttr(kPinAttr, StringAttr::get(&context, "acc0"));
    });
  }

  /// Values with a layout in the launches on a device.
  int laidOutOn(llvm::StringRef device) {
    int count = 0;
    module->walk([&](LaunchOp launch) {
      if (launch.getQueue() == device)
        launch.getCallee().walk([&](Operation *op) {
          count += llvm::count_if(op->getOperandTypes(), isLaidOut) + llvm::count_if(op->getResultTypes(), isLaidOut);
        });
    });
    return count;
  }

  /// Relayouts in the launches on a device.
  int relayoutsOn(llvm::StringRef device) {
    int count = 0;
    module->walk([&](LaunchOp launch) {
      if (launch.getQueue() == device)
        launch.getCallee().walk([&](RelayoutOp) { ++count; });
    });
    return count;
  }

  Graph graphFor(const std::string &devices) {
    Graph graph("layouts");
    graph.set_capacity(4);
    graph.set_devices(devices);
    graph.set_copies("insert");
    return graph;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  sluice_backend_compile plainHalf = plain(), stiffHalf = stiff();
  Dim batch{"batch"};
};

} // namespace

TEST_F(Layouts, AProductOfRankFourBeforeAPool) {
  Graph graph = graphFor("cpu");
  nn::Module net(graph);
  nn::Linear linear(&net, "linear", 8, 8);
  graph.output("y", max_pool2d(linear(graph.input("x", f32, {batch, 3, 6, 8})), 2));
  EXPECT_EQ(compile(graph), "");
}

TEST_F(Layouts, AProductOfRankFourBehindAConvolutionInTraining) {
  Graph graph = graphFor("cpu");
  nn::Module net(graph);
  nn::Conv2d conv(&net, "conv", 3, 5, 3);
  nn::Linear linear(&net, "linear", 8, 4);
  graph.minimize(linear(conv(graph.input("x", f32, {batch, 3, 8, 10}))).mean(), optim::SGD{});
  EXPECT_EQ(compile(graph), "");
}

// Tests that weights of a convolution, in panels, can be factors of products of rank 4.
TEST_F(Layouts, FiltersAsFactors) {
  Graph graph = graphFor("cpu");
  nn::Module net(graph);
  Tensor filters = net.parameter("filters", {8, 4, 3, 3}, init::uniform(-1, 1));
  Tensor turn = net.parameter("turn", {8, 4, 3, 3}, init::uniform(-1, 1));
  Tensor x = graph.input("x", f32, {batch, 4, 9, 9});
  Tensor turned = conv2d(x, matmul(filters * 2.0, turn + filters));
  graph.minimize((turned + conv2d(x, filters)).mean(), optim::SGD{});
  EXPECT_EQ(compile(graph), "");
}

// Tests that a weight in panels is updated by a product of weights in panels, also with two vector widths.
TEST_F(Layouts, WeightsInPanelsAsFactorsOfEachOther) {
  Graph graph = graphFor("cpu");
  nn::Module net(graph);
  Tensor a = net.parameter("a", {24, 24}, init::uniform(-1, 1)), b = net.parameter("b", {24, 24}, init::uniform(-1, 1));
  Tensor x = graph.input("x", f32, {batch, 24});
  Tensor both = linear(x, a + matmul(a, b)) + linear(x, b);
  Tensor wide = linear(x.to(f64), (a * 2.0).to(f64) + matmul(a.to(f64), b.to(f64)));
  graph.minimize(both.mean() + wide.mean().to(f32), optim::SGD{});
  EXPECT_EQ(compile(graph), "");
}

// Tests that all tensors are row-major on a device whose backend proposes no layouts, both activations and states.
TEST_F(Layouts, ABackendThatProposesNothingGetsRowMajor) {
  Graph graph = graphFor("cpu,plain:0");
  nn::Module net(graph);
  nn::Conv2d first(&net, "first", 3, 32, 3), second(&net, "second", 32, 32, 3);
  Tensor scale = net.parameter("scale", {32, 32, 3, 3}, init::uniform(-1, 1));
  scale = scale.to(gpu(0));
  Tensor x = pin(relu(first(graph.input("x", f32, {batch, 3, 16, 16}))), gpu(0));
  graph.output("hidden", x);
  graph.output("scale", scale); // no kernel there could copy it into a separate buffer
  graph.minimize((second(x) + conv2d(x, (scale * 2.0).cpu())).mean(), optim::SGD{});
  EXPECT_EQ(compile(graph), "");
  EXPECT_EQ(laidOutOn("acc0"), 0);
  EXPECT_GT(relayoutsOn("cpu"), 0);
}

// Tests the property on graphs of all families: supported graphs compile with any conflicting layouts.
TEST_F(Layouts, RandomGraphsCompileBetweenBackendsThatDisagree) {
  int spread = 0;
  for (uint32_t seed = 0; seed < 30; ++seed) {
    parseSpread(seed);
    EXPECT_EQ(compile(), "") << "seed " << seed;
    EXPECT_EQ(laidOutOn("acc0"), 0) << "seed " << seed;
    spread += relayoutsOn("cpu") > 0;
  }
  EXPECT_GT(spread, 10);
}

// Tests that images are relaid before they are copied to a device without relayouts, and results after the copy from
// it.
TEST_F(Layouts, RelayoutsRunWhereTheyAreSupported) {
  Graph graph = graphFor("cpu,stiff:0");
  nn::Module net(graph);
  nn::Conv2d conv(&net, "conv", 3, 8, 3);
  conv.pin(gpu(0));
  graph.output("y", conv(graph.input("x", f32, {batch, 3, 16, 16})));
  EXPECT_EQ(compile(graph), "");
  EXPECT_EQ(relayoutsOn("acc0"), 0);
  EXPECT_EQ(relayoutsOn("cpu"), 2);
}

// Tests that if no device supports a relayout, the error names the backends and their reasons.
TEST_F(Layouts, ARelayoutThatNobodyCanMakeIsAnErrorWithItsReason) {
  Graph graph = graphFor("cpu,stiff:0");
  nn::Module net(graph);
  nn::Conv2d conv(&net, "conv", 3, 8, 3);
  nn::Linear linear(&net, "linear", 14, 6);
  net.pin(gpu(0));
  graph.output("y", linear(conv(graph.input("x", f32, {batch, 3, 16, 16}))));
  EXPECT_THAT(compile(graph), HasSubstr("'sluice.relayout' cannot run on acc0 (backend 'stiff'): row-major tensors"));
}
