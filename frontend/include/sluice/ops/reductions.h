// Reductions and softmax.
#pragma once

#include "sluice/tensor.h"

#include <cstdint>

namespace sluice {

/// Of integers and bool, i64.
Tensor sum(Arg x, Axes dim = {}, bool keepdim = false);
/// Divides by the elements there are: for the batch, its rows. Of floats only.
Tensor mean(Arg x, Axes dim = {}, bool keepdim = false);
/// Elements that tie share the gradient equally (PyTorch's amax and amin).
Tensor max(Arg x, Axes dim = {}, bool keepdim = false);
Tensor min(Arg x, Axes dim = {}, bool keepdim = false);
/// Index of the first maximum, in i32 or i64. More than 2^31 elements require i64.
Tensor argmax(Arg x, std::int64_t dim, bool keepdim = false, DType dtype = i32);
/// Of integers and bool, i64. The gradient of an element is the product of all others, where there are zeros too.
Tensor prod(Arg x, Axes dim = {}, bool keepdim = false);
/// Whether one element, or all, are not 0.
Tensor any(Arg x, Axes dim = {}, bool keepdim = false);
Tensor all(Arg x, Axes dim = {}, bool keepdim = false);
/// sum((x - mean)^2) / (n - correction), of n elements: 1 is that of a sample, 0 that of all there is. Not over the
/// batch.
Tensor var(Arg x, Axes dim = {}, std::int64_t correction = 1, bool keepdim = false);
/// The square root of the variance. No gradient flows where the variance is 0.
Tensor std(Arg x, Axes dim = {}, std::int64_t correction = 1, bool keepdim = false);
/// log(sum(exp(x))), computed without overflow.
Tensor logsumexp(Arg x, Axes dim = {}, bool keepdim = false);
Tensor softmax(Arg x, std::int64_t dim);
Tensor log_softmax(Arg x, std::int64_t dim);

} // namespace sluice
