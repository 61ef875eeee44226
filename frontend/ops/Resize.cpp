// Resizing of images. Each element of a line of the result depends on a few elements of the image's line, its taps. The
// taps are gathered, weighted and summed. Elements of weight 0 are not read, so that an infinity or NaN affects only
// results to which it contributes. f16 and bf16 are computed in f32.
#include "frontend/ops/Reduce.h"
#include "sluice/formulas.h"

using namespace mlir;

namespace sluice {

using detail::Call;
using detail::compared;

namespace {

/// The taps of the elements along one dimension of the result.
struct Taps {
  Tensor index;  ///< i32 [taps, to], or [to] if each element has one tap
  Tensor weight; ///< [taps, to]; empty: all are 1
};

/// One dimension of an image, resized from `from` to `to` elements, as formulas of indices. Places are computed in f64,
/// which holds products of sizes.
class Resizing {
public:
  Resizing(Call &call, const Arg &x, int64_t from, int64_t to)
      : call(call), where(x.where), dtype(x.tensor.dtype()), from(from), to(to) {}

  /// The element at floor(i * from / to).
  Taps nearest() const { return {cast(at(first(call.iota(type(f64, {to}), 0, 0, 1))), i32), {}}; }

  /// The two neighbors of a position, weighted by proximity.
  Taps linear(bool alignCorners) const {
    Tensor tap = call.iota(type(dtype, {2, to}), 0, 0, 1), i = call.iota(type(dtype, {2, to}), 1, 0, 1);
    double last = double(from - 1);
    Tensor place = alignCorners ? at(i) * (to > 1 ? last / double(to - 1) : 0.0)
                                : clip(at(at(at(at(i) + 0.5) * (double(from) / double(to))) - 0.5), 0.0, last);
    Tensor low = floor(at(place)), beyond = at(place) - at(low);
    return {cast(at(clip(at(at(low) + at(tap)), 0.0, last)), i32), abs(at(at(1.0 - at(tap)) - at(beyond)))};
  }

  /// The mean of the elements from floor(i * from / to) to ceil((i + 1) * from / to), exclusive.
  Taps means() const {
    int64_t most = 1;
    for (int64_t i = 0; i < to; ++i)
      most = std::max(most, ((i + 1) * from + to - 1) / to - i * from / to);
    Tensor tap = call.iota(type(f64, {most, to}), 0, 0, 1), i = call.iota(type(f64, {most, to}), 1, 0, 1);
    Tensor begin = first(i), end = ceil(at(at(at(at(i) + 1.0) * double(from)) / double(to)));
    Tensor place = at(begin) + at(tap), isIn = at(place) < at(end), count = at(end) - at(begin);
    return {cast(at(clip(at(place), 0.0, double(from - 1))), i32),
            at(cast(at(isIn), dtype)) / at(cast(at(count), dtype))};
  }

private:
  Arg at(const Tensor &x) const { return {x, where}; }
  RankedTensorType type(DType element, ArrayRef<int64_t> shape) const {
    return RankedTensorType::get(shape, call.graph.elementType(element));
  }
  Tensor first(const Tensor &i) const { return floor(at(at(at(i) * double(from)) / double(to))); }

  Call &call;
  std::source_location where;
  DType dtype;
  int64_t from, to;
};

} // namespace

/// Resizes x along an axis. x must not be f16 or bf16.
static Tensor resized(Call &call, const Tensor &x, int64_t axis, const Taps &taps) {
  Tensor read = call.emit<ir::GatherOp>({x, taps.index}, call.integer("axis", axis));
  if (!bool(taps.weight))
    return read;
  Tensor isRead = compared(call, ir::Predicate::ne, taps.weight, call.literal(0.0, taps.weight));
  auto spread = [&](const Tensor &ofTaps) { return call.expand(ofTaps, {axis, axis + 1}, Call::shape(read)); };
  Tensor weighted = call.emit<ir::MulOp>({read, spread(taps.weight)});
  Tensor parts = call.emit<ir::WhereOp>({spread(isRead), weighted, call.literal(0.0, weighted)});
  return call.emit<ir::SumOp>({parts}, call.list("axes", axis));
}

/// Resizes height and width with the taps that `make` returns for each dimension that changes.
template <class Make> static Tensor resized(Call &call, const Arg &x, Size2 size, Make make) {
  call.requireFloat(x.tensor);
  call.requireRank("the input", x.tensor, 4);
  if (llvm::is_contained(Call::shape(x.tensor).drop_front(), ShapedType::kDynamic))
    call.fail("the batch is the first dimension of images");
  for (int64_t to : {size.h, size.w})
    if (to < 1 || to >= 1 << 16)
      call.fail("a size is from 1 to 65535, not " + std::to_string(to));
  Tensor y = detail::widened(call, x.tensor);
  for (auto [axis, to] : {std::pair(2, size.h), std::pair(3, size.w)})
    if (int64_t from = Call::shape(y)[axis]; from != to)
      y = resized(call, y, axis, make(Resizing(call, Arg(y, x.where), from, to)));
  return call.cast(y, x.tensor.dtype());
}

Tensor interpolate_to(Arg x, Size2 size, InterpolateOptions options) {
  Call call("interpolate_to", x);
  bool isNearest = options.mode == Interpolation::nearest;
  if (isNearest && options.align_corners)
    call.fail("align_corners requires bilinear interpolation");
  return resized(call, x, size, [&](const Resizing &resizing) {
    return isNearest ? resizing.nearest() : resizing.linear(options.align_corners);
  });
}

Tensor interpolate(Arg x, Size2 scale_factor, InterpolateOptions options) {
  if (options.mode == Interpolation::nearest && !options.align_corners)
    return interpolate(x, scale_factor);
  Call call("interpolate", x);
  call.requireRank("the input", x.tensor, 4);
  auto size = [&](int64_t dim, int64_t scale) {
    return std::clamp<int64_t>(scale, 0, 1 << 16) * Call::shape(x.tensor)[dim];
  };
  return interpolate_to(x, {size(2, scale_factor.h), size(3, scale_factor.w)}, options);
}

// Uses a pool if all windows have one size.
Tensor adaptive_avg_pool2d(Arg x, Size2 output_size) {
  Call call("adaptive_avg_pool2d", x);
  call.requireRank("the input", x.tensor, 4);
  int64_t height = Call::shape(x.tensor)[2], width = Call::shape(x.tensor)[3];
  if (output_size.h > 0 && output_size.w > 0 && height % output_size.h == 0 && width % output_size.w == 0)
    return avg_pool2d(x, {height / output_size.h, width / output_size.w});
  return resized(call, x, output_size, [](const Resizing &resizing) { return resizing.means(); });
}

} // namespace sluice
