// Functions composed of those of <sluice/ops.h>, under PyTorch's names and rules; the conventions of ops.h hold. No op
// of the IR represents them: kernels and gradients follow from the formula. x is of floats unless a comment says
// otherwise.
#pragma once

#include "sluice/ops.h"

namespace sluice {

// --- elementwise

/// x where x > 0, weight * x elsewhere. The weight is [1], or [C] for x [N, C, ...].
Tensor prelu(Arg x, const Tensor &weight);
/// The value where the mask, of bool, is true, and x elsewhere, of any dtype; both broadcast.
Tensor masked_fill(Arg x, const Tensor &mask, double value);

/// Whether |a - b| <= atol + rtol * |b|, elementwise (torch.isclose). Equal infinities are close; with equal_nan, so
/// are two NaN. a and b are numbers of one dtype and broadcast. f16 and bf16 are compared in f32, integers in f64.
/// Negative tolerances throw Error. No gradient.
Tensor isclose(Arg a, const Tensor &b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);

// --- reductions

/// Whether isclose holds for all elements: a bool scalar (torch.allclose, which returns a Python bool).
Tensor allclose(Arg a, const Tensor &b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);

/// The index of the first minimum of numbers, with the rules of argmax.
Tensor argmin(Arg x, std::int64_t dim, bool keepdim = false, DType dtype = i32);
/// The p-norm (sum of |x|^p)^(1/p), for p = 1, 2 or infinity (the largest |x|); PyTorch accepts any p. The gradient of
/// the 2-norm is 0 where it is 0. f16 and bf16 are computed in f32, also in `normalize`.
Tensor norm(Arg x, double p = 2, Axes dim = {}, bool keepdim = false);
/// The sum of the main diagonal of a matrix [n, m], not bool (torch.trace). Sums of integers are i64. No dimension may
/// be the batch.
Tensor trace(Arg x);
/// x / max(norm, eps), with the p-norm along a dimension.
Tensor normalize(Arg x, double p = 2, std::int64_t dim = 1, double eps = 1e-12);

// --- shape

/// Repeats x `repeats[i]` times along dimension i (torch.Tensor.repeat), of any dtype. Further dimensions come first.
/// The batch is repeated once. Numbers below 1 fail.
Tensor repeat(Arg x, std::vector<std::int64_t> repeats);
/// repeat, where `dims` may be shorter than the shape: ones are prepended (torch.tile).
Tensor tile(Arg x, std::vector<std::int64_t> dims);
/// Of a vector: the matrix with x on diagonal `diagonal` and zeros elsewhere. Of a matrix: that diagonal as a vector
/// (torch.diag). Positive diagonals are above the main one. Any dtype; no batch. A diagonal outside the matrix throws
/// Error; PyTorch returns an empty vector.
Tensor diag(Arg x, std::int64_t diagonal = 0);
/// The order of meshgrid's dimensions. ij: that of the tensors. xy: the first two are swapped.
enum class Indexing { ij, xy };
/// The coordinates of a grid (torch.meshgrid): one tensor per argument, all of shape [size of tensor 0, size of tensor
/// 1, ...]; xy swaps the first two sizes. Arguments are vectors or scalars of one dtype. No batch.
std::vector<Tensor> meshgrid(const std::vector<Tensor> &tensors, Indexing indexing = Indexing::ij,
                             std::source_location where = std::source_location::current());
/// Reverses x along these dimensions, of any dtype. Not the batch.
Tensor flip(Arg x, Axes dims);
/// Shifts elements cyclically along one dimension, of any dtype. Not the batch.
Tensor roll(Arg x, std::int64_t shifts, std::int64_t dim);

/// The source of padding: elements mirrored at the edge, without the edge; the edge; or elements from the other end.
enum class PadMode { reflect, replicate, circular };
/// Pads with elements of x, of any dtype: pairs (before, after), the last dimension first. Padding is not negative, and
/// at most size - 1 (reflect) or size (circular). Not the batch.
Tensor pad(Arg x, std::vector<std::int64_t> pad, PadMode mode);

/// [N, C * r^2, H, W] -> [N, C, H * r, W * r], and back, of any dtype. Fails if the sizes are not divisible.
Tensor pixel_shuffle(Arg x, std::int64_t upscale_factor);
Tensor pixel_unshuffle(Arg x, std::int64_t downscale_factor);

// --- indices

/// x plus elements of src: y[index[i][j]][j] += src[i][j] for dimension 0, and so on. The index has the shape of src,
/// which equals that of x in every other dimension; PyTorch accepts smaller ones. Indices follow the rules of gather.
Tensor scatter_add(Arg x, std::int64_t dim, const Tensor &index, const Tensor &src);
/// x plus the slices of source [..., K, ...] at the indices [K], along a dimension. PyTorch's alpha is not available.
Tensor index_add(Arg x, std::int64_t dim, const Tensor &index, const Tensor &source);

/// Options of rope.
struct RopeOptions {
  double base = 10000;      ///< of the angles
  bool interleaved = false; ///< pairs are adjacent, (0, 1), (2, 3), ...; otherwise element i of both halves
  Tensor position = {};     ///< positions, which broadcast to [..., T]; absent: 0 to T - 1
};
/// Rotary position embedding of x [..., T, D], with even D: rotates pair i of position p by p * base^(-2 i / D).
/// Neither T nor D is the batch. PyTorch has no equivalent.
Tensor rope(Arg x, RopeOptions options = {});

// --- images

/// The modes of torch.nn.functional.interpolate for images that are available.
enum class Interpolation { nearest, bilinear };
/// Options of interpolate and interpolate_to.
struct InterpolateOptions {
  Interpolation mode = Interpolation::nearest;
  bool align_corners = false; ///< map corner pixels to corner pixels; bilinear only
};
/// Resizes images [N, C, H, W] to a size from 1 to 65535 (PyTorch's interpolate with `size`). Each element depends on
/// one element of the image, or on up to four with bilinear. Other elements are not read, so that an infinity or NaN
/// does not spread. f16 and bf16 are computed in f32.
Tensor interpolate_to(Arg x, Size2 size, InterpolateOptions options = {});
/// interpolate_to of a multiple of the size. PyTorch also accepts fractions.
Tensor interpolate(Arg x, Size2 scale_factor, InterpolateOptions options);

// --- norms

/// group_norm in groups of one channel, of x [N, C, d1, ...]. PyTorch's running statistics are not available.
Tensor instance_norm(Arg x, const Tensor &weight = {}, const Tensor &bias = {}, double eps = 1e-5);
/// x / (k + alpha * m)^beta for x [N, C, d1, ...]. m is the mean of x^2 over the `size` channels around each one;
/// channels that do not exist count as 0.
Tensor local_response_norm(Arg x, std::int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1.0);

} // namespace sluice
