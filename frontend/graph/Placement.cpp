// Placement of values and work: to, copy_to, copy_, pin.
#include "frontend/graph/Call.h"

using namespace mlir;

namespace sluice {

using detail::Access;
using detail::Call;

//===- values -----------------------------------------------------------------------------------------------------===//

std::optional<Device> Tensor::device(Where where) const {
  Call call("device", Arg(*this, where));
  StringAttr name = call.graph.deviceOf(Access::value(*this));
  return name ? std::optional(detail::toDevice(name)) : std::nullopt;
}

Tensor Tensor::to(const Device &device, Where where) const {
  Call call("to", Arg(*this, where));
  StringAttr name = call.graph.use("to", device, where);
  return call.graph.deviceOf(Access::value(*this)) == name ? *this : call.copy(*this, name, ir::CopyReason::To);
}

Tensor Tensor::copy_to(const Device &device, Where where) const {
  Call call("copy_to", Arg(*this, where));
  return call.copy(*this, call.graph.use("copy_to", device, where), ir::CopyReason::CopyTo);
}

Tensor Tensor::cpu(Where where) const { return to(sluice::cpu(), where); }
Tensor Tensor::cuda(Where where) const { return to(Call("cuda", Arg(*this, where)).graph.defaultGpu(), where); }
Tensor Tensor::cuda(int index, Where where) const { return to(gpu(index, where), where); }

/// The value that training assigns to the state `existing`: the source, on the state's device.
static Tensor write(Call &call, const Tensor &existing, const Tensor &source) {
  if (Call::shape(source) != Call::shape(existing))
    call.fail("sizes differ: " + call.print(source) + " and " + call.print(existing));
  StringAttr from = ir::getDevice(Call::type(source)), to = ir::getDevice(Call::type(existing));
  // Also equal if neither is placed yet.
  Tensor value = from == to ? source : call.copy(source, to, ir::CopyReason::To);
  call.write(existing, value);
  return value;
}

void Tensor::copy_to(Tensor &existing, Where where) const {
  Call call("copy_to", Arg(*this, where));
  call.requireGraph(existing);
  call.requireSameDType(*this, existing);
  Tensor written = write(call, existing, *this);
  if (!Access::call(existing)) // in a call on arrays, the handle has the new value already
    existing = written;
}

Tensor &Tensor::copy_(const Tensor &source, Where where) {
  Call call("copy_", Arg(source, where));
  call.requireGraph(*this);
  Tensor written = write(call, *this, call.cast(source, dtype()));
  return Access::call(*this) ? *this : *this = written; // as above
}

//===- work -------------------------------------------------------------------------------------------------------===//

/// The reason why the ops that compute a value cannot be pinned; empty if they can.
static std::string reasonAgainstPin(const Call &call, Value value, StringAttr device) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return call.graph.nameOf(value) + "is an input: nothing computes it";
  if (isa<ir::GetOp>(op))
    return call.graph.nameOf(value) + "is a state: pin or move its module";
  if (isa<ir::CopyOp>(op))
    return "the value is a copy, and lives where `to` or `copy_to` puts it";
  if (op->getNumOperands() == 0)
    return "the value is a constant: it is made where it is used";
  StringAttr fixed = ir::getDevice(value.getType());
  if (fixed && fixed != device)
    return "the value is fixed on " + detail::toDevice(fixed).str() + ", where its operands live";
  return {};
}

Tensor pin(Arg x, const Device &device) {
  Call call("pin", x);
  Value value = Access::value(x.tensor);
  StringAttr name = call.graph.use("pin", device, x.where);
  if (std::string reason = reasonAgainstPin(call, value, name); !reason.empty())
    call.fail(reason);
  for (Operation *op : call.graph.opsOfCall(value.getDefiningOp()))
    ir::setDeviceAndPin(op, ir::getDevice(op->getResult(0).getType()), name);
  return x.tensor;
}

} // namespace sluice
