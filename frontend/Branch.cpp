// Branches, of which one is done.
#include "Nested.h"

using namespace mlir;

namespace sluice {

using detail::Access;
using detail::Call;

using Branch = std::function<std::vector<Tensor>()>;

namespace {

/// A branch that has been built; in no op yet.
struct BuiltBranch {
  std::unique_ptr<Block> block = std::make_unique<Block>();
  std::vector<Tensor> given;
};

} // namespace

static BuiltBranch buildBranch(const Call &call, const Branch &branch, Location loc) {
  BuiltBranch built;
  OpBuilder::InsertionGuard guard(call.graph.builder);
  call.graph.builder.setInsertionPointToEnd(built.block.get());
  built.given = branch();
  for (const Tensor &tensor : built.given) {
    call.requireGraph(tensor);
    if (Access::isMerged(tensor))
      call.fail("a branch gives " + call.print(tensor) + ": the batch is merged with another dimension");
  }
  call.graph.builder.create<ir::YieldOp>(loc, detail::valuesOf(built.given));
  detail::requireValueOps(call, *built.block, "a branch");
  return built;
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
    call.fail(std::string("decides by one bool, not by ") + to_string(predicate.tensor.dtype()) +
              "; reduce it with any() or all(), or choose by where()");
  Location loc = call.graph.toLocation(predicate.where);
  BuiltBranch first = buildBranch(call, then, loc), second = buildBranch(call, otherwise, loc);
  requireAlike(call, first.given, second.given);
  ir::IfOp op = ir::IfOp::create(call.graph.builder, loc, Access::value(predicate.tensor), first.block.release(),
                                 second.block.release());
  return detail::tensorsOf(call.graph, op.getResults());
}

Tensor cond(Arg predicate, const std::function<Tensor()> &then, const std::function<Tensor()> &otherwise) {
  return cond(
             predicate, [&] { return std::vector<Tensor>{then()}; }, [&] { return std::vector<Tensor>{otherwise()}; })
      .front();
}

} // namespace sluice
