#include "frontend/onnx/operators/Sampler.h"

#include "sluice/ops.h"

#include <limits>

namespace sluice::onnx {

namespace {

/// One element on which a result depends along one dimension.
struct Tap {
  Tensor element; ///< its index: a whole number, which may lie outside of the image
  Tensor weight;  ///< empty: 1
};

} // namespace

/// Mirrors a place at both borders until it lies between them.
static Tensor reflected(const Tensor &place, double least, double most) {
  if (least == most)
    return full_like(place, least);
  Tensor beyond = sluice::abs(place - least), times = sluice::floor(beyond / (most - least));
  Tensor rest = beyond - times * (most - least);
  return where(remainder(times, 2.0) == 0.0, least + rest, most - rest);
}

/// A place beyond the borders becomes one within them, unless padding is of zeros.
static Tensor broughtBack(const Tensor &place, std::int64_t size, const Sampler &sampler) {
  double margin = sampler.alignsCorners ? 0 : 0.5, least = -margin, most = double(size - 1) + margin;
  if (sampler.padding == "zeros")
    return place;
  if (sampler.padding != "border" && sampler.padding != "reflection")
    Node::fail("padding_mode '" + sampler.padding + "' is not supported");
  Tensor within = sampler.padding == "border" ? clip(place, 0.0, double(size - 1)) : reflected(place, least, most);
  return where((place < least) | (place > most), within, place);
}

/// Keys' cubic splines with coefficient -0.75, at the distances 1 + x, x, 1 - x and 2 - x.
static std::vector<Tensor> cubicWeights(const Tensor &x) {
  constexpr double a = -0.75;
  auto inner = [](const Tensor &d) { return ((a + 2) * d - (a + 3)) * d * d + 1.0; };
  auto outer = [](const Tensor &d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {outer(x + 1.0), inner(x), inner(1.0 - x), outer(2.0 - x)};
}

/// The taps of a place. Of cubic taps, as in PyTorch and ONNX Runtime, only the elements are brought back.
static std::vector<Tap> tapsAt(const Tensor &place, std::int64_t size, const Sampler &sampler) {
  if (sampler.mode == "nearest")
    return {{broughtBack(sluice::round(place), size, sampler), {}}};
  bool isLinear = sampler.mode == "linear" || sampler.mode == "bilinear";
  Tensor at = isLinear ? broughtBack(place, size, sampler) : place, below = sluice::floor(at), beyond = at - below;
  if (isLinear)
    return {{below, 1.0 - beyond}, {below + 1.0, beyond}};
  if (sampler.mode != "cubic" && sampler.mode != "bicubic")
    Node::fail("mode '" + sampler.mode + "' is not supported");
  std::vector<Tap> taps;
  for (const Tensor &weight : cubicWeights(beyond))
    taps.push_back({below + (double(taps.size()) - 1.0), weight});
  return taps;
}

/// Brings the tap's element into the image, where it lies outside; with padding of zeros, its weight becomes 0.
static Tap withinImage(const Tap &tap, std::int64_t size, const Sampler &sampler) {
  double last = double(size - 1);
  if (sampler.padding != "zeros")
    return {clip(broughtBack(tap.element, size, sampler), 0.0, last), tap.weight};
  Tensor isInside = (tap.element >= 0.0) & (tap.element <= last);
  Tensor weight = bool(tap.weight) ? where(isInside, tap.weight, 0.0) : isInside.to(tap.element.dtype());
  return {clip(tap.element, 0.0, last), weight};
}

static Tensor productOf(const Tensor &a, const Tensor &b) { return !bool(a) ? b : !bool(b) ? a : a * b; }

namespace {

/// The sum over all combinations of one tap for each dimension.
class SumOfTaps {
public:
  SumOfTaps(const Tensor &x, const std::vector<std::vector<Tap>> &taps, const Dims &sizes)
      : x(x), taps(taps), sizes(sizes) {}

  Tensor sum() {
    add(0, {}, {});
    return total;
  }

private:
  /// `index` and `weight` are those of the dimensions before `dim`; empty at first.
  void add(std::size_t dim, const Tensor &index, const Tensor &weight) {
    if (dim == taps.size())
      return addElement(index, weight);
    for (const Tap &tap : taps[dim]) {
      Tensor element = tap.element.to(i32);
      add(dim + 1, bool(index) ? index * double(sizes[dim]) + element : element, productOf(weight, tap.weight));
    }
  }

  void addElement(const Tensor &index, const Tensor &weight) {
    Tensor part = take_along_dim(x, index, -1);
    if (bool(weight)) {
      Tensor typed = weight.to(x.dtype());
      part = where(typed != full_like(typed, 0), part * typed, 0.0);
    }
    total = bool(total) ? total + part : part;
  }

  const Tensor &x;
  const std::vector<std::vector<Tap>> &taps;
  const Dims &sizes;
  Tensor total;
};

} // namespace

Tensor sampled(const Tensor &x, const Dims &sizes, const std::vector<Tensor> &places, const Sampler &sampler) {
  if (sizes.size() > 3)
    Node::fail("images of " + std::to_string(sizes.size()) + " dimensions are not supported");
  std::int64_t elements = 1;
  for (std::int64_t size : sizes)
    if (__builtin_mul_overflow(elements, size, &elements) || elements > std::numeric_limits<std::int32_t>::max())
      Node::fail("so large images are not supported");
  std::vector<std::vector<Tap>> taps;
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
    taps.push_back(tapsAt(places[dim], sizes[dim], sampler));
    for (Tap &tap : taps.back())
      tap = withinImage(tap, sizes[dim], sampler);
  }
  return SumOfTaps(x, taps, sizes).sum();
}

} // namespace sluice::onnx
