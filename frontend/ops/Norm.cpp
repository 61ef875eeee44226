// Normalization within a row: layer norm, group norm and RMS norm.
#include "frontend/graph/Call.h"

#include <limits>

using namespace mlir;

namespace sluice {

using detail::Call;
using detail::Rows;

/// Weight and bias of one shape. An absent vector becomes ones or zeros; scalars if both are absent.
struct NormVectors {
  Tensor weight, bias;

  NormVectors(Call &call, const Tensor &x, const Tensor &weight, const Tensor &bias) {
    for (const Tensor &vector : Call::present({weight, bias}))
      call.requireSameDType(x, vector);
    RankedTensorType type =
        weight || bias ? Call::type(weight ? weight : bias) : RankedTensorType::get({}, Call::type(x).getElementType());
    this->weight = weight ? weight : call.full(1.0, type);
    this->bias = bias ? bias : call.full(0.0, type);
  }
};

static Tensor normalized(Call &call, const Tensor &x, const NormVectors &vectors, int64_t axis, ArrayRef<int64_t> dims,
                         double eps, bool rms) {
  if (!(eps > 0))
    call.fail("eps is positive, not " + std::to_string(eps));
  SmallVector<NamedAttribute> attributes{call.integer("axis", axis), call.list("dims", dims), call.real("eps", eps)};
  if (rms)
    attributes.push_back(call.unit("rms"));
  return call.emit<ir::NormalizeOp>({x, vectors.weight, vectors.bias}, attributes);
}

/// Throws unless the dimensions of x from `axis` on belong to one row.
static void requireElements(const Call &call, const Tensor &x, int64_t axis) {
  if (llvm::is_contained(Call::shape(x).drop_front(axis), ShapedType::kDynamic) ||
      (axis > 0 && axis - 1 == Call::mergedAt(x)))
    call.fail("cannot normalize over the batch; use batch_norm");
}

/// The first normalized dimension of x: its dimensions from there on are `shape`.
static int64_t normalizedAxis(const Call &call, const Tensor &x, const Shape &shape) {
  int64_t axis = Call::rank(x) - int64_t(shape.size());
  if (shape.size() == 0)
    call.fail("normalized_shape needs at least one dimension");
  if (axis >= 0)
    requireElements(call, x, axis);
  bool matches = axis >= 0;
  for (size_t i = 0; i < shape.size() && matches; ++i)
    matches = call.graph.sizeOf(shape[i]) == Call::shape(x)[axis + int64_t(i)];
  if (!matches)
    call.fail("the last dimensions are not normalized_shape " + shape.str());
  return axis;
}

static Tensor normalizedLast(Call &call, const Tensor &x, const Shape &shape, const Tensor &weight, const Tensor &bias,
                             double eps, bool rms) {
  call.requireFloat(x);
  int64_t axis = normalizedAxis(call, x, shape), rank = Call::rank(x);
  for (const Tensor &vector : Call::present({weight, bias}))
    if (Call::shape(vector) != Call::shape(x).drop_front(axis))
      call.fail("weight and bias are " + shape.str() + ", not " + call.print(vector));
  auto dims = llvm::to_vector(llvm::seq<int64_t>(weight || bias ? axis : rank, rank));
  return normalized(call, x, {call, x, weight, bias}, axis, dims, eps, rms);
}

Tensor layer_norm(Arg x, Shape normalized_shape, const Tensor &weight, const Tensor &bias, double eps) {
  Call call("layer_norm", Call::present({x.tensor, weight, bias}), x.where, Rows::merged);
  return normalizedLast(call, x.tensor, normalized_shape, weight, bias, eps, /*rms=*/false);
}

/// The distance from 1 to the next number of a dtype.
static double epsilonOf(DType dtype) {
  switch (dtype) {
  case DType::f64:
    return std::numeric_limits<double>::epsilon();
  case DType::f16:
    return 0x1p-10;
  case DType::bf16:
    return 0x1p-7;
  default:
    return std::numeric_limits<float>::epsilon();
  }
}

Tensor rms_norm(Arg x, Shape normalized_shape, const Tensor &weight, std::optional<double> eps) {
  Call call("rms_norm", Call::present({x.tensor, weight}), x.where, Rows::merged);
  return normalizedLast(call, x.tensor, normalized_shape, weight, {}, eps.value_or(epsilonOf(x.tensor.dtype())),
                        /*rms=*/true);
}

// Splits the channels into two dimensions, groups and channels per group, and flattens the image: [N, groups, C /
// groups, ...].
Tensor group_norm(Arg x, std::int64_t num_groups, const Tensor &weight, const Tensor &bias, double eps) {
  Call call("group_norm", Call::present({x.tensor, weight, bias}), x.where);
  call.requireFloat(x.tensor);
  ArrayRef<int64_t> shape = Call::shape(x.tensor);
  if (shape.size() < 2)
    call.fail("the input has " + std::to_string(shape.size()) + " dimensions, not at least 2");
  requireElements(call, x.tensor, 1);
  int64_t channels = shape[1];
  if (num_groups <= 0 || channels % num_groups != 0)
    call.fail(std::to_string(num_groups) + " groups do not divide " + std::to_string(channels) + " channels");
  for (const Tensor &vector : Call::present({weight, bias}))
    if (Call::shape(vector) != ArrayRef(channels))
      call.fail("weight and bias are [" + std::to_string(channels) + "], not " + call.print(vector));
  SmallVector<int64_t> groups{num_groups, channels / num_groups}, sizes{shape[0]}, dims;
  llvm::append_range(sizes, groups);
  if (shape.size() > 2)
    sizes.push_back(detail::product(shape.drop_front(2)));
  if (weight || bias)
    dims = {1, 2};
  auto inGroups = [&](const Tensor &vector) { return vector ? call.reshape(vector, groups) : vector; };
  NormVectors vectors{call, x.tensor, inGroups(weight), inGroups(bias)};
  Tensor y = normalized(call, call.reshape(x.tensor, sizes), vectors, 2, dims, eps, /*rms=*/false);
  return call.reshape(y, shape);
}

} // namespace sluice
