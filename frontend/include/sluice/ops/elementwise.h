// Elementwise functions and operators. Operands broadcast, and the result has their common shape.
//
//   functions                                                       operands               result
//   neg, abs, clip, clamp, arithmetic, maximum, minimum, remainder  all dtypes but bool    the same dtype
//   pow, and all other functions of one tensor                      floats                 the same dtype
//   isnan, isinf                                                    floats                 bool
//   comparisons                                                     any dtype              bool
//   logical functions                                               bool                   bool
//   bitwise_and, bitwise_or, bitwise_xor, bitwise_not               integers and bool      the same dtype
//   bitwise_left_shift, bitwise_right_shift                         integers               the same dtype
//   cast, stop_gradient, full_like, where                           any dtype              as documented
//
// Integers wrap around. A number must be a value of the dtype that it takes; `x < 0.5` fails for an integer x.
#pragma once

#include "sluice/tensor.h"

#include <optional>

namespace sluice {

/// Each function of SLUICE_UNARY_FUNCTIONS (unary.h), under PyTorch's names.
#define SLUICE_UNARY(name, op) Tensor name(Arg x);
SLUICE_UNARY_FUNCTIONS(SLUICE_UNARY)
#undef SLUICE_UNARY

/// x where x > 0, negative_slope * x elsewhere.
Tensor leaky_relu(Arg x, double negative_slope = 0.01);
/// x where x > 0, alpha * (exp(x) - 1) elsewhere.
Tensor elu(Arg x, double alpha = 1.0);
/// The formula of gelu: exact, by erf, or PyTorch's approximation by tanh.
enum class Gelu { none, tanh };
/// Gaussian error linear unit: x * Phi(x).
Tensor gelu(Arg x, Gelu approximate = Gelu::none);

/// min(max(x, min), max). An absent bound bounds nothing. Bounds of integers must be whole numbers. A minimum above the
/// maximum is an error; PyTorch then returns the maximum. The gradient is 0 at a bound, beyond it, and at NaN.
Tensor clip(Arg x, std::optional<double> min = {}, std::optional<double> max = {});
Tensor clamp(Arg x, std::optional<double> min = {}, std::optional<double> max = {});

/// Changes the dtype (x.to(dtype)). Floats to integers round toward zero. Values beyond the range saturate and NaN
/// becomes 0, which PyTorch leaves undefined. Every value but 0 becomes true.
Tensor cast(Arg x, DType dtype);
/// x itself, of floats only; nn::Identity calls it.
Tensor identity(Arg x);
/// x without a gradient: Tensor::detach.
Tensor stop_gradient(Arg x);
/// True where x is false. PyTorch also accepts numbers.
Tensor logical_not(Arg x);

/// Functions of two operands, one of which may be a number. SLUICE_BINARY_FUNCTIONS (unary.h) lists the arithmetic
/// ones. `div` is PyTorch's true division. SLUICE_COMPARISONS lists the comparisons: false with a NaN, except `ne`.
#define SLUICE_BINARY(name, op)                                                                                        \
  Tensor name(Arg a, Arg b);                                                                                           \
  Tensor name(Arg a, double b);                                                                                        \
  Tensor name(double a, Arg b);
SLUICE_BINARY_FUNCTIONS(SLUICE_BINARY)
SLUICE_BINARY(div, )
#define SLUICE_COMPARISON(name, symbol) SLUICE_BINARY(name, )
SLUICE_COMPARISONS(SLUICE_COMPARISON)
#undef SLUICE_COMPARISON
/// bitwise_and, bitwise_or and bitwise_xor. On bool they are the logical functions.
SLUICE_BITWISE_FUNCTIONS(SLUICE_BINARY)
/// bitwise_left_shift wraps around; bitwise_right_shift is arithmetic for signed dtypes. A shift count that is negative
/// or at least the width of the dtype shifts out all bits: the result is 0, or -1 for a right shift of a negative
/// integer.
SLUICE_SHIFT_FUNCTIONS(SLUICE_BINARY)
#undef SLUICE_BINARY
/// Each bit inverted: -1 - x for signed integers, 255 - x for u8, and logical_not for bool.
Tensor bitwise_not(Arg x);

/// logical_and, logical_or and logical_xor. PyTorch also accepts numbers.
#define SLUICE_LOGICAL(name, op) Tensor name(Arg a, Arg b);
SLUICE_LOGICAL_FUNCTIONS(SLUICE_LOGICAL)
#undef SLUICE_LOGICAL

/// neg.
Tensor operator-(Arg x);
/// bitwise_not.
Tensor operator~(Arg x);
/// add, sub, mul, div, remainder (%), the comparisons, bitwise_and (&), bitwise_or (|), bitwise_xor (^) and the shifts as
/// operators, with the same overloads.
#define SLUICE_OPERATOR(symbol)                                                                                        \
  Tensor operator symbol(Arg a, Arg b);                                                                                \
  Tensor operator symbol(Arg a, double b);                                                                             \
  Tensor operator symbol(double a, Arg b);
SLUICE_OPERATOR(+)
SLUICE_OPERATOR(-)
SLUICE_OPERATOR(*)
SLUICE_OPERATOR(/)
SLUICE_OPERATOR(%)
SLUICE_OPERATOR(&)
SLUICE_OPERATOR(|)
SLUICE_OPERATOR(^)
SLUICE_OPERATOR(<<)
SLUICE_OPERATOR(>>)
#define SLUICE_COMPARISON(name, symbol) SLUICE_OPERATOR(symbol)
SLUICE_COMPARISONS(SLUICE_COMPARISON)
#undef SLUICE_COMPARISON
#undef SLUICE_OPERATOR

/// Makes the handle x refer to the result, which must have the shape and dtype of x. Returns x. Unlike in PyTorch,
/// other handles and states keep their value; Tensor::copy_ changes a state.
#define SLUICE_ASSIGNMENT(symbol)                                                                                      \
  Tensor &operator symbol(AssignedArg x, Arg y);                                                                       \
  Tensor &operator symbol(AssignedArg x, double y);
SLUICE_ASSIGNMENT(+=)
SLUICE_ASSIGNMENT(-=)
SLUICE_ASSIGNMENT(*=)
SLUICE_ASSIGNMENT(/=)
#undef SLUICE_ASSIGNMENT

/// logical_not. Errors of `!x` name the line that created x. `&&` and `||` are not overloaded: they test whether tensors
/// exist. `&`, `|` and `^` of bool are the logical functions.
Tensor operator!(const Tensor &x);

/// a where the condition, of bool, is true; b elsewhere. Of two numbers, the result has the dtype of the graph's
/// parameters.
Tensor where(Arg condition, Arg a, Arg b);
Tensor where(Arg condition, Arg a, double b);
Tensor where(Arg condition, double a, Arg b);
Tensor where(Arg condition, double a, double b);

/// A constant with the shape, including the batch, and the dtype of x.
Tensor full_like(Arg x, double value);
Tensor zeros_like(Arg x);
Tensor ones_like(Arg x);

} // namespace sluice
