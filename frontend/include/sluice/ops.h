// The functions on tensors, under PyTorch's names and rules. Tensors broadcast as in NumPy; two tensors of different
// dtypes are an error (convert with `x.to(dtype)`); a number takes the dtype of the tensor beside it. `/` and `div`
// divide truly: integers and bool become the dtype of the graph's parameters (f32 unless set) first.
#pragma once

#include "sluice/ops/control.h"
#include "sluice/ops/elementwise.h"
#include "sluice/ops/indexing.h"
#include "sluice/ops/losses.h"
#include "sluice/ops/methods.h"
#include "sluice/ops/norms.h"
#include "sluice/ops/order.h"
#include "sluice/ops/products.h"
#include "sluice/ops/reductions.h"
#include "sluice/ops/shape.h"
#include "sluice/ops/windows.h"
#include "sluice/tensor.h"

#include <vector>

namespace sluice {

/// The gradients of a scalar with respect to values that it depends on: parameters, copies, inputs or intermediate
/// values. As with torch.autograd.grad, a gradient has the shape, dtype and device of its value. A graph may report
/// gradients, or write values computed from them into parameters (Tensor::copy_). It may also compute another loss from
/// them. All ops have gradients of gradients except batch norm with statistics of each replica's own rows. That is an
/// error at the line of this call when the graph is compiled. In training, these are the gradients of the values that a
/// training step computes; elsewhere, of those that `predict` computes.
///
///     std::vector<Tensor> gradients = grad(loss, {weight, bias});
std::vector<Tensor> grad(Arg loss, const std::vector<Tensor> &values);

/// Makes the call that computed x work on a device; gives x. What crosses for it follows `Graph::set_copies`. Inputs,
/// states, constants and copies are not computed, and values fixed elsewhere cannot be.
Tensor pin(Arg x, const Device &device);

} // namespace sluice
