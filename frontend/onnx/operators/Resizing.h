// The elements and weights that resize one dimension of an image.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::onnx {

/// The attributes of Resize. Version 10 had none for the rounding: ONNX Runtime rounds down, and up for a scale below 1
/// ("outward").
struct Sampling {
  std::string mode = "nearest", coordinates = "asymmetric", rounding = "floor";
  double cubicCoefficient = -0.75;
  bool excludesOutside = false, antialiases = false;
  double extrapolation = 0; ///< the value of elements outside of the image, with tf_crop_and_resize
};

/// One dimension that is resized from `from` to `to` elements.
struct ResizedDim {
  std::int64_t axis = 0, from = 1, to = 1;
  double scale = 1;          ///< to / from; if scales are given, before `to` is rounded down
  bool isRounded = false;    ///< whether scales are given
  double begin = 0, end = 1; ///< the region for tf_crop_and_resize, as parts of `from`
};

/// The elements on which each element of the result depends.
struct AxisTaps {
  std::int64_t count = 1;          ///< per element of the result
  std::vector<std::int32_t> index; ///< [count, to]
  std::vector<double> weight;      ///< [count, to]; empty: each element has one tap of weight 1
  std::vector<bool> isOutside;     ///< [to]; empty: none is
};

/// Throws Unsupported for modes that do not exist.
AxisTaps tapsOf(const ResizedDim &dim, const Sampling &sampling);

} // namespace sluice::onnx
