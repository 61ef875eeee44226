// Dropout and its random state.
#include "frontend/graph/Call.h"

using namespace mlir;

namespace sluice {

using detail::Call;
using detail::Rows;

Tensor dropout(Arg x, double p) {
  Call call("dropout", x, Rows::merged);
  call.requireFloat(x.tensor);
  if (!(p >= 0 && p <= 1))
    call.fail("p is a probability, within [0, 1], not " + Call::print(p));
  if (p == 0)
    return x.tensor;
  return call.emit<ir::DropoutOp>({x.tensor, call.key()},
                                  {call.real("p", p), call.integer("stream", call.graph.nextStream())});
}

} // namespace sluice
