// Reductions for implementations of API functions.
#pragma once

#include "frontend/graph/Call.h"

namespace sluice::detail {

/// Over the named dimensions of x, or all.
template <class Op> Tensor reduce(Call &call, const Tensor &x, const Axes &dims = {}, bool keepdim = false) {
  if (x.dtype() == DType::boolean)
    call.fail("works on numbers, not bool; convert with .to(f32)");
  llvm::SmallVector<int64_t> axes = call.axes(x, dims);
  llvm::SmallVector<mlir::NamedAttribute> attributes{call.list("axes", axes)};
  if (keepdim)
    attributes.push_back(call.unit("keepdims"));
  Tensor y = call.emit<Op>({x}, attributes);
  if (int64_t merged = Call::mergedAt(x); !keepdim || merged < 0 || !llvm::is_contained(axes, merged))
    return y;
  llvm::SmallVector<int64_t> sizes(Call::shape(y)); // one dimension of size 1 replaces merged rows
  sizes.erase(sizes.begin() + Call::mergedAt(x));
  return call.reshape(y, sizes);
}

inline Tensor compared(Call &call, ir::Predicate predicate, const Tensor &a, const Tensor &b) {
  auto attribute = ir::PredicateAttr::get(&call.graph.context, predicate);
  return call.emit<ir::CompareOp>({a, b}, call.attribute("predicate", attribute));
}

/// Converts f16 and bf16 to f32 for sums of squares, powers of e and counts, which may exceed their range. Other types
/// are unchanged.
inline Tensor widened(Call &call, const Tensor &x) {
  bool isHalf = x.dtype() == DType::f16 || x.dtype() == DType::bf16;
  return isHalf ? call.cast(x, DType::f32) : x;
}

/// The square root of sums of squares. Its gradient at 0 is 0. The gradient of `sqrt` is infinite there and would be
/// multiplied by the zero gradient of the squares.
inline Tensor rootOfSquares(Call &call, const Tensor &squares) {
  Tensor zero = call.literal(0.0, squares), isNone = compared(call, ir::Predicate::eq, squares, zero);
  Tensor root = call.emit<ir::SqrtOp>({call.emit<ir::WhereOp>({isNone, call.literal(1.0, squares), squares})});
  return call.emit<ir::WhereOp>({isNone, zero, root});
}

/// Reverses the order of numbers: the largest result is from the smallest x. Integers use the complement, because the
/// smallest integer has no negative.
inline Tensor turned(Call &call, const Tensor &x) {
  if (is_float(x.dtype()))
    return call.emit<ir::NegOp>({x});
  return call.emit<ir::SubOp>({call.literal(x.dtype() == DType::u8 ? 255 : -1, x), x});
}

/// Fails unless `dtype` is valid for indices along `size` elements: i32 within its range, or i64.
void requireIndices(const Call &call, int64_t size, DType dtype);

} // namespace sluice::detail
