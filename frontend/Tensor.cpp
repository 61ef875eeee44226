// What a handle tells about its value.
#include "sluice/tensor.h"
#include "Call.h"

namespace sluice {

using detail::Access;

DType Tensor::dtype() const { return detail::dtypeOf(Access::value(*this).getType()); }

Shape Tensor::shape() const { return graph->shapeOf(Access::value(*this).getType()); }

std::int64_t Tensor::dim() const { return detail::Call::rank(*this); }

Dim Tensor::size(std::int64_t dim, Where where) const {
  detail::Call call("size", Arg(*this, where));
  return shape()[call.axis(*this, dim)];
}

} // namespace sluice
