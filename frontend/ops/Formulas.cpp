// Functions composed of other functions.
#include "sluice/formulas.h"
#include "frontend/ops/Reduce.h"

#include <cmath>

using namespace mlir;

namespace sluice {

using detail::Call;
using detail::Rows;

namespace {

/// Converts tensors to operands on the line of a call.
struct Line {
  std::source_location where;
  Arg operator()(const Tensor &x) const { return {x, where}; }
};

} // namespace

//===- elementwise ------------------------------------------------------------------------------------------------===//

Tensor prelu(Arg x, const Tensor &weight) {
  Call call("prelu", x, Arg(weight, x.where), Rows::merged);
  call.requireFloat(x.tensor);
  call.requireSameDType(x.tensor, weight);
  call.requireRank("the weight", weight, 1);
  Tensor slope = weight;
  if (int64_t count = Call::shape(weight)[0]; count != 1) {
    int64_t axis = call.axis(x.tensor, 1);
    if (Call::shape(x.tensor)[axis] != count)
      call.fail("the weight has " + std::to_string(count) + " elements for " + call.print(Call::shape(x.tensor)[axis]) +
                " channels");
    slope = call.seen(call.expand(weight, {axis}, Call::shape(x.tensor)), detail::Access::isMerged(x.tensor));
  }
  Line at{x.where};
  return where(at(x > 0.0), x, at(x * at(slope)));
}

Tensor masked_fill(Arg x, const Tensor &mask, double value) { return where(Arg(mask, x.where), value, x); }

static Tensor closeAs(Call &call, const Arg &a, const Tensor &b, double rtol, double atol, bool equalNan) {
  call.requireSameDType(a.tensor, b);
  if (a.tensor.dtype() == DType::boolean)
    call.fail("works on numbers, not bool; convert with .to(f32)");
  if (!(rtol >= 0 && atol >= 0))
    call.fail("the tolerances must not be negative: rtol is " + Call::print(rtol) + ", atol is " + Call::print(atol));
  Line at{a.where};
  auto number = [&](const Tensor &x) { return at(is_float(x.dtype()) ? detail::widened(call, x) : call.cast(x, f64)); };
  Arg left = number(a.tensor), right = number(b);
  Arg difference = at(abs(at(left - right)));
  Tensor isNear = at(difference <= at(at(abs(right)) * rtol + atol)) & at(logical_not(at(isinf(difference))));
  Tensor isClose = at(a == at(b)) | at(isNear);
  return equalNan ? at(isClose) | at(at(isnan(left)) & at(isnan(right))) : isClose;
}

Tensor isclose(Arg a, const Tensor &b, double rtol, double atol, bool equal_nan) {
  Call call("isclose", a, Arg(b, a.where), Rows::merged);
  return closeAs(call, a, b, rtol, atol, equal_nan);
}

//===- reductions -------------------------------------------------------------------------------------------------===//

Tensor allclose(Arg a, const Tensor &b, double rtol, double atol, bool equal_nan) {
  Call call("allclose", a, Arg(b, a.where), Rows::merged);
  return all(Arg(closeAs(call, a, b, rtol, atol, equal_nan), a.where));
}

Tensor argmin(Arg x, std::int64_t dim, bool keepdim, DType dtype) {
  Call call("argmin", x, Rows::merged);
  return argmax(Arg(detail::turned(call, x.tensor), x.where), dim, keepdim, dtype);
}

/// x must not be f16 or bf16.
static Tensor normOf(Call &call, const Arg &x, double p, const Axes &dim, bool keepdim) {
  Line at{x.where};
  if (p == 1)
    return sum(at(abs(x)), dim, keepdim);
  if (std::isinf(p) && p > 0)
    return max(at(abs(x)), dim, keepdim);
  if (p != 2)
    call.fail("p is 1, 2 or infinity, not " + Call::print(p));
  return detail::rootOfSquares(call, sum(at(square(x)), dim, keepdim));
}

Tensor norm(Arg x, double p, Axes dim, bool keepdim) {
  Call call("norm", x, Rows::merged);
  call.requireFloat(x.tensor);
  Arg wide(detail::widened(call, x.tensor), x.where);
  return call.cast(normOf(call, wide, p, dim, keepdim), x.tensor.dtype());
}

Tensor normalize(Arg x, double p, std::int64_t dim, double eps) {
  Call call("normalize", x, Rows::merged);
  call.requireFloat(x.tensor);
  Line at{x.where};
  Arg wide = at(detail::widened(call, x.tensor));
  return call.cast(wide / at(clip(at(norm(wide, p, dim, true)), eps)), x.tensor.dtype());
}

//===- shape ------------------------------------------------------------------------------------------------------===//

// [2, 3] four times along the last dimension: [2, 1, 3], [2, 4, 3], [2, 12].
static Tensor repeated(Call &call, const Tensor &x, ArrayRef<int64_t> repeats) {
  ArrayRef<int64_t> from = Call::shape(x);
  if (repeats.size() < from.size())
    call.fail("names " + std::to_string(repeats.size()) + " dimensions of " + std::to_string(from.size()));
  SmallVector<int64_t> apart, dims, sizes;
  size_t more = repeats.size() - from.size();
  for (auto [i, times] : llvm::enumerate(repeats)) {
    int64_t size = i < more ? 1 : from[i - more], repeated;
    if (times < 1)
      call.fail("a dimension is there once or more, not " + std::to_string(times) + " times");
    if (ShapedType::isDynamic(size) && times != 1)
      call.fail("would repeat the rows of a call, which stand for themselves");
    if (!ShapedType::isDynamic(size) && __builtin_mul_overflow(size, times, &repeated))
      call.fail("the result is too large");
    if (times != 1)
      apart.push_back(times);
    if (i >= more) {
      dims.push_back(int64_t(apart.size()));
      apart.push_back(size);
    } else if (times == 1) {
      apart.push_back(1);
    }
    sizes.push_back(ShapedType::isDynamic(size) ? size : repeated);
  }
  if (ArrayRef(apart) == from)
    return x;
  return call.reshape(call.expand(x, dims, apart), sizes);
}

Tensor repeat(Arg x, std::vector<std::int64_t> repeats) {
  Call call("repeat", x);
  return repeated(call, x.tensor, repeats);
}

Tensor tile(Arg x, std::vector<std::int64_t> dims) {
  Call call("tile", x);
  if (int64_t missing = Call::rank(x.tensor) - int64_t(dims.size()); missing > 0)
    dims.insert(dims.begin(), size_t(missing), 1);
  return repeated(call, x.tensor, dims);
}

/// A dimension that is not the batch.
static int64_t movableAxis(const Call &call, const Tensor &x, int64_t dim) {
  int64_t axis = call.axis(x, dim);
  if (ShapedType::isDynamic(Call::shape(x)[axis]))
    call.fail("would move the rows of a call, which stand for themselves");
  return axis;
}

/// The vector x on a diagonal of a matrix of zeros.
static Tensor matrixOf(Call &call, const Arg &x, int64_t diagonal) {
  constexpr int64_t most = int64_t(1) << 20; // of rows, because a shape has at most 2^40 elements
  int64_t size =
      Call::shape(x.tensor)[movableAxis(call, x.tensor, 0)] + std::clamp(std::abs(diagonal), int64_t(0), most);
  if (size > most)
    call.fail("a matrix with diagonal " + std::to_string(diagonal) + " has more than " + std::to_string(most) +
              " rows");
  Line at{x.where};
  Tensor row = pad(x, {0, std::max<int64_t>(-diagonal, 0)}), column = pad(x, {0, std::max<int64_t>(diagonal, 0)});
  Tensor values = diagonal < 0 ? row : at(unsqueeze(at(column), 1)).tensor;
  auto type = RankedTensorType::get({size, size}, call.graph.elementType(i32));
  Tensor isOn = at(call.iota(type, 0, double(diagonal), 1)) == at(call.iota(type, 1, 0, 1));
  return where(at(isOn), at(values), 0.0);
}

/// A diagonal of the row-major matrix x [n, m]: every (m + 1)-th element.
static Tensor diagonalOf(Call &call, const Arg &x, int64_t diagonal) {
  int64_t rows = Call::shape(x.tensor)[movableAxis(call, x.tensor, 0)];
  int64_t columns = Call::shape(x.tensor)[movableAxis(call, x.tensor, 1)];
  if (diagonal <= -rows || diagonal >= columns)
    call.fail("the matrix has no diagonal " + std::to_string(diagonal) + ": diagonals are from " +
              std::to_string(1 - rows) + " to " + std::to_string(columns - 1));
  int64_t row = std::max<int64_t>(-diagonal, 0), column = std::max<int64_t>(diagonal, 0);
  int64_t first = row * columns + column, count = std::min(rows - row, columns - column);
  Tensor flat = call.reshape(x.tensor, {rows * columns});
  return slice(Arg(flat, x.where), 0, first, first + (count - 1) * (columns + 1) + 1, columns + 1);
}

Tensor diag(Arg x, std::int64_t diagonal) {
  Call call("diag", x);
  switch (Call::rank(x.tensor)) {
  case 1:
    return matrixOf(call, x, diagonal);
  case 2:
    return diagonalOf(call, x, diagonal);
  default:
    call.fail("the input has " + std::to_string(Call::rank(x.tensor)) + " dimensions, not 1 or 2");
  }
}

Tensor trace(Arg x) {
  Call call("trace", x);
  call.requireRank("the input", x.tensor, 2);
  return sum(Arg(diagonalOf(call, x, 0), x.where));
}

std::vector<Tensor> meshgrid(const std::vector<Tensor> &tensors, Indexing indexing, std::source_location where) {
  Call call("meshgrid", tensors, where);
  auto axisOf = [&](size_t i) { return int64_t(indexing == Indexing::xy && tensors.size() > 1 && i < 2 ? 1 - i : i); };
  SmallVector<int64_t> shape(tensors.size(), 1);
  for (auto [i, tensor] : llvm::enumerate(tensors)) {
    call.requireSameDType(tensors.front(), tensor);
    if (Call::rank(tensor) > 1)
      call.fail("each tensor is a vector or a scalar, not " + call.print(tensor));
    if (Call::rank(tensor) == 1)
      shape[size_t(axisOf(i))] = Call::shape(tensor)[movableAxis(call, tensor, 0)];
  }
  std::vector<Tensor> grids;
  for (auto [i, tensor] : llvm::enumerate(tensors)) {
    SmallVector<int64_t> dims;
    if (Call::rank(tensor) == 1)
      dims.push_back(axisOf(i));
    grids.push_back(call.expand(tensor, dims, shape));
  }
  return grids;
}

/// The elements along an axis in reverse order.
static Tensor backwards(Call &call, const Tensor &x, int64_t axis) {
  int64_t size = Call::shape(x)[axis];
  auto type = RankedTensorType::get({size}, call.graph.elementType(DType::i32));
  return call.emit<ir::GatherOp>({x, call.iota(type, 0, double(size - 1), -1)}, call.integer("axis", axis));
}

Tensor flip(Arg x, Axes dims) {
  Call call("flip", x, Rows::merged);
  Tensor y = x.tensor;
  for (int64_t dim : dims.values())
    y = backwards(call, y, movableAxis(call, x.tensor, dim));
  return y;
}

Tensor roll(Arg x, std::int64_t shifts, std::int64_t dim) {
  Call call("roll", x, Rows::merged);
  int64_t size = Call::shape(x.tensor)[movableAxis(call, x.tensor, dim)], first = ((-shifts) % size + size) % size;
  return first == 0 ? x.tensor : cat({slice(x, dim, first), slice(x, dim, 0, first)}, dim, x.where);
}

/// The elements before and after x along a dimension.
static std::pair<Tensor, Tensor> besides(const Line &at, const Tensor &x, int64_t dim, int64_t before, int64_t after,
                                         PadMode mode) {
  int64_t size = x.size(dim).size;
  Tensor first, last;
  auto part = [&](int64_t start, int64_t count) { return count ? slice(at(x), dim, start, start + count) : Tensor(); };
  switch (mode) {
  case PadMode::reflect:
    first = part(1, before), last = part(size - 1 - after, after);
    return {first ? flip(at(first), dim) : first, last ? flip(at(last), dim) : last};
  case PadMode::circular:
    return {part(size - before, before), part(0, after)};
  case PadMode::replicate:
    break;
  }
  auto times = [&](int64_t start, int64_t count) {
    std::vector<int64_t> repeats(size_t(x.dim()), 1);
    repeats[size_t(dim)] = count;
    return count ? repeat(at(part(start, 1)), repeats) : Tensor();
  };
  return {times(0, before), times(size - 1, after)};
}

Tensor pad(Arg x, std::vector<std::int64_t> pad, PadMode mode) {
  Call call("pad", x);
  int64_t rank = Call::rank(x.tensor), pairs = int64_t(pad.size()) / 2;
  if (pad.size() % 2 != 0 || pairs > rank)
    call.fail("takes a pair (before, after) for each dimension from the last; got " + std::to_string(pad.size()) +
              " numbers for " + std::to_string(rank) + " dimensions");
  Tensor y = x.tensor;
  for (int64_t i = 0; i < pairs; ++i) {
    int64_t before = pad[2 * i], after = pad[2 * i + 1], dim = rank - 1 - i;
    if (before == 0 && after == 0)
      continue;
    int64_t size = Call::shape(x.tensor)[movableAxis(call, x.tensor, dim)];
    int64_t most = mode == PadMode::reflect ? size - 1 : mode == PadMode::circular ? size : int64_t(1) << 31;
    if (std::min(before, after) < 0 || std::max(before, after) > most)
      call.fail("padding is from 0 to " + std::to_string(most) + " in a dimension of " + std::to_string(size) +
                ", not " + std::to_string(before) + " and " + std::to_string(after));
    auto [first, last] = besides({x.where}, y, dim, before, after, mode);
    SmallVector<Tensor> parts = Call::present({first, y, last});
    y = cat({parts.begin(), parts.end()}, dim, x.where);
  }
  return y;
}

/// The shape of x; fails unless x is a batch of images. Used by both shuffles.
static ArrayRef<int64_t> shuffledImage(const Call &call, const Tensor &x, int64_t factor) {
  call.requireRank("the input", x, 4);
  if (factor < 1)
    call.fail("the factor is positive, not " + std::to_string(factor));
  if (llvm::is_contained(Call::shape(x).drop_front(), ShapedType::kDynamic))
    call.fail("the batch is the first dimension of images");
  return Call::shape(x);
}

Tensor pixel_shuffle(Arg x, std::int64_t upscale_factor) {
  Call call("pixel_shuffle", x);
  ArrayRef<int64_t> image = shuffledImage(call, x.tensor, upscale_factor);
  int64_t r = upscale_factor, channels = image[1] / r / r;
  if (channels * r * r != image[1])
    call.fail(std::to_string(image[1]) + " channels are no multiple of the square of " + std::to_string(r));
  Tensor apart = call.reshape(x.tensor, {image[0], channels, r, r, image[2], image[3]});
  return call.reshape(call.permute(apart, {0, 1, 4, 2, 5, 3}), {image[0], channels, image[2] * r, image[3] * r});
}

Tensor pixel_unshuffle(Arg x, std::int64_t downscale_factor) {
  Call call("pixel_unshuffle", x);
  ArrayRef<int64_t> image = shuffledImage(call, x.tensor, downscale_factor);
  int64_t r = downscale_factor, height = image[2] / r, width = image[3] / r;
  if (height * r != image[2] || width * r != image[3])
    call.fail("the image's sides are no multiples of " + std::to_string(r));
  Tensor apart = call.reshape(x.tensor, {image[0], image[1], height, r, width, r});
  return call.reshape(call.permute(apart, {0, 1, 3, 5, 2, 4}), {image[0], image[1] * r * r, height, width});
}

//===- indices ----------------------------------------------------------------------------------------------------===//

/// x plus an op's result on other elements, in x's shape.
template <class Op>
static Tensor addedAt(const char *name, const Arg &x, int64_t dim, const Tensor &index, const Tensor &added) {
  Call call(name, {x.tensor, index, added}, x.where);
  call.requireFloat(x.tensor);
  call.requireSameDType(x.tensor, added);
  if (index.dtype() != DType::i32 && index.dtype() != DType::i64)
    call.fail(std::string("indices are i32 or i64, not ") + to_string(index.dtype()));
  int64_t axis = movableAxis(call, x.tensor, dim);
  Tensor y =
      call.emit<Op>({added, index}, {call.integer("axis", axis), call.integer("size", Call::shape(x.tensor)[axis])});
  if (Call::shape(y) != Call::shape(x.tensor))
    call.fail("the values to add have shape " + call.print(y) + ", not " + call.print(x.tensor));
  return call.emit<ir::AddOp>({x.tensor, y});
}

Tensor scatter_add(Arg x, std::int64_t dim, const Tensor &index, const Tensor &src) {
  return addedAt<ir::AddAlongOp>("scatter_add", x, dim, index, src);
}
Tensor index_add(Arg x, std::int64_t dim, const Tensor &index, const Tensor &source) {
  return addedAt<ir::ScatterAddOp>("index_add", x, dim, index, source);
}

/// [..., T, D / 2], of x's dtype. x must not be f16 or bf16, which represent few positions. The table is f64 even in
/// f32 programs, because --dtype f64 promotes such programs.
static Tensor anglesOf(Call &call, const Line &at, const Tensor &x, int64_t pairs, const RopeOptions &options) {
  Type element = Call::type(x).getElementType();
  SmallVector<double> speeds;
  for (int64_t i = 0; i < pairs; ++i)
    speeds.push_back(std::pow(options.base, -double(i) / double(pairs)));
  Tensor speed = call.cast(call.vector(speeds, call.graph.elementType(f64)), x.dtype());
  Tensor position = options.position
                        ? call.cast(options.position, x.dtype())
                        : call.iota(RankedTensorType::get(Call::shape(x).take_back(2).front(), element), 0, 0, 1);
  return at(unsqueeze(at(position), -1)) * at(speed);
}

Tensor rope(Arg x, RopeOptions options) {
  Call call("rope", Call::present({x.tensor, options.position}), x.where);
  call.requireFloat(x.tensor);
  if (Call::rank(x.tensor) < 2 || llvm::is_contained(Call::shape(x.tensor).take_back(2), ShapedType::kDynamic))
    call.fail("the last two dimensions are positions and elements, and neither is the batch");
  int64_t size = Call::shape(x.tensor).back(), pairs = size / 2;
  if (size % 2 != 0)
    call.fail("elements are turned in pairs, and there are " + std::to_string(size));
  if (DType dtype = x.tensor.dtype(); dtype == f16 || dtype == bf16)
    return call.cast(rope(Arg(call.cast(x.tensor, f32), x.where), options), dtype);
  Line at{x.where};
  Tensor angles = anglesOf(call, at, x.tensor, pairs, options), cosine = cos(at(angles)), sine = sin(at(angles));
  SmallVector<int64_t> shape(Call::shape(x.tensor)), inPairs(shape);
  inPairs.back() = pairs;
  inPairs.push_back(2);
  auto element = [&](int64_t i) {
    return options.interleaved ? select(at(call.reshape(x.tensor, inPairs)), -1, i)
                               : slice(x, -1, i * pairs, (i + 1) * pairs);
  };
  Tensor a = element(0), b = element(1);
  std::vector<Tensor> turned{at(at(a) * at(cosine)) - at(at(b) * at(sine)),
                             at(at(b) * at(cosine)) + at(at(a) * at(sine))};
  return options.interleaved ? call.reshape(stack(turned, -1, x.where), shape) : cat(turned, -1, x.where);
}

//===- norms ------------------------------------------------------------------------------------------------------===//

Tensor instance_norm(Arg x, const Tensor &weight, const Tensor &bias, double eps) {
  Call call("instance_norm", Call::present({x.tensor, weight, bias}), x.where);
  if (Call::rank(x.tensor) < 3)
    call.fail("the input has " + std::to_string(Call::rank(x.tensor)) + " dimensions, not at least 3");
  return group_norm(x, Call::shape(x.tensor)[1], weight, bias, eps);
}

Tensor local_response_norm(Arg x, std::int64_t size, double alpha, double beta, double k) {
  Call call("local_response_norm", x);
  call.requireFloat(x.tensor);
  int64_t rank = Call::rank(x.tensor);
  if (rank < 3)
    call.fail("the input has " + std::to_string(rank) + " dimensions, not at least 3");
  int64_t channels = Call::shape(x.tensor)[movableAxis(call, x.tensor, 1)];
  if (size < 1)
    call.fail("size is positive, not " + std::to_string(size));
  Line at{x.where};
  std::vector<int64_t> around(size_t(2 * (rank - 1)), 0);
  around[around.size() - 2] = size / 2;
  around.back() = (size - 1) / 2;
  Arg wide = at(detail::widened(call, x.tensor));
  Tensor squares = pad(at(square(wide)), around), sum = slice(at(squares), 1, 0, channels);
  for (int64_t i = 1; i < size; ++i)
    sum = at(sum) + at(slice(at(squares), 1, i, i + channels));
  return call.cast(wide * at(pow(at(k + at(at(sum) * (alpha / double(size)))), -beta)), x.tensor.dtype());
}

} // namespace sluice
