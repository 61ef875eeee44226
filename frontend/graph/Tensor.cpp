// Properties of a handle's value.
#include "sluice/tensor.h"
#include "frontend/graph/Call.h"

namespace sluice {

using detail::Access;

/// The value of a tensor; throws if the tensor is empty.
static mlir::Value valueOf(const char *method, const Tensor &tensor, std::source_location where) {
  if (mlir::Value value = Access::value(tensor))
    return value;
  throw Error(std::string(method) + ": the tensor is empty", where);
}

DType Tensor::dtype(Where where) const { return detail::dtypeOf(valueOf("dtype", *this, where).getType()); }

Shape Tensor::shape(Where where) const {
  mlir::Value value = valueOf("shape", *this, where); // an empty tensor has no graph
  return graph->shapeOf(value.getType(), merged);
}

std::int64_t Tensor::dim(Where where) const {
  return llvm::cast<mlir::RankedTensorType>(valueOf("dim", *this, where).getType()).getRank() - merged;
}

Dim Tensor::size(std::int64_t dim, Where where) const {
  detail::Call call("size", Arg(*this, where), detail::Rows::merged);
  return shape()[call.axisOf(this->dim(), dim)];
}

} // namespace sluice
