#include "Nested.h"

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

} // namespace sluice::detail
