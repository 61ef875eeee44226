// The layers of torch.nn, with its argument names, defaults, parameter names and initial values.
//
//   struct Net : nn::Module {
//     using Module::Module;
//     nn::Conv2d conv{this, "conv", 1, 8, 3, {.padding = 1}};   // conv.weight, conv.bias
//     Tensor forward(Tensor x) override { return relu(conv(x)); }
//   };
//
//   parent    the module that holds the layer, usually `this`; null throws Error
//   name      the layer's part of the names of its parameters: not empty, without '.', '*', '"' or space
//   options   a struct; set members by name. Its members are PyTorch's keyword arguments
//   where     the line for error messages; leave it out
//   forward   called by operator(). Shapes, dtypes and errors are those of the function that the comment names
//   weight    and other parameters have the dtype of the graph (Graph::set_dtype) and static shapes. x has the same
//             dtype. A parameter that the options omit is an empty tensor
//   Error     (code 2) is thrown by a constructor for sizes below 1, a name in use, and what its comment states
#pragma once

#include "sluice/layers/activations.h"
#include "sluice/layers/attention.h"
#include "sluice/layers/convolution.h"
#include "sluice/layers/linear.h"
#include "sluice/layers/norms.h"
#include "sluice/layers/pools.h"
#include "sluice/layers/recurrent.h"
#include "sluice/layers/sequential.h"
