// Elements at indices that are data, of i32 or i64.
//
// A call of the program is refused (code 3) if an input holds an index that is out of range. An index that the graph
// computes is clamped to the first or the last instead; PyTorch raises an error for both. Negative indices are out of
// range. The gradients of an element that is taken several times are added. No function chooses rows of the batch,
// because no shape expresses their number.
#pragma once

#include "sluice/tensor.h"

#include <cstdint>
#include <optional>

namespace sluice {

/// The slices of x along a dimension that the index names. The shape of the index takes the place of the dimension;
/// PyTorch allows an index of one dimension. x and the index cannot both have the batch.
Tensor index_select(Arg x, std::int64_t dim, const Tensor &index);
/// Rows of weight [num_embeddings, embedding_dim], of floats: index [...] gives [..., embedding_dim]. No gradient
/// reaches the row `padding_idx`, which counts from the end if it is negative.
Tensor embedding(Arg index, const Tensor &weight, std::optional<std::int64_t> padding_idx = {});
/// [...] gives [..., classes]: 1 at the label, 0 elsewhere. A computed label that names no class gives zeros. `classes`
/// and `dtype` are explicit; PyTorch infers the first and returns i64. No gradient.
Tensor one_hot(Arg label, std::int64_t classes, DType dtype = f32);

/// y[i][j] = x[index[i][j]][j] for dimension 0, and so on. y has the shape of the index, which in every other dimension
/// is at most as large as x. Not along the batch.
Tensor gather(Arg x, std::int64_t dim, const Tensor &index);
/// gather, where x and the index broadcast in all other dimensions.
Tensor take_along_dim(Arg x, const Tensor &index, std::int64_t dim);

/// `length` adjacent elements along a dimension from `start` on, a scalar of i32 or i64 that is known at run time. A
/// computed start is clamped to 0 to size - length. slice() takes constant bounds. Not along the batch.
Tensor narrow(Arg x, std::int64_t dim, const Tensor &start, std::int64_t length);
/// x with `source` in the place of the elements that `narrow` would return. PyTorch's takes bounds that are numbers.
Tensor slice_scatter(Arg x, const Tensor &source, std::int64_t dim, const Tensor &start);

} // namespace sluice
