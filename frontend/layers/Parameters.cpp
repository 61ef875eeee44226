// Parameters: the selection of those to train, and their values after training.
#include "frontend/graph/Call.h"
#include "sluice/module.h"

using namespace mlir;

namespace sluice {

using detail::Access;
using detail::Call;
using detail::GraphImpl;

/// The parameter that a tensor reads.
static ir::StateOp parameterOf(const Call &call, const Tensor &tensor) {
  ir::StateOp state = call.graph.stateOf(Access::value(tensor));
  if (!state || state.getKind() != ir::StateKind::Parameter)
    call.fail("takes parameters of a module: pass the tensor that `parameter` returned");
  return state;
}

//===- requires_grad ----------------------------------------------------------------------------------------------===//

static void requireNoMinimize(GraphImpl &graph, const SourceLocation &location) {
  if (ir::MinimizeOp minimize = graph.findMinimize())
    throw Error("requires_grad: the graph has a minimize, which has chosen the parameters that it trains; "
                "call requires_grad before minimize",
                location, {{"minimize called here", detail::locationOf(minimize.getLoc())}});
}

static void setRequiresGrad(GraphImpl &graph, ir::StateOp parameter, bool required) {
  if (required)
    graph.frozen.erase(parameter.getSymName());
  else
    graph.frozen.insert(parameter.getSymName());
}

Tensor Tensor::requires_grad(bool required, Where where) const {
  Call call("requires_grad", Arg(*this, where));
  ir::StateOp parameter = parameterOf(call, *this);
  requireNoMinimize(call.graph, where);
  setRequiresGrad(call.graph, parameter, required);
  return *this;
}

// Tied parameters share one state.
nn::Module &nn::Module::requires_grad(bool required, Where at) {
  requireNoMinimize(*graph, at);
  for (const Member &member : members)
    if (ir::StateOp state = graph->stateOf(Access::value(member.tensor)); state.getKind() == ir::StateKind::Parameter)
      setRequiresGrad(*graph, state, required);
  isFrozen = !required;
  ++graph->changes;
  for (Module *child : children)
    child->requires_grad(required, at);
  return *this;
}

//===- updated ----------------------------------------------------------------------------------------------------===//

Tensor Tensor::updated(Where where) const {
  Call call("updated", Arg(*this, where));
  ir::StateOp state = parameterOf(call, *this);
  if (!call.graph.isTrained(state.getSymName()))
    call.fail(("minimize does not train '" + state.getSymName() + "'" +
               (call.graph.findMinimize() ? "" : " yet; call updated after minimize"))
                  .str());
  OpBuilder &builder = call.graph.builder;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&call.graph.graph.getBody().front()); // in a step: before the scan
  Value before = Access::value(*this);
  auto after = builder.create<ir::UpdatedOp>(call.graph.toLocation(where), before.getType(), before);
  return Access::tensor(call.graph, after);
}

} // namespace sluice
