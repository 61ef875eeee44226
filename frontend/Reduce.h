// Reductions within functions of the API.
#pragma once

#include "Call.h"

namespace sluice::detail {

/// Over the dimensions of x that are named, or all.
template <class Op> Tensor reduce(Call &call, const Tensor &x, const Axes &dims = {}, bool keepdim = false) {
  if (x.dtype() == DType::boolean)
    call.fail("works on numbers, not bool; convert with .to(f32)");
  llvm::SmallVector<mlir::NamedAttribute> attributes{call.list("axes", call.axes(x, dims))};
  if (keepdim)
    attributes.push_back(call.unit("keepdims"));
  return call.emit<Op>({x}, attributes);
}

} // namespace sluice::detail
