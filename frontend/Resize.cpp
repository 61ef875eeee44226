// Images of another size. Each line of an image is multiplied by a matrix, which says how much of each element is in one of the
// result; its elements are formulas of their indices.
#include "Call.h"
#include "sluice/formulas.h"

using namespace mlir;

namespace sluice {

using detail::Call;

namespace {

/// A matrix [to, from], as a formula of its indices, which halves would not hold.
class Weights {
public:
  Weights(Call &call, const Arg &x, int64_t from, int64_t to)
      : from(double(from)), to(double(to)), where(x.where),
        type(RankedTensorType::get({to, from}, call.graph.elementType(x.tensor.dtype() == f64 ? f64 : f32))),
        i(call.iota(type, 0, 0, 1)), j(call.iota(type, 1, 0, 1)) {}

  /// The element at floor(i * from / to).
  Tensor nearest() const {
    Tensor place = floor(at(at(at(i) * from) / to));
    return cast(at(at(place) == at(j)), i.dtype());
  }

  /// The two elements beside a place between them, each by how near it is.
  Tensor linear(bool alignCorners) const {
    Tensor place = alignCorners ? at(i) * (to > 1 ? (from - 1) / (to - 1) : 0.0)
                                : clip(at(at(at(at(i) + 0.5) * (from / to)) - 0.5), 0.0, from - 1);
    return relu(at(1.0 - at(abs(at(at(place) - at(j))))));
  }

  /// The mean of those from floor(i * from / to) to below ceil((i + 1) * from / to).
  Tensor means() const {
    Tensor first = floor(at(at(at(i) * from) / to)), end = ceil(at(at(at(at(i) + 1.0) * from) / to));
    Tensor isIn = at(at(j) >= at(first)) & at(at(j) < at(end));
    return at(cast(at(isIn), i.dtype())) / at(at(end) - at(first));
  }

private:
  Arg at(const Tensor &x) const { return {x, where}; }

  double from, to;
  std::source_location where;
  RankedTensorType type;
  Tensor i, j;
};

} // namespace

/// x [N, C, H, W], each height multiplied by one matrix and each width by another; absent: it stays.
static Tensor multiplied(const Arg &x, const Tensor &ofHeight, const Tensor &ofWidth) {
  Tensor y = x.tensor;
  auto weights = [&](const Tensor &matrix) { return Arg(cast(Arg(matrix, x.where), y.dtype()), x.where); };
  if (ofHeight)
    y = einsum("nchw,ih->nciw", Arg(y, x.where), weights(ofHeight));
  if (ofWidth)
    y = einsum("nchw,jw->nchj", Arg(y, x.where), weights(ofWidth));
  return y;
}

/// With the matrices that `weights` gives for both dimensions.
template <class Make> static Tensor resized(Call &call, const Arg &x, Size2 size, Make make) {
  call.requireFloat(x.tensor);
  call.requireRank("the input", x.tensor, 4);
  ArrayRef<int64_t> image = Call::shape(x.tensor);
  if (llvm::is_contained(image.drop_front(), ShapedType::kDynamic))
    call.fail("the batch is the first dimension of images");
  auto weights = [&](int64_t from, int64_t to) {
    if (to < 1 || to >= 1 << 16)
      call.fail("a size is from 1 to 65535, not " + std::to_string(to));
    return from == to ? Tensor() : make(Weights(call, x, from, to));
  };
  return multiplied(x, weights(image[2], size.h), weights(image[3], size.w));
}

Tensor interpolate_to(Arg x, Size2 size, InterpolateOptions options) {
  Call call("interpolate_to", x);
  bool isNearest = options.mode == Interpolation::nearest;
  if (isNearest && options.align_corners)
    call.fail("corners are aligned of bilinear interpolation alone");
  return resized(call, x, size, [&](const Weights &weights) {
    return isNearest ? weights.nearest() : weights.linear(options.align_corners);
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

// Windows of one size are a pool.
Tensor adaptive_avg_pool2d(Arg x, Size2 output_size) {
  Call call("adaptive_avg_pool2d", x);
  call.requireRank("the input", x.tensor, 4);
  int64_t height = Call::shape(x.tensor)[2], width = Call::shape(x.tensor)[3];
  if (output_size.h > 0 && output_size.w > 0 && height % output_size.h == 0 && width % output_size.w == 0)
    return avg_pool2d(x, {height / output_size.h, width / output_size.w});
  return resized(call, x, output_size, [](const Weights &weights) { return weights.means(); });
}

} // namespace sluice
