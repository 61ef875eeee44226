// Branches: exactly one of them runs.
#include "frontend/graph/Nested.h"

using namespace mlir;

namespace sluice {

using detail::Access;
using detail::Call;
using detail::NestedBlock;

using Branch = std::function<std::vector<Tensor>()>;

/// Builds a branch into a block, closes the block, and returns the branch's results.
static std::vector<Tensor> buildBranch(const Call &call, const Branch &branch, Location loc, NestedBlock &block) {
  std::vector<Tensor> given = branch();
  for (const Tensor &tensor : given) {
    call.requireGraph(tensor);
    if (Access::isMerged(tensor))
      call.fail("a branch gives " + call.print(tensor) + ": the batch is merged with another dimension");
  }
  call.graph.builder.create<ir::YieldOp>(loc, detail::valuesOf(given));
  detail::requireValueOps(call, *block, "a branch");
  block.close();
  return given;
}

static void requireAlike(const Call &call, ArrayRef<Tensor> then, ArrayRef<Tensor> otherwise) {
  if (then.size() != otherwise.size() || then.empty())
    call.fail("one branch gives " + std::to_string(then.size()) + " values, the other " +
              std::to_string(otherwise.size()));
  for (auto [a, b] : llvm::zip_equal(then, otherwise)) {
    call.requireSameDType(a, b);
    if (call.print(a) != call.print(b))
      call.fail("the branches give " + call.print(a) + " and " + call.print(b));
  }
}

std::vector<Tensor> cond(Arg predicate, const Branch &then, const Branch &otherwise) {
  Call call("cond", predicate);
  if (predicate.tensor.dtype() != DType::boolean || Call::rank(predicate.tensor) != 0)
    call.fail(std::string("the condition must be one bool; its dtype is ") + to_string(predicate.tensor.dtype()) +
              "; reduce it with any() or all(), or choose by where()");
  Location loc = call.graph.toLocation(predicate.where);
  NestedBlock first(call.graph);
  std::vector<Tensor> given = buildBranch(call, then, loc, first);
  NestedBlock second(call.graph);
  requireAlike(call, given, buildBranch(call, otherwise, loc, second));
  ir::IfOp op =
      ir::IfOp::create(call.graph.builder, loc, Access::value(predicate.tensor), first.release(), second.release());
  return detail::tensorsOf(call.graph, op.getResults());
}

Tensor cond(Arg predicate, const std::function<Tensor()> &then, const std::function<Tensor()> &otherwise) {
  return cond(
             predicate, [&] { return std::vector<Tensor>{then()}; }, [&] { return std::vector<Tensor>{otherwise()}; })
      .front();
}

} // namespace sluice
