// Blocks under construction, and the visibility of their values.
#include "frontend/graph/Nested.h"

#include "ir/Work.h"

using namespace mlir;

namespace sluice::detail {

SmallVector<Value> valuesOf(ArrayRef<Tensor> tensors) {
  return llvm::map_to_vector(tensors, [](const Tensor &tensor) { return Access::value(tensor); });
}

std::vector<Tensor> tensorsOf(GraphImpl &graph, ValueRange values) {
  std::vector<Tensor> tensors;
  for (Value value : values)
    tensors.push_back(Access::tensor(graph, value));
  return tensors;
}

void requireValueOps(const Call &call, Block &block, const char *what) {
  for (Operation &op : block.without_terminator())
    if (!ir::isCompute(&op) && !isa<ir::ScanOp, ir::IfOp>(op))
      call.fail("'" + op.getName().stripDialect().str() + "' has no place in " + what);
}

void Call::requireVisible(const Tensor &x) const {
  if (graph.isVisible(Access::value(x)))
    return;
  fail(print(x) + ", made at " + locationOf(Access::value(x).getLoc()).str() +
       ", is a value within a branch of cond or a step of scan; outside of it, use what cond or scan returns");
}

NestedBlock::NestedBlock(GraphImpl &graph) : graph(graph), before(graph.builder.saveInsertionPoint()) {
  graph.openBlocks.push_back(block.get());
  graph.builder.setInsertionPointToEnd(block.get());
}

void NestedBlock::close() {
  graph.openBlocks.pop_back();
  graph.builder.restoreInsertionPoint(before);
  isOpen = false;
}

NestedBlock::~NestedBlock() {
  if (isOpen)
    close();
  if (!block)
    return;
  block->dropAllReferences();
  graph.abandoned.push_back(std::move(block));
}

} // namespace sluice::detail
