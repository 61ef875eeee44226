#include "frontend/graph/GraphImpl.h"

using namespace mlir;

namespace sluice::detail {

Value ArrayCall::valueOf(Value read) const {
  if (Value value = values.lookup(read))
    return value;
  throw Error("a value that a module computed outside of forward has no elements in a call on arrays; compute it in "
              "forward",
              locationOf(read.getLoc()));
}

void ArrayCall::add(const std::string &state, Value read, const SourceLocation &location) {
  auto type = cast<RankedTensorType>(read.getType());
  values[read] = target.addInputOn(/*device=*/{}, "state " + state,
                                   RankedTensorType::get(type.getShape(), target.elementType(dtypeOf(type))), location);
}

} // namespace sluice::detail
