// Shapes: reshaping, slicing, padding and joining.
#pragma once

#include "sluice/tensor.h"

#include <cstdint>
#include <source_location>
#include <vector>

namespace sluice {

/// One size may be -1. As many elements lie before the batch dimension as did, and behind it, so that a row stays a
/// row. Or the batch is merged with what is behind it, as many elements as are left, in a dimension that is a multiple of the
/// batch: [batch, 16, 32] as {-1, 32} is [batch*16, 32], on which elementwise functions, reductions, products, norms, losses
/// and metrics work as on any rows. Reshaping takes it apart again. What needs the batch by itself (convolutions, outputs, scans)
/// says so.
Tensor reshape(Arg x, Shape shape);
Tensor view(Arg x, Shape shape);
Tensor flatten(Arg x, std::int64_t start_dim = 0, std::int64_t end_dim = -1);
Tensor permute(Arg x, Axes dims);
Tensor transpose(Arg x, std::int64_t dim0, std::int64_t dim1);
/// Removes dimensions of size 1: the given ones, or all.
Tensor squeeze(Arg x, Axes dim = {});
Tensor unsqueeze(Arg x, std::int64_t dim);
/// Broadcasts; -1 keeps a size.
Tensor expand(Arg x, Shape shape);
/// Elements start, start + step, ... below end; negative ones count from the end, and both are clamped. The batch can
/// only be taken whole: how many rows a part of it has, no shape can say.
Tensor slice(Arg x, std::int64_t dim, std::int64_t start, std::int64_t end = Tensor::toEnd, std::int64_t step = 1);
/// One index of a dimension, which is removed.
Tensor select(Arg x, std::int64_t dim, std::int64_t index);
/// Pads with a constant; pairs (before, after), the last dimension first, as in torch.nn.functional.pad. Negative
/// numbers crop. Not the batch.
Tensor pad(Arg x, std::vector<std::int64_t> pad, double value = 0.0);
/// Along any dimension but the batch.
Tensor cat(std::vector<Tensor> tensors, std::int64_t dim = 0,
           std::source_location where = std::source_location::current());
Tensor concat(std::vector<Tensor> tensors, std::int64_t dim = 0,
              std::source_location where = std::source_location::current());
/// Tensors of one shape along a new dimension.
Tensor stack(std::vector<Tensor> tensors, std::int64_t dim = 0,
             std::source_location where = std::source_location::current());
/// Parts of so many elements, the last one of what is left; or of these sizes, which add up to the dimension's. Not of
/// the batch.
std::vector<Tensor> split(Arg x, std::int64_t split_size, std::int64_t dim = 0);
std::vector<Tensor> split(Arg x, std::vector<std::int64_t> split_sizes, std::int64_t dim = 0);
/// Parts of equal sizes but for the last, which may be smaller: as many as asked for, or fewer.
std::vector<Tensor> chunk(Arg x, std::int64_t chunks, std::int64_t dim = 0);
/// The elements of the last two dimensions whose row + diagonal is at least (triu: at most) their column; 0 elsewhere.
Tensor tril(Arg x, std::int64_t diagonal = 0);
Tensor triu(Arg x, std::int64_t diagonal = 0);

} // namespace sluice
