// A program that a debugger stops in: values that the printers of tools/debug show.
#include "ir/Dialect.h"
#include "ir/text/ParseGuard.h"
#include "runtime/plan/Plan.h"
#include "sluice/shape.h"

using namespace sluice;

/// Where debug_test.py stops.
[[gnu::noinline]] void stopHere() { asm volatile(""); }

static runtime::Plan makePlan() {
  runtime::Plan plan;
  plan.model = "tiny";
  plan.devices = {{"cpu", "cpu"}, {"acc0", "sim"}};
  plan.arenas = {{"states", 0, 4096}, {"constants", 1, 64}};
  plan.queues = {{"compute", 0, runtime::QueueKind::compute}, {"copies", 1, runtime::QueueKind::copy}};
  runtime::State state;
  state.name = "fc.weight";
  state.shape = {10, 784};
  state.slot = {0, 128, 0};
  plan.states = {state};
  runtime::Kernel kernel;
  kernel.name = "fc";
  kernel.ops = {"sluice.einsum", "sluice.add"};
  plan.kernels = {kernel};
  runtime::Buffer buffer{{0, 128, 64}, 256, runtime::Access::readWrite};
  runtime::Copy copy{"x", "pin", "", {0, 0}, {1, 64}, 0, 3136, 802816, runtime::Copy::When::step};
  runtime::Collective collective;
  collective.name = "gradients";
  collective.count = 7850;
  runtime::Entry entry;
  entry.name = "predict";
  runtime::Value input;
  input.name = "image";
  input.dtype = runtime::DType::u8;
  input.shape = {256, 784};
  input.rowsDim = 0;
  entry.inputs = {input};
  runtime::Action launch{runtime::Launch{"fc", "", 0, {buffer}}, {0}, {{3, 1}}, {}};
  entry.actions = {
      launch, {copy, {1}, {}, {}}, {runtime::Exchange{{copy, copy}}, {1}, {}, {}}, {collective, {0, 1}, {}, {}}};
  entry.actions.push_back({runtime::Loop{"steps", "", 5, {}, {launch}}, {0}, {{0, 0}}, {}});
  plan.entries = {entry};
  return plan;
}

int main() {
  Shape shape{Dim("batch"), 28, Dim("batch") * 16, Dim("classes", 10)};
  Shape scalar;
  runtime::Shape sizes{20, 1, 3, 3};
  runtime::Plan plan = makePlan();
  const runtime::Entry &entry = plan.entries[0];

  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<ir::SluiceDialect>();
  auto module = llvm::cantFail(ir::parseModuleText(R"(
    sluice.entry @double ["x"] -> ["y"] (%x: tensor<?x3xf32, #sluice.at<device = "cpu">>) {
      %y = sluice.exp %x : (tensor<?x3xf32, #sluice.at<device = "cpu">>) -> tensor<?x3xf32, #sluice.at<device = "cpu">>
      sluice.return %y : tensor<?x3xf32, #sluice.at<device = "cpu">>
    })",
                                                   "debug_values", context));
  ir::EntryOp function = *module->getBody()->getOps<ir::EntryOp>().begin();
  mlir::Operation *operation = &function.getBody().front().front();
  ir::ExpOp exponential = llvm::cast<ir::ExpOp>(operation);
  mlir::Value argument = exponential.getA(), result = exponential.getY();
  auto type = llvm::cast<mlir::RankedTensorType>(result.getType());
  auto at = llvm::cast<ir::AtAttr>(type.getEncoding());
  mlir::Type noType;
  mlir::Operation *noOperation = nullptr;

  stopHere();
  return int(scalar.size() + sizes.size() + shape.size() + entry.actions.size() +
             (noType || noOperation || !argument || !at));
}
