// Elementwise functions and operators.
#pragma once

#include "sluice/tensor.h"

#include <optional>

namespace sluice {

#define SLUICE_UNARY(name, op) Tensor name(Arg x);
SLUICE_UNARY_FUNCTIONS(SLUICE_UNARY)
#undef SLUICE_UNARY

Tensor leaky_relu(Arg x, double negative_slope = 0.01);
Tensor elu(Arg x, double alpha = 1.0);
enum class Gelu { none, tanh };
/// Gaussian error linear unit, exact (by erf) or by PyTorch's tanh approximation.
Tensor gelu(Arg x, Gelu approximate = Gelu::none);
/// min(max(x, min), max); an absent bound bounds nothing. Bounds of integers are whole numbers. No gradient flows where
/// x is at a bound or beyond.
Tensor clip(Arg x, std::optional<double> min = {}, std::optional<double> max = {});
Tensor clamp(Arg x, std::optional<double> min = {}, std::optional<double> max = {});
/// Changes the dtype: floats to integers round towards zero and saturate; anything but 0 is true.
Tensor cast(Arg x, DType dtype);
Tensor identity(Arg x);
Tensor stop_gradient(Arg x);
Tensor logical_not(Arg x);

#define SLUICE_BINARY(name, op)                                                                                        \
  Tensor name(Arg a, Arg b);                                                                                           \
  Tensor name(Arg a, double b);                                                                                        \
  Tensor name(double a, Arg b);
SLUICE_BINARY_FUNCTIONS(SLUICE_BINARY)
SLUICE_BINARY(div, )
#define SLUICE_COMPARISON(name, symbol) SLUICE_BINARY(name, )
SLUICE_COMPARISONS(SLUICE_COMPARISON)
#undef SLUICE_COMPARISON
#undef SLUICE_BINARY

#define SLUICE_LOGICAL(name, op) Tensor name(Arg a, Arg b);
SLUICE_LOGICAL_FUNCTIONS(SLUICE_LOGICAL)
#undef SLUICE_LOGICAL

Tensor operator-(Arg x);
#define SLUICE_OPERATOR(symbol)                                                                                        \
  Tensor operator symbol(Arg a, Arg b);                                                                                \
  Tensor operator symbol(Arg a, double b);                                                                             \
  Tensor operator symbol(double a, Arg b);
SLUICE_OPERATOR(+)
SLUICE_OPERATOR(-)
SLUICE_OPERATOR(*)
SLUICE_OPERATOR(/)
#define SLUICE_COMPARISON(name, symbol) SLUICE_OPERATOR(symbol)
SLUICE_COMPARISONS(SLUICE_COMPARISON)
#undef SLUICE_COMPARISON
#undef SLUICE_OPERATOR

/// Makes the handle x stand for the result, whose shape and dtype must be those of x; other handles keep the value that
/// they had, and so does a state (Tensor::copy_ changes one). Gives x.
#define SLUICE_ASSIGNMENT(symbol)                                                                                      \
  Tensor &operator symbol(AssignedArg x, Arg y);                                                                       \
  Tensor &operator symbol(AssignedArg x, double y);
SLUICE_ASSIGNMENT(+=)
SLUICE_ASSIGNMENT(-=)
SLUICE_ASSIGNMENT(*=)
SLUICE_ASSIGNMENT(/=)
#undef SLUICE_ASSIGNMENT

/// logical_not, logical_and, logical_or and logical_xor, of bool. `!x` is told as of the line of x. (`&&` and `||` are
/// C++'s own, and ask whether there are tensors.)
Tensor operator!(const Tensor &x);
Tensor operator&(Arg a, Arg b);
Tensor operator|(Arg a, Arg b);
Tensor operator^(Arg a, Arg b);

/// a where the condition holds, b elsewhere.
Tensor where(Arg condition, Arg a, Arg b);
Tensor where(Arg condition, Arg a, double b);
Tensor where(Arg condition, double a, Arg b);
/// Of the dtype of the graph's parameters.
Tensor where(Arg condition, double a, double b);

/// A constant of x's shape, its batch too, and of its dtype.
Tensor full_like(Arg x, double value);
Tensor zeros_like(Arg x);
Tensor ones_like(Arg x);

} // namespace sluice
