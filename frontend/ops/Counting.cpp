// Functions of element indices only: counts and triangles.
#include "frontend/graph/Call.h"

#include <cmath>

using namespace mlir;

namespace sluice {

using detail::Access;
using detail::Call;
using detail::GraphImpl;

//===- counts -----------------------------------------------------------------------------------------------------===//

Tensor Graph::arange(double end, DType dtype, Where where) { return arange(0, end, 1, dtype, where); }

Tensor Graph::arange(double start, double end, double step, DType dtype, Where where) {
  if (!is_float(dtype) && dtype != DType::i32 && dtype != DType::i64)
    throw Error(std::string("arange: counts in floats, i32 or i64, not in ") + to_string(dtype), where);
  double count = std::ceil((end - start) / step);
  if (!(count >= 1 && std::isfinite(count)))
    throw Error("arange: there is no number from " + std::to_string(start) + " to below " + std::to_string(end) +
                    " in steps of " + std::to_string(step),
                where);
  RankedTensorType type = graph->typeOf("arange", dtype, {int64_t(std::min(count, 0x1p62))}, where);
  for (double number : {start, step, start + step * (count - 1)})
    if (!ir::holds(type.getElementType(), number))
      throw Error("arange: the number " + std::to_string(number) + " is not a value of " + to_string(dtype), where);
  OpBuilder &builder = graph->builder;
  auto counted =
      builder.create<ir::IotaOp>(graph->toLocation(where), builder.getF64FloatAttr(start),
                                 builder.getF64FloatAttr(step), builder.getI64IntegerAttr(0), TypeAttr::get(type));
  ir::setDeviceAndPin(counted, graph->scopeDevice(), {});
  return Access::tensor(*graph, counted);
}

Tensor Graph::eye(std::int64_t n, std::optional<std::int64_t> m, DType dtype, Where where) {
  int64_t columns = m.value_or(n);
  if (n < 1 || columns < 1)
    throw Error("eye: the sizes must be at least 1: " + std::to_string(n) + " and " + std::to_string(columns), where);
  Tensor row = arange(double(n), i64, where), column = arange(double(columns), i64, where);
  Tensor isDiagonal = eq(Arg(row.unsqueeze(1, where), where), Arg(column, where));
  return cast(Arg(isDiagonal, where), dtype);
}

// As in PyTorch, the second half counts back from `end`, so that the last element is exactly `end`.
Tensor Graph::linspace(double start, double end, std::int64_t steps, DType dtype, Where where) {
  if (!is_float(dtype))
    throw Error(std::string("linspace: the dtype must be a float, not ") + to_string(dtype), where);
  if (steps < 1)
    throw Error("linspace: the number of steps must be at least 1: " + std::to_string(steps), where);
  double step = steps == 1 ? 0 : (end - start) / double(steps - 1);
  for (double number : {start, end, step})
    if (!std::isfinite(number) || !ir::holds(graph->elementType(dtype), number))
      throw Error(std::string("linspace: ") + to_string(dtype) + " cannot represent " + Call::print(number), where);
  DType wide = dtype == f64 ? f64 : f32;
  auto at = [&](const Tensor &x) { return Arg(x, where); };
  Tensor number = arange(double(steps), wide, where), left = double(steps - 1) - at(number);
  Tensor isFirstHalf = at(number) < double(steps) / 2;
  Tensor up = at(at(number) * step) + start, down = end - at(at(left) * step);
  return cast(at(sluice::where(at(isFirstHalf), at(up), at(down))), dtype);
}

//===- triangles --------------------------------------------------------------------------------------------------===//

/// x where the second to last index + diagonal and the last index satisfy the predicate; 0 elsewhere.
static Tensor triangle(const char *name, const Arg &x, int64_t diagonal, ir::Predicate predicate) {
  Call call(name, x);
  int64_t rank = Call::rank(x.tensor);
  if (rank < 2)
    call.fail("the input has " + std::to_string(rank) + " dimensions, not at least 2");
  if (llvm::is_contained(Call::shape(x.tensor).take_back(2), ShapedType::kDynamic))
    call.fail("would count the rows of a call, which stand for themselves");
  // Up to this size, i32 holds the sum of an index and any diagonal that affects the result.
  constexpr int64_t mostInI32 = std::numeric_limits<int32_t>::max() / 2;
  ArrayRef<int64_t> sizes = Call::shape(x.tensor).take_back(2);
  int64_t most = std::max(sizes[0], sizes[1]);
  DType dtype = most > mostInI32 ? DType::i64 : DType::i32;
  auto along = [&](int64_t axis, int64_t start) {
    return call.iota(Call::type(x.tensor).clone(call.graph.elementType(dtype)), axis, double(start), 1);
  };
  Tensor row = along(rank - 2, std::clamp(diagonal, -most, most)), column = along(rank - 1, 0);
  Tensor isKept = call.emit<ir::CompareOp>(
      {row, column}, call.attribute("predicate", ir::PredicateAttr::get(&call.graph.context, predicate)));
  return call.emit<ir::WhereOp>({isKept, x.tensor, call.literal(0.0, x.tensor)});
}

Tensor tril(Arg x, std::int64_t diagonal) { return triangle("tril", x, diagonal, ir::Predicate::ge); }
Tensor triu(Arg x, std::int64_t diagonal) { return triangle("triu", x, diagonal, ir::Predicate::le); }

} // namespace sluice
