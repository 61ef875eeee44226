// Shapes: reshaping, slicing, padding and joining, of any dtype. Elements are moved, never computed. Results are
// values, not views: a later write to x does not change them.
#pragma once

#include "sluice/tensor.h"

#include <cstdint>
#include <source_location>
#include <vector>

namespace sluice {

/// The same elements, in row-major order, under another shape. One size may be -1. The number of elements
/// before the batch dimension must not change, so that a row stays a row. The batch may also be merged with the
/// dimensions after it, into a multiple of the batch: [batch, 16, 32] as {-1, 32} is [batch*16, 32]. Elementwise
/// functions, reductions, products, norms, losses and metrics accept that; reshape splits it again. Functions that
/// require the batch as a separate dimension (convolutions, outputs, scans) fail.
Tensor reshape(Arg x, Shape shape);
Tensor view(Arg x, Shape shape);
/// Merges the dimensions start_dim to end_dim. A scalar becomes [1].
Tensor flatten(Arg x, std::int64_t start_dim = 0, std::int64_t end_dim = -1);
/// Dimension i of the result is dimension dims[i] of x. `dims` names every dimension once.
Tensor permute(Arg x, Axes dims);
/// Swaps two dimensions.
Tensor transpose(Arg x, std::int64_t dim0, std::int64_t dim1);
/// Removes dimensions of size 1: those in `dim`, or all. Other dimensions stay.
Tensor squeeze(Arg x, Axes dim = {});
/// Inserts a dimension of size 1 at `dim`.
Tensor unsqueeze(Arg x, std::int64_t dim);
/// Broadcasts x to the shape. A size of -1 keeps the size of x.
Tensor expand(Arg x, Shape shape);
/// The elements start, start + step, ... below end, as Python's x[start:end:step] with a positive step. Negative bounds
/// count from the end, and both are clamped. Fails if no element is left. The batch can only be taken whole, because no
/// shape expresses a part of it.
Tensor slice(Arg x, std::int64_t dim, std::int64_t start, std::int64_t end = Tensor::toEnd, std::int64_t step = 1);
/// The elements at one index of a dimension, which is removed. Not the batch.
Tensor select(Arg x, std::int64_t dim, std::int64_t index);
/// Pads with a constant, as torch.nn.functional.pad: pairs (before, after), the last dimension first. Negative numbers
/// crop. Not the batch.
Tensor pad(Arg x, std::vector<std::int64_t> pad, double value = 0.0);
/// Joins tensors of one dtype along a dimension in which alone their sizes may differ. Not the batch.
Tensor cat(std::vector<Tensor> tensors, std::int64_t dim = 0,
           std::source_location where = std::source_location::current());
Tensor concat(std::vector<Tensor> tensors, std::int64_t dim = 0,
              std::source_location where = std::source_location::current());
/// Joins tensors of one shape and dtype along a new dimension.
Tensor stack(std::vector<Tensor> tensors, std::int64_t dim = 0,
             std::source_location where = std::source_location::current());
/// Parts of `split_size` elements, the last of which may be smaller; or of the given sizes, which must add up to the
/// size of the dimension. Not the batch.
std::vector<Tensor> split(Arg x, std::int64_t split_size, std::int64_t dim = 0);
std::vector<Tensor> split(Arg x, std::vector<std::int64_t> split_sizes, std::int64_t dim = 0);
/// At most `chunks` parts of equal size, the last of which may be smaller. Not the batch.
std::vector<Tensor> chunk(Arg x, std::int64_t chunks, std::int64_t dim = 0);
/// The elements of the last two dimensions with row + diagonal >= column (triu: <= column); 0 elsewhere. Neither
/// dimension is the batch.
Tensor tril(Arg x, std::int64_t diagonal = 0);
Tensor triu(Arg x, std::int64_t diagonal = 0);

} // namespace sluice
