// Reductions and softmax.
//
// `dim` names the dimensions to reduce, all if it is empty; each may be named once. They are removed, or keep size 1
// with `keepdim`. A reduction over the batch is over the rows of the call. Only any and all accept bool without a
// conversion.
#pragma once

#include "sluice/tensor.h"

#include <cstdint>

namespace sluice {

/// The sum. Integers and bool become i64.
Tensor sum(Arg x, Axes dim = {}, bool keepdim = false);
/// The mean of floats. Over the batch, it divides by the rows of the call, not by the capacity.
Tensor mean(Arg x, Axes dim = {}, bool keepdim = false);
/// The extreme value, or NaN if there is one: torch.amax and torch.amin. Tied elements share the gradient equally. They
/// return no indices: see argmax.
Tensor max(Arg x, Axes dim = {}, bool keepdim = false);
Tensor min(Arg x, Axes dim = {}, bool keepdim = false);
/// The index of the first maximum along one dimension, in i32 or i64; PyTorch returns i64. More than 2^31 elements
/// require i64. NaN counts as the least value; PyTorch counts it as the greatest. No gradient.
Tensor argmax(Arg x, std::int64_t dim, bool keepdim = false, DType dtype = i32);
/// The product. Integers and bool become i64. The gradient of an element is the product of all others, also if there
/// are zeros.
Tensor prod(Arg x, Axes dim = {}, bool keepdim = false);
/// Whether one element, or every element, is not 0: bool, of any dtype. No gradient.
Tensor any(Arg x, Axes dim = {}, bool keepdim = false);
Tensor all(Arg x, Axes dim = {}, bool keepdim = false);
/// The variance of n floats, sum((x - mean)^2) / (n - correction), with 0 <= correction < n. Not over the batch.
Tensor var(Arg x, Axes dim = {}, std::int64_t correction = 1, bool keepdim = false);
/// The square root of the variance. Its gradient is 0 where the variance is 0.
Tensor std(Arg x, Axes dim = {}, std::int64_t correction = 1, bool keepdim = false);
/// log(sum(exp(x))) of floats, without overflow. PyTorch requires `dim`.
Tensor logsumexp(Arg x, Axes dim = {}, bool keepdim = false);
/// exp(x) / sum(exp(x)), and its logarithm, along one dimension of floats, without overflow.
Tensor softmax(Arg x, std::int64_t dim);
Tensor log_softmax(Arg x, std::int64_t dim);

} // namespace sluice
