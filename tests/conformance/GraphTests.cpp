// Small models, compiled like real ones: several ops per launch if the backend fuses them, in the layouts that the
// compiler chooses, including gradients and updates. Each kernel runs on the reference values of its operands.
#include "ir/Module.h"
#include "ir/Target.h"
#include "ir/reference/Interpreter.h"
#include "ir/text/ParseGuard.h"
#include "passes/Passes.h"
#include "passes/backend/DeviceBackends.h"
#include "tests/conformance/LoadedKernels.h"
#include "tests/ir/op_instance.h"
#include "llvm/ADT/StringExtras.h"
#include <random>

using namespace mlir;

namespace sluice::conformance {

namespace {

/// A model on the subject's first device, as far as phase `fused`.
class CompiledGraph {
public:
  CompiledGraph(const Subject &subject, const std::string &text);

  ModuleOp module() { return *owned; }
  passes::DeviceBackends &backends() { return *devices; }
  /// The device's kernels of an entry point.
  std::vector<ir::KernelOp> kernelsOf(ir::EntryOp entry);
  const ir::DiagnosticText &diagnostics() const { return diagnosticText; }

private:
  ir::DiagnosticText diagnosticText;
  OwningOpRef<ModuleOp> owned;
  std::unique_ptr<passes::DeviceBackends> devices;
  std::string device; // its logical name
};

/// The reference values of each kernel's operands and results in an entry point.
struct KernelValues {
  std::vector<ir::HostTensor> operands, results;
};

} // namespace

CompiledGraph::CompiledGraph(const Subject &subject, const std::string &text) : diagnosticText(&test::getContext()) {
  auto parsed = ir::parseModuleText(text, "conformance", test::getContext());
  expect(bool(parsed), "the graph cannot be read: " + (parsed ? "" : llvm::toString(parsed.takeError())));
  owned = std::move(*parsed);
  llvm::Expected<ir::Target> target = ir::Target::parse(subject.name);
  expect(bool(target), "no target: " + (target ? "" : llvm::toString(target.takeError())));
  target->record(*owned);
  device = target->first().name;
  ir::getModel(*owned).setCapacity(uint64_t(kCapacity));
  ir::getModel(*owned).setCopies(ir::CopyPolicy::Insert);
  bool built = succeeded(passes::buildEntryPoints(*owned));
  passes::expandComposites(*owned);
  expect(built && succeeded(passes::simplify(*owned)) && succeeded(passes::placeValues(*owned)) &&
             succeeded(passes::insertCopies(*owned)),
         "the graph cannot be placed: " + diagnosticText.errors());
  passes::deduplicateCopies(*owned);
  devices = passes::DeviceBackends::create(*owned, {subject.host, subject.compile}, {});
  expect(devices != nullptr, "begin fails: " + diagnosticText.errors());
  passes::expandMissing(*owned, *devices);
  if (failed(passes::checkSupport(*owned, *devices)))
    throw Skipped(diagnosticText.errors());
  expect(succeeded(passes::assignLayouts(*owned, *devices)), "no layouts: " + diagnosticText.errors());
  passes::fuseKernels(*owned, *devices, /*fuse=*/true);
}

std::vector<ir::KernelOp> CompiledGraph::kernelsOf(ir::EntryOp entry) {
  std::vector<ir::KernelOp> kernels;
  for (auto kernel : entry.getBody().front().getOps<ir::KernelOp>())
    if (ir::getDevice(kernel->getResult(0).getType()) == device)
      kernels.push_back(kernel);
  return kernels;
}

/// Numbers of either sign; integers are classes, 0 or 1.
static ir::HostTensor draw(Type type, int64_t rows, std::mt19937_64 &random) {
  ir::HostTensor tensor(ir::runtimeShape(type, rows));
  Type element = cast<RankedTensorType>(type).getElementType();
  for (double &value : tensor.data) {
    double unit = double(random() >> 40) * 0x1p-24; // exact in f32
    value = isa<FloatType>(element) ? 2 * unit - 1 : std::floor(2 * unit);
  }
  return tensor;
}

/// Runs the reference on random inputs and states, every value rounded to its type.
static llvm::DenseMap<Operation *, KernelValues> evaluate(ir::EntryOp entry, int64_t rows) {
  std::mt19937_64 random{uint64_t(rows)};
  SmallVector<ir::HostTensor> inputs;
  for (BlockArgument argument : entry.getBody().getArguments())
    inputs.push_back(draw(argument.getType(), rows, random));
  ir::StateMap states;
  for (auto state : entry->getParentOfType<ModuleOp>().getOps<ir::StateOp>())
    states[state.getSymName().str()] = draw(state.getType(), rows, random);
  llvm::DenseMap<Operation *, KernelValues> kernels;
  auto note = [&](Operation *op, ArrayRef<ir::HostTensor> operands, ArrayRef<ir::HostTensor> results) {
    if (isa<ir::KernelOp>(op))
      kernels[op] = {operands.vec(), results.vec()};
  };
  ir::InterpreterOptions options{/*roundToType=*/true, note};
  expect(succeeded(ir::interpret(entry, inputs, states, rows, options)), "the reference fails");
  return kernels;
}

/// "conv2d+add+relu" of a kernel's ops.
static std::string nameOps(ir::KernelOp kernel) {
  std::vector<std::string> names;
  for (Operation &op : kernel.getBody().front().without_terminator())
    names.push_back(op.getName().stripDialect().str());
  return llvm::join(names, "+");
}

static std::string checkEntry(const Subject &subject, CompiledGraph &graph, ir::EntryOp entry) {
  std::vector<ir::KernelOp> kernels = graph.kernelsOf(entry);
  if (kernels.empty())
    return "";
  RunHalf half(subject);
  LoadedKernels loaded(half, graph.backends().of(kernels.front()), kernels, graph.diagnostics());
  for (int64_t rows : kRowsTried) {
    llvm::DenseMap<Operation *, KernelValues> values = evaluate(entry, rows);
    for (auto [number, kernel] : llvm::enumerate(kernels)) {
      try {
        loaded.check(number, values[kernel].operands, values[kernel].results, rows);
      } catch (const Failed &failed) {
        throw Failed("kernel " + nameOps(kernel) + " of " + entry.getSymName().str() + ": " + failed.what());
      }
    }
  }
  return llvm::join(llvm::map_range(kernels, nameOps), " ");
}

/// Returns the launches, as the ops of each.
static std::string checkGraph(const Subject &subject, const std::string &text) {
  if (!subject.compile)
    throw Skipped("there is no compile half");
  std::string launches;
  for (const char *name : {"train_step", "predict"}) {
    CompiledGraph graph(subject, text); // a session each: what is prepared is lowered at once
    if (auto entry = graph.module().lookupSymbol<ir::EntryOp>(name))
      launches.append(launches.empty() ? "" : " ").append(checkEntry(subject, graph, entry));
  }
  expect(!launches.empty(), "the graph has no kernel on the device");
  return "launches: " + launches;
}

//===- the graphs -------------------------------------------------------------------------------------------------===//

struct Graph {
  const char *name, *text;
};

static constexpr Graph kGraphs[] = {{"graph.product_and_sum", R"(
sluice.graph ["x", "w", "z"] (%x: tensor<?x7xf32>, %w: tensor<7x6xf32>, %z: tensor<?x6xf32>) {
  %p = sluice.einsum "ab,bc->ac" %x, %w : (tensor<?x7xf32>, tensor<7x6xf32>) -> tensor<?x6xf32>
  %s = sluice.add %p, %z : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %r = sluice.relu %s : (tensor<?x6xf32>) -> tensor<?x6xf32>
  sluice.output "r", %r : tensor<?x6xf32>
})"},
                                    {"graph.elementwise_chain", R"(
sluice.graph ["a", "b"] (%a: tensor<?x9xf32>, %b: tensor<?x9xf32>) {
  %m = sluice.mul %a, %b : (tensor<?x9xf32>, tensor<?x9xf32>) -> tensor<?x9xf32>
  %t = sluice.tanh %m : (tensor<?x9xf32>) -> tensor<?x9xf32>
  %s = sluice.sub %t, %a : (tensor<?x9xf32>, tensor<?x9xf32>) -> tensor<?x9xf32>
  %e = sluice.exp %s : (tensor<?x9xf32>) -> tensor<?x9xf32>
  sluice.output "t", %t : tensor<?x9xf32>
  sluice.output "e", %e : tensor<?x9xf32>
})"},
                                    {"graph.statistics_of_the_batch", R"(
sluice.graph ["x"] (%x: tensor<?x3x4xf32>) {
  %q = sluice.square %x : (tensor<?x3x4xf32>) -> tensor<?x3x4xf32>
  %m = sluice.mean %q {axes = array<i64: 0, 2>} : (tensor<?x3x4xf32>) -> tensor<3xf32>
  %e = sluice.expand %m {dims = array<i64: 1>, shape = array<i64: -1, 3, 4>} : (tensor<3xf32>) -> tensor<?x3x4xf32>
  %y = sluice.div %q, %e : (tensor<?x3x4xf32>, tensor<?x3x4xf32>) -> tensor<?x3x4xf32>
  %l = sluice.reduce_max %x {axes = array<i64: 0>} : (tensor<?x3x4xf32>) -> tensor<3x4xf32>
  sluice.output "y", %y : tensor<?x3x4xf32>
  sluice.output "l", %l : tensor<3x4xf32>
})"},
                                    {"graph.training_products", R"(
sluice.state parameter @w1 : tensor<6x7xf32> = <"uniform", -1.0 : f64, 1.0 : f64>
sluice.state parameter @b1 : tensor<6xf32> = <"constant", 0.0 : f64>
sluice.state parameter @w2 : tensor<3x6xf32> = <"uniform", -1.0 : f64, 1.0 : f64>
sluice.state hyperparameter @lr : tensor<f32> = <"constant", 1.0e-01 : f64>
sluice.graph ["x", "label"] (%x: tensor<?x7xf32>, %label: tensor<?xi32>) {
  %w1 = sluice.get @w1 : tensor<6x7xf32>
  %b1 = sluice.get @b1 : tensor<6xf32>
  %w2 = sluice.get @w2 : tensor<3x6xf32>
  %p = sluice.einsum "ab,cb->ac" %x, %w1 : (tensor<?x7xf32>, tensor<6x7xf32>) -> tensor<?x6xf32>
  %e = sluice.expand %b1 {dims = array<i64: 1>, shape = array<i64: -1, 6>} : (tensor<6xf32>) -> tensor<?x6xf32>
  %s = sluice.add %p, %e : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %h = sluice.tanh %s : (tensor<?x6xf32>) -> tensor<?x6xf32>
  %y = sluice.einsum "ab,cb->ac" %h, %w2 : (tensor<?x6xf32>, tensor<3x6xf32>) -> tensor<?x3xf32>
  %c = sluice.softmax_cross_entropy %y, %label : (tensor<?x3xf32>, tensor<?xi32>) -> tensor<?xf32>
  %l = sluice.mean %c {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
  sluice.output "y", %y : tensor<?x3xf32>
  sluice.minimize %l, #sluice.sgd<momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.01 : f64, nesterov = false> lr @lr [@w1, @b1, @w2] : tensor<f32>
})"},
                                    {"graph.training_convolutions", R"(
sluice.state parameter @w1 : tensor<4x2x3x3xf32> = <"uniform", -1.0 : f64, 1.0 : f64>
sluice.state parameter @b1 : tensor<4xf32> = <"constant", 0.0 : f64>
sluice.state parameter @w2 : tensor<3x4x2x2xf32> = <"uniform", -1.0 : f64, 1.0 : f64>
sluice.state hyperparameter @lr : tensor<f32> = <"constant", 1.0e-01 : f64>
sluice.graph ["x", "z"] (%x: tensor<?x2x6x5xf32>, %z: tensor<?x3x2x2xf32>) {
  %w1 = sluice.get @w1 : tensor<4x2x3x3xf32>
  %b1 = sluice.get @b1 : tensor<4xf32>
  %w2 = sluice.get @w2 : tensor<3x4x2x2xf32>
  %p = sluice.conv2d %x, %w1 {stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<?x2x6x5xf32>, tensor<4x2x3x3xf32>) -> tensor<?x4x6x5xf32>
  %e = sluice.expand %b1 {dims = array<i64: 1>, shape = array<i64: -1, 4, 6, 5>} : (tensor<4xf32>) -> tensor<?x4x6x5xf32>
  %s = sluice.add %p, %e : (tensor<?x4x6x5xf32>, tensor<?x4x6x5xf32>) -> tensor<?x4x6x5xf32>
  %h = sluice.tanh %s : (tensor<?x4x6x5xf32>) -> tensor<?x4x6x5xf32>
  %y = sluice.conv2d %h, %w2 {stride = array<i64: 3, 2>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<?x4x6x5xf32>, tensor<3x4x2x2xf32>) -> tensor<?x3x2x2xf32>
  %d = sluice.sub %y, %z : (tensor<?x3x2x2xf32>, tensor<?x3x2x2xf32>) -> tensor<?x3x2x2xf32>
  %q = sluice.square %d : (tensor<?x3x2x2xf32>) -> tensor<?x3x2x2xf32>
  %l = sluice.mean %q {axes = array<i64: 0, 1, 2, 3>} : (tensor<?x3x2x2xf32>) -> tensor<f32>
  sluice.output "y", %y : tensor<?x3x2x2xf32>
  sluice.minimize %l, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w1, @b1, @w2] : tensor<f32>
})"}};

std::vector<Test> graphTests() {
  std::vector<Test> tests;
  for (const Graph &graph : kGraphs)
    tests.emplace_back(graph.name, [&graph](const Subject &subject) { return checkGraph(subject, graph.text); });
  return tests;
}

} // namespace sluice::conformance
