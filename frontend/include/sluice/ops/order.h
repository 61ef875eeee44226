// Cumulative sums, sorting and top-k along one dimension, which is not the batch.
#pragma once

#include "sluice/tensor.h"

#include <cstdint>

namespace sluice {

/// Options of cumsum that PyTorch does not have.
struct CumsumOptions {
  bool exclusive = false; ///< the sum at an element excludes that element
  bool reverse = false;   ///< sum from the last element to the first
};
/// The sum of all elements up to each one. Integers and bool become i64. Every device adds the elements one after
/// another, in the order of summation, so that all devices give the same bits.
Tensor cumsum(Arg x, std::int64_t dim, CumsumOptions options = {});

/// The result of topk and sort.
struct TopK {
  Tensor values;  ///< the elements; gradients flow through them
  Tensor indices; ///< their indices in x, of the requested dtype: i32 or i64
};
/// The k largest (or smallest) elements along a dimension, in order, of numbers. 1 <= k <= size. The results are always
/// sorted: `sorted` has no effect. Equal elements are in the order of their indices, which PyTorch does not specify.
/// NaN comes last; PyTorch counts it as the greatest. Indices are i32 unless requested otherwise (PyTorch: i64); more
/// than 2^31 elements require i64. A small k costs one pass along the dimension per element, a large k as much as sort.
TopK topk(Arg x, std::int64_t k, std::int64_t dim = -1, bool largest = true, bool sorted = true, DType dtype = i32);
/// topk of all elements, ascending unless `descending`. It is always stable. The work grows as n log(n)^2.
TopK sort(Arg x, std::int64_t dim = -1, bool descending = false, DType dtype = i32);
/// The indices of sort.
Tensor argsort(Arg x, std::int64_t dim = -1, bool descending = false, DType dtype = i32);

} // namespace sluice
