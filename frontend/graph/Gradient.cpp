// Gradients as values of the graph.
#include "frontend/graph/Gradient.h"
#include "frontend/graph/Call.h"

using namespace mlir;

namespace sluice {

using detail::Access;
using detail::Call;

/// "value 2, 'W1' [20, 1, 3, 3], "
static std::string nameOf(const Call &call, size_t number, const Tensor &value) {
  return "value " + std::to_string(number + 1) + ", " + call.graph.nameOf(Access::value(value)) + call.print(value) +
         ", ";
}

static void requireDifferentiable(const Call &call, const Tensor &loss, size_t number, const Tensor &value) {
  call.requireGraph(value);
  std::string name = nameOf(call, number, value);
  if (!is_float(value.dtype()))
    call.fail(name + "is of " + to_string(value.dtype()) + ": gradients are by floats");
  if (ir::StateOp state = call.graph.stateOf(Access::value(value)); state && call.graph.isFrozen(state))
    call.fail(name + "has requires_grad(false)");
  if (call.graph.dependsOn(Access::value(loss), Access::value(value)))
    return;
  bool isBehind = call.graph.dependsOn(Access::value(value), Access::value(loss));
  call.fail(name +
            (isBehind ? "depends on the loss, not the loss on it" : "has no gradient: the loss does not depend on it"));
}

std::vector<Tensor> grad(Arg loss, const std::vector<Tensor> &values) {
  Call call("grad", loss);
  call.requireScalar(loss.tensor);
  if (values.empty())
    call.fail("needs at least one value to differentiate with respect to");
  SmallVector<Value> by;
  for (size_t number = 0; number < values.size(); ++number) {
    requireDifferentiable(call, loss.tensor, number, values[number]);
    by.push_back(Access::value(values[number]));
  }
  auto op = call.graph.builder.create<ir::GradientOp>(call.graph.toLocation(loss.where), TypeRange(ValueRange(by)),
                                                      Access::value(loss.tensor), by);
  std::vector<Tensor> gradients;
  for (Value gradient : op.getGradients())
    gradients.push_back(Access::tensor(call.graph, gradient));
  return gradients;
}

Tensor detail::saved(const Tensor &value, const Tensor &given) {
  Call call("saved", {value, given}, SourceLocation(), detail::Rows::merged);
  if (Call::type(value) != Call::type(given))
    call.fail("the value " + call.print(value) + " " + to_string(value.dtype()) + " and the input " +
              call.print(given) + " " + to_string(given.dtype()) + " differ in dtype, shape or device");
  if (!isa<BlockArgument>(Access::value(given)))
    call.fail("the second tensor is not an input of the graph");
  return call.emit<ir::SavedOp>({value, given});
}

} // namespace sluice
