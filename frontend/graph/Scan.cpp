// Scans along a dimension.
#include "ir/ops/control/Scan.h"
#include "frontend/graph/Nested.h"

using namespace mlir;

namespace sluice {

using detail::Access;
using detail::Call;
using detail::tensorsOf;
using detail::valuesOf;

/// The dimension, counted from the front, and the number of steps.
static std::pair<int64_t, int64_t> stepsOf(const Call &call, ArrayRef<Tensor> xs, int64_t dim) {
  if (xs.empty())
    call.fail("needs something to go along");
  int64_t axis = call.axis(xs.front(), dim);
  for (const Tensor &x : xs) {
    if (axis >= Call::rank(x))
      call.fail("dimension " + std::to_string(axis) + " is out of range for " + call.print(x));
    if (ShapedType::isDynamic(Call::shape(x)[axis]))
      call.fail("cannot go along the batch");
    if (Call::shape(x)[axis] != Call::shape(xs.front())[axis])
      call.fail("the steps differ: " + call.print(xs.front()) + " and " + call.print(x));
  }
  return {axis, Call::shape(xs.front())[axis]};
}

static void checkStep(const Call &call, ArrayRef<Tensor> init, const ScanStep &step, int64_t axis) {
  if (step.carried.size() != init.size())
    call.fail("carries " + std::to_string(init.size()) + " values, and a step leaves " +
              std::to_string(step.carried.size()));
  for (auto [before, after] : llvm::zip_equal(init, step.carried)) {
    call.requireGraph(after);
    call.requireSameDType(before, after);
    if (call.print(before) != call.print(after))
      call.fail("a value that is carried begins as " + call.print(before) + ", and a step leaves " + call.print(after));
  }
  for (const Tensor &stacked : step.stacked) {
    call.requireGraph(stacked);
    if (Access::isMerged(stacked))
      call.fail("cannot stack " + call.print(stacked) + ": the batch is merged with another dimension");
    if (axis > Call::rank(stacked))
      call.fail("cannot stack " + call.print(stacked) + " along dimension " + std::to_string(axis));
  }
}

/// Carried values that begin without a device, such as zeros, begin on the device where a step leaves them. Returns these
/// devices; null for other values.
static SmallVector<StringAttr> placeCarried(ArrayRef<Tensor> init, Block &block, ArrayRef<Tensor> carried) {
  SmallVector<StringAttr> devices;
  for (auto [number, before, after] : llvm::enumerate(init, carried)) {
    StringAttr device = ir::getDevice(Call::type(before)) ? StringAttr() : ir::getDevice(Call::type(after));
    devices.push_back(device);
    if (device)
      block.getArgument(unsigned(number)).setType(ir::withDevice(Call::type(before), device));
  }
  return devices;
}

ScanStep scan(std::vector<Tensor> init, std::vector<Tensor> xs, std::int64_t dim,
              const std::function<ScanStep(const std::vector<Tensor> &, const std::vector<Tensor> &)> &body,
              ScanOptions options, std::source_location where) {
  std::vector<Tensor> operands = init;
  operands.insert(operands.end(), xs.begin(), xs.end());
  Call call("scan", operands, where);
  detail::GraphImpl &graph = call.graph;
  auto [axis, count] = stepsOf(call, xs, dim);
  Location loc = graph.toLocation(where);

  detail::NestedBlock block(graph);
  for (Value value : valuesOf(init))
    block->addArgument(value.getType(), loc);
  for (Value value : valuesOf(xs))
    block->addArgument(ir::ScanOp::getSliceType(value.getType(), axis), loc);
  ValueRange arguments = block->getArguments();
  ScanStep step =
      body(tensorsOf(graph, arguments.take_front(init.size())), tensorsOf(graph, arguments.drop_front(init.size())));
  checkStep(call, init, step, axis);
  SmallVector<StringAttr> devices = placeCarried(init, *block, step.carried);
  graph.builder.create<ir::StepOp>(loc, valuesOf(step.carried), valuesOf(step.stacked));
  detail::requireValueOps(call, *block, "a step");
  block.close();
  SmallVector<Value> first = valuesOf(init);
  for (auto [value, device] : llvm::zip_equal(first, devices))
    value = device ? graph.copy(value, device, ir::CopyReason::To, where) : value;
  ir::ScanOp op = ir::ScanOp::create(graph.builder, loc, count, options.reverse, first, valuesOf(xs),
                                     SmallVector<int64_t>(xs.size(), axis),
                                     SmallVector<int64_t>(step.stacked.size(), axis), block.release());
  if (options.recompute)
    op->setDiscardableAttr(ir::kRecompute, graph.builder.getUnitAttr());
  return {tensorsOf(graph, op.getLast()), tensorsOf(graph, op.getStacks())};
}

} // namespace sluice
