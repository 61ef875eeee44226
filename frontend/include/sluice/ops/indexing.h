// Elements at indices that are data.
#pragma once

#include "sluice/tensor.h"

#include <cstdint>
#include <optional>

namespace sluice {

/// Slices along a dimension, which is not the batch: y has the index's shape in its place, for which PyTorch allows one
/// dimension at most. A call whose input has indices out of range is refused; such an index that is computed is taken as the
/// first or the last.
Tensor index_select(Arg x, std::int64_t dim, const Tensor &index);
/// Rows of weight [num_embeddings, embedding_dim]: index [...] gives [..., embedding_dim]. No gradient reaches the row
/// `padding_idx`, which counts from the end where it is negative.
Tensor embedding(Arg index, const Tensor &weight, std::optional<std::int64_t> padding_idx = {});
/// A last dimension of `classes` elements: 1 at the label, 0 elsewhere. A call whose input has other labels than 0 to
/// classes - 1 is refused; a label that is computed and names no class gives zeros.
Tensor one_hot(Arg label, std::int64_t classes, DType dtype = f32);

/// torch.gather: y[i][j] = x[index[i][j]][j] for dimension 0, and so on; y has the index's shape. Elsewhere than in the
/// dimension, x has as many elements as the index, or more. A call whose input has indices out of range is refused; such an
/// index that is computed is taken as the first or the last. The gradients of elements taken twice are added.
Tensor gather(Arg x, std::int64_t dim, const Tensor &index);
/// The same, where x and the index broadcast in all other dimensions.
Tensor take_along_dim(Arg x, const Tensor &index, std::int64_t dim);

/// `length` neighbouring elements along a dimension, from one on that is known when the program runs: a scalar of i32 or i64. One that
/// is an input is checked; another is brought into 0 to size - length. slice() is for what the graph knows.
Tensor narrow(Arg x, std::int64_t dim, const Tensor &start, std::int64_t length);
/// x with `source` in the place of what `narrow` would give.
Tensor slice_scatter(Arg x, const Tensor &source, std::int64_t dim, const Tensor &start);

} // namespace sluice
