// The functions on tensors, under PyTorch's names, argument order and defaults; comments name the differences.
//
//   Broadcasting   NumPy's rules.
//   dtypes         Two tensors must have one dtype: convert with x.to(dtype). A number takes the dtype of the other
//                  operand. There are two implicit conversions. `/` and `div` convert integers and bool to the dtype
//                  of the graph's parameters (f32 unless set). sum, prod and cumsum convert them to i64.
//   Floats         f32, f64, f16 and bf16. f16 and bf16 compute in f32, and each result is rounded once.
//   Dimensions     A negative dimension counts from the end.
//   Batch          The dimension without a size. "Not the batch" below: the function fails for it, because it would mix
//                  or count its rows.
//   Errors         Error with code 2, at the line of the call and with the shapes of all operands. It is thrown if a
//                  tensor is empty, belongs to another graph or to a step or branch that has ended; if operands are
//                  fixed on two devices; and if a dtype, shape or argument violates the comment.
//   Gradients      Flow through every function unless its comment says otherwise.
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

/// The gradients of a float scalar with respect to values that it depends on: parameters, copies, inputs or
/// intermediate values. As with torch.autograd.grad, a gradient has the shape, dtype and device of its value. A graph
/// may output gradients, compute another loss from them, or write values computed from them (Tensor::copy_).
///
///     std::vector<Tensor> gradients = grad(loss, {weight, bias});
///
/// In training, these are the gradients of the values that a training step computes; elsewhere, of those that `predict`
/// computes. Fails if a value is no float, has requires_grad(false), or does not affect the loss. All ops have second
/// gradients except batch norm with per-replica statistics, which is an error when the graph is compiled.
std::vector<Tensor> grad(Arg loss, const std::vector<Tensor> &values);

/// Makes the call that computed x run on a device. Returns x. Graph::set_copies decides about the copies that this
/// requires. Fails for inputs, states, constants and copies, which no call computes, and for a value that is fixed on
/// another device. PyTorch has no equivalent.
Tensor pin(Arg x, const Device &device);

} // namespace sluice
