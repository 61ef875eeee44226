// Functions that are formulas of those of <sluice/ops.h>, under PyTorch's names and rules. No op of the IR is theirs: what
// runs, and what their gradients are, follows from the formula.
#pragma once

#include "sluice/ops.h"

namespace sluice {

// --- elementwise
// ------------------------------------------------------------------------------------------------------

/// x where it is above 0, weight * x elsewhere: of one weight, [1], or one for each channel of x [N, C, ...], [C].
Tensor prelu(Arg x, const Tensor &weight);
/// x where the mask does not hold, and the value where it does; both broadcast.
Tensor masked_fill(Arg x, const Tensor &mask, double value);

// --- reductions
// -------------------------------------------------------------------------------------------------------

/// i32 index of the first minimum.
Tensor argmin(Arg x, std::int64_t dim, bool keepdim = false, DType dtype = i32);
/// (sum of |x|^p)^(1/p) for p of 1, 2 or infinity (the largest |x|). No gradient flows where the norm is 0. For f16 and
/// bf16, squares are summed in f32, also in `normalize`.
Tensor norm(Arg x, double p = 2, Axes dim = {}, bool keepdim = false);
/// x / max(norm, eps), of the norms along a dimension.
Tensor normalize(Arg x, double p = 2, std::int64_t dim = 1, double eps = 1e-12);

// --- shape
// ------------------------------------------------------------------------------------------------------------

/// All of x so many times along each dimension, of which there may be more than x has; along the batch once.
Tensor repeat(Arg x, std::vector<std::int64_t> repeats);
/// In reverse order along these dimensions, none of which is the batch.
Tensor flip(Arg x, Axes dims);
/// Moves elements by so many places along a dimension; what leaves at its end comes in at its beginning.
Tensor roll(Arg x, std::int64_t shifts, std::int64_t dim);

/// What stands beside x: its elements mirrored, without the last one; its last one; or its elements from the other end.
enum class PadMode { reflect, replicate, circular };
/// As pad, by elements of x in place of a constant, and without cropping.
Tensor pad(Arg x, std::vector<std::int64_t> pad, PadMode mode);

/// [N, C * r^2, H, W] as [N, C, H * r, W * r], and back (depth_to_space and space_to_depth).
Tensor pixel_shuffle(Arg x, std::int64_t upscale_factor);
Tensor pixel_unshuffle(Arg x, std::int64_t downscale_factor);

// --- indices
// ----------------------------------------------------------------------------------------------------------

/// x plus elements of src where an index says: y[index[i][j]][j] += src[i][j] for dimension 0, and so on. The index has src's
/// shape, and x's elsewhere than in the dimension. Indices are as those of gather.
Tensor scatter_add(Arg x, std::int64_t dim, const Tensor &index, const Tensor &src);
/// x plus slices of source [..., K, ...] where an index [K] says, along a dimension.
Tensor index_add(Arg x, std::int64_t dim, const Tensor &index, const Tensor &source);

struct RopeOptions {
  double base = 10000;
  bool interleaved = false; ///< pairs are neighbours, (0, 1), (2, 3), ..., not element i of both halves
  Tensor position = {};     ///< integers that broadcast to [..., T]; absent: 0 to T - 1
};
/// Rotary position embedding of x [..., T, D]: pair i of the elements at position p is turned by p * base^(-2 i / D).
Tensor rope(Arg x, RopeOptions options = {});

// --- images
// -----------------------------------------------------------------------------------------------------------

enum class Interpolation { nearest, bilinear };
struct InterpolateOptions {
  Interpolation mode = Interpolation::nearest;
  bool align_corners = false; ///< of bilinear: corners stay at corners, else pixels are areas
};
/// Resizes images [N, C, H, W], up or down (PyTorch's interpolate with `size`). Each element depends on one element of
/// the image, or on up to four with bilinear. Other elements are not read, so that an infinity or NaN spreads no
/// further. f16 and bf16 are computed in f32.
Tensor interpolate_to(Arg x, Size2 size, InterpolateOptions options = {});
/// The same of so many times the size.
Tensor interpolate(Arg x, Size2 scale_factor, InterpolateOptions options);

// --- norms
// ------------------------------------------------------------------------------------------------------------

/// group_norm in groups of one channel.
Tensor instance_norm(Arg x, const Tensor &weight = {}, const Tensor &bias = {}, double eps = 1e-5);
/// x / (k + alpha * m)^beta for x [N, C, ...], m being the mean of x^2 of `size` channels around each, of which those beyond
/// the first and the last are 0.
Tensor local_response_norm(Arg x, std::int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1.0);

} // namespace sluice
