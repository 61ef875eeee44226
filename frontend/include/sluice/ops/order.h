// Cumulative sums, sorting and top-k.
#pragma once

#include "sluice/tensor.h"

#include <cstdint>

namespace sluice {

struct CumsumOptions {
  bool exclusive = false; ///< an element is not in its own sum
  bool reverse = false;   ///< sums of what is behind an element
};
/// The sum of all elements up to each one along a dimension, which is not the batch; of integers and bool, i64. They are added
/// one after another, from the first to the last (with `reverse` from the last to the first), on every device.
Tensor cumsum(Arg x, std::int64_t dim, CumsumOptions options = {});

struct TopK {
  Tensor values, indices; ///< of the requested dtype: i32 or i64
};
/// The k largest (or smallest) elements along a dimension, and their indices, in order. The dimension must not be the
/// batch. Among equal elements, the one with the least index is first; PyTorch does not specify this. NaN comes last.
/// Gradients flow through the values. A small k takes one pass along the dimension per element; a large k takes as much
/// work as `sort`. More than 2^31 elements require indices in i64.
TopK topk(Arg x, std::int64_t k, std::int64_t dim = -1, bool largest = true, bool sorted = true, DType dtype = i32);
/// topk of all elements. Equal elements stay in their order. The work grows as n log(n)^2.
TopK sort(Arg x, std::int64_t dim = -1, bool descending = false, DType dtype = i32);
Tensor argsort(Arg x, std::int64_t dim = -1, bool descending = false, DType dtype = i32);

} // namespace sluice
