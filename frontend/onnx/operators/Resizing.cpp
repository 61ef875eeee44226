#include "frontend/onnx/operators/Resizing.h"

#include "frontend/onnx/import/Node.h"

#include <algorithm>
#include <cmath>

namespace sluice::onnx {

/// More taps are refused.
static constexpr std::int64_t kMostTaps = std::int64_t(1) << 24;

/// A place of the result in units of the image. Without scales, the quotient is exact where it is a whole number.
static double unscaled(const ResizedDim &dim, double place) {
  return dim.isRounded ? place / dim.scale : place * double(dim.from) / double(dim.to);
}

/// The place in the image that an element of the result samples.
static double placeOf(const ResizedDim &dim, const std::string &mode, std::int64_t i) {
  double at = double(i), last = double(dim.from - 1),
         size = dim.isRounded ? dim.scale * double(dim.from) : double(dim.to);
  if (mode == "half_pixel")
    return unscaled(dim, at + 0.5) - 0.5;
  if (mode == "asymmetric")
    return unscaled(dim, at);
  if (mode == "align_corners")
    return size == 1 ? 0 : at * last / (size - 1);
  if (mode == "pytorch_half_pixel")
    return dim.to == 1 ? 0 : unscaled(dim, at + 0.5) - 0.5;
  if (mode == "half_pixel_symmetric")
    return double(dim.from) / 2 * (1 - double(dim.to) / size) + unscaled(dim, at + 0.5) - 0.5;
  if (mode == "tf_half_pixel_for_nn")
    return unscaled(dim, at + 0.5);
  if (mode == "tf_crop_and_resize")
    return size == 1 ? (dim.begin + dim.end) / 2 * last
                     : dim.begin * last + at * (dim.end - dim.begin) * last / (size - 1);
  Node::fail("coordinate_transformation_mode '" + mode + "' is not supported");
}

static double rounded(double place, const std::string &mode, double scale) {
  double below = std::floor(place), beyond = place - below;
  if (mode == "outward")
    return scale < 1 ? std::ceil(place) : below;
  if (mode == "floor")
    return below;
  if (mode == "ceil")
    return std::ceil(place);
  if (mode == "round_prefer_floor")
    return beyond <= 0.5 ? below : below + 1;
  if (mode == "round_prefer_ceil")
    return beyond < 0.5 ? below : below + 1;
  Node::fail("nearest_mode '" + mode + "' is not supported");
}

/// The weight of an element at a distance: a triangle, or a cubic spline with coefficient a.
static double weightAt(double distance, const Sampling &sampling) {
  double x = std::abs(distance), a = sampling.cubicCoefficient;
  if (sampling.mode == "linear")
    return std::max(0.0, 1 - x);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// The weights of the taps of one element become those of a mean.
static void normalizeWeights(AxisTaps &taps, std::int64_t to, std::int64_t i) {
  double sum = 0;
  for (std::int64_t tap = 0; tap < taps.count; ++tap)
    sum += taps.weight[std::size_t(tap * to + i)];
  for (std::int64_t tap = 0; sum != 0 && tap < taps.count; ++tap)
    taps.weight[std::size_t(tap * to + i)] /= sum;
}

/// Linear and cubic interpolation. Elements beyond the image are those of its edge.
static void interpolateTaps(AxisTaps &taps, const ResizedDim &dim, const Sampling &sampling,
                            const std::vector<double> &places) {
  double reach = sampling.mode == "linear" ? 1 : 2, stretch = 1;
  if (sampling.antialiases)
    stretch = std::min(1.0, dim.scale);
  double half = std::floor(reach / stretch);
  if (!(2 * half * double(dim.to) <= double(kMostTaps)))
    Node::fail("a scale of " + std::to_string(dim.scale) + " is not supported");
  // The taps are those from 1 - floor(-reach / stretch) elements before a place on; a whole number is its right end.
  auto before = -std::int64_t(std::floor(-reach / stretch) + 1);
  taps.count = 2 + 2 * before;
  taps.index.resize(std::size_t(taps.count * dim.to));
  taps.weight.resize(taps.index.size());
  for (std::int64_t i = 0; i < dim.to; ++i) {
    double place = places[std::size_t(i)], first = std::ceil(place) - 1 - double(before);
    for (std::int64_t tap = 0; tap < taps.count; ++tap) {
      double element = first + double(tap), last = double(dim.from - 1);
      bool isOutside = element < 0 || element > last;
      auto at = std::size_t(tap * dim.to + i);
      taps.index[at] = std::int32_t(std::clamp(element, 0.0, last));
      taps.weight[at] = isOutside && sampling.excludesOutside ? 0 : weightAt((element - place) * stretch, sampling);
    }
    if (sampling.antialiases || sampling.excludesOutside)
      normalizeWeights(taps, dim.to, i);
  }
}

AxisTaps tapsOf(const ResizedDim &dim, const Sampling &sampling) {
  if (dim.from > kMostTaps || dim.to > kMostTaps)
    Node::fail("so large images are not supported");
  if (!(dim.scale > 0) || !std::isfinite(dim.scale))
    Node::fail("a scale of " + std::to_string(dim.scale) + " is not supported");
  AxisTaps taps;
  std::vector<double> places;
  double last = double(dim.from - 1);
  for (std::int64_t i = 0; i < dim.to; ++i) {
    double place = placeOf(dim, sampling.coordinates, i);
    if (!(std::abs(place) <= double(std::int64_t(1) << 40)))
      Node::fail("an element of the result has the place " + std::to_string(place) + " in the image");
    places.push_back(place);
    if (sampling.coordinates == "tf_crop_and_resize")
      taps.isOutside.push_back(place < 0 || place > last);
  }
  if (std::ranges::find(taps.isOutside, true) == taps.isOutside.end())
    taps.isOutside.clear();
  if (sampling.mode == "linear" || sampling.mode == "cubic") {
    interpolateTaps(taps, dim, sampling, places);
    return taps;
  }
  if (sampling.mode != "nearest")
    Node::fail("mode '" + sampling.mode + "' is not supported");
  for (double place : places)
    taps.index.push_back(std::int32_t(std::clamp(rounded(place, sampling.rounding, dim.scale), 0.0, last)));
  return taps;
}

} // namespace sluice::onnx
