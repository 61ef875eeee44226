// Slices at indices or at runtime positions.
#include "frontend/graph/Call.h"

using namespace mlir;

namespace sluice {

using detail::Call;
using detail::Rows;

static Tensor gathered(Call &call, const Tensor &x, int64_t axis, const Tensor &index) {
  if (index.dtype() != DType::i32 && index.dtype() != DType::i64)
    call.fail(std::string("indices are i32 or i64, not ") + to_string(index.dtype()));
  bool hasBatch = llvm::any_of(Call::shape(x), ShapedType::isDynamic);
  if (ShapedType::isDynamic(Call::shape(x)[axis]))
    call.fail("cannot choose rows of the batch, whose size is only known at the call");
  if (hasBatch && llvm::any_of(Call::shape(index), ShapedType::isDynamic))
    call.fail("both have the batch: each row would choose from all");
  return call.emit<ir::GatherOp>({x, index}, call.integer("axis", axis));
}

Tensor index_select(Arg x, std::int64_t dim, const Tensor &index) {
  Call call("index_select", x, Arg(index, x.where), Rows::merged);
  return gathered(call, x.tensor, call.axis(x.tensor, dim), index);
}

/// The dimension of a position that is known only at run time.
static int64_t axisAt(const Call &call, const Tensor &x, int64_t dim, const Tensor &start) {
  if ((start.dtype() != DType::i32 && start.dtype() != DType::i64) || Call::rank(start) != 0)
    call.fail(std::string("begins at a scalar of i32 or i64, not at ") + to_string(start.dtype()) + call.print(start));
  int64_t axis = call.axis(x, dim);
  if (ShapedType::isDynamic(Call::shape(x)[axis]))
    call.fail("cannot go along the batch");
  return axis;
}

Tensor narrow(Arg x, std::int64_t dim, const Tensor &start, std::int64_t length) {
  Call call("narrow", x, Arg(start, x.where));
  int64_t axis = axisAt(call, x.tensor, dim, start);
  return call.emit<ir::DynamicSliceOp>({x.tensor, start}, {call.integer("axis", axis), call.integer("size", length)});
}

Tensor slice_scatter(Arg x, const Tensor &source, std::int64_t dim, const Tensor &start) {
  Call call("slice_scatter", {x.tensor, source, start}, x.where);
  int64_t axis = axisAt(call, x.tensor, dim, start);
  return call.emit<ir::DynamicUpdateSliceOp>({x.tensor, source, start}, call.integer("axis", axis));
}

/// y without a gradient where the index is the padding index.
static Tensor withoutGradientAt(Call &call, const Tensor &y, const Tensor &index, int64_t padding) {
  auto equal = ir::PredicateAttr::get(&call.graph.context, ir::Predicate::eq);
  Tensor isPadding =
      call.emit<ir::CompareOp>({index, call.literal(double(padding), index)}, call.attribute("predicate", equal));
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, Call::rank(index)));
  Tensor inAll = call.expand(isPadding, dims, Call::shape(y));
  return call.emit<ir::WhereOp>({inAll, call.emit<ir::StopGradientOp>({y}), y});
}

Tensor embedding(Arg index, const Tensor &weight, std::optional<std::int64_t> padding_idx) {
  Call call("embedding", index, Arg(weight, index.where), Rows::merged);
  call.requireFloat(weight);
  call.requireRank("the weight", weight, 2);
  int64_t rows = Call::shape(weight)[0];
  Tensor y = gathered(call, weight, 0, index.tensor);
  if (!padding_idx)
    return y;
  if (*padding_idx < -rows || *padding_idx >= rows)
    call.fail("padding_idx " + std::to_string(*padding_idx) + " is no row of " + call.print(weight));
  return withoutGradientAt(call, y, index.tensor, *padding_idx < 0 ? *padding_idx + rows : *padding_idx);
}

Tensor one_hot(Arg label, std::int64_t classes, DType dtype) {
  Call call("one_hot", label, Rows::merged);
  if (label.tensor.dtype() != DType::i32 && label.tensor.dtype() != DType::i64)
    call.fail(std::string("labels are i32 or i64, not ") + to_string(label.tensor.dtype()));
  if (classes <= 0)
    call.fail("the number of classes is positive, not " + std::to_string(classes));
  auto to = TypeAttr::get(call.graph.elementType(dtype));
  return call.emit<ir::OneHotOp>({label.tensor}, {call.integer("classes", classes), call.attribute("to", to)});
}

} // namespace sluice
