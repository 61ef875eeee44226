// Random numbers from explicit keys.
#include "sluice/random.h"
#include "frontend/graph/Call.h"

using namespace mlir;

namespace sluice::random {

using detail::Call;

Tensor key(Graph &graph, std::uint64_t seed, std::source_location where) {
  return graph.constant(std::vector<int32_t>{int32_t(seed >> 32), int32_t(seed)}, {2}, where);
}

/// The attributes `stream` and `type` of a draw of static shape.
static SmallVector<NamedAttribute> attributesOf(Call &call, const Arg &key, const Shape &shape, DType dtype) {
  RankedTensorType type = call.graph.typeOf("the result", dtype, shape, key.where);
  if (!type.hasStaticShape())
    call.fail("the shape " + shape.str() + " must be static: it has a dimension without a size");
  return {call.integer("stream", 0), call.attribute("type", TypeAttr::get(type))};
}

static Tensor drawBits(Call &call, const Arg &key, const Shape &shape) {
  return call.emit<ir::RandomBitsOp>({key.tensor}, attributesOf(call, key, shape, i32));
}

/// f64 numbers use 64 bits each. With --dtype f64, numbers of other dtypes become f64 but keep their bits.
template <class Op>
static Tensor draw(const char *name, const Arg &key, const Shape &shape, double a, double b, DType dtype) {
  Call call(name, key);
  SmallVector<NamedAttribute> attributes = attributesOf(call, key, shape, dtype);
  attributes.append({call.real("a", a), call.real("b", b)});
  if (dtype == f64)
    attributes.push_back(call.unit("wide"));
  return call.emit<Op>({key.tensor}, attributes);
}

Tensor split(Arg key, std::int64_t n) {
  Call call("random::split", key);
  if (n < 1 || n > (int64_t(1) << 29)) // 2 n numbers are drawn at once
    call.fail("the number of keys must be from 1 to 2^29: " + std::to_string(n));
  return call.reshape(drawBits(call, key, {2 * n}), {n, 2});
}

Tensor bits(Arg key, Shape shape) {
  Call call("random::bits", key);
  return drawBits(call, key, shape);
}

Tensor uniform(Arg key, Shape shape, double low, double high, DType dtype) {
  return draw<ir::UniformOp>("random::uniform", key, shape, low, high, dtype);
}

Tensor normal(Arg key, Shape shape, double mean, double std, DType dtype) {
  return draw<ir::NormalOp>("random::normal", key, shape, mean, std, dtype);
}

} // namespace sluice::random
