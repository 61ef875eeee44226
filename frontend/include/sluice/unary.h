// Lists of elementwise functions, which declarations and definitions share. Their formulas are in the reference of ops.
// Functions without a gradient: sign, floor, ceil, round, isnan and isinf.
#pragma once

#include "sluice/language.h"

/// Of all dtypes but bool: X(name, op of the IR). The least integer is its own `neg` and `abs`. The gradient of `abs`
/// at 0 is 0.
#define SLUICE_NUMBER_FUNCTIONS(X) X(neg, NegOp) X(abs, AbsOp)

/// Of floats: X(name, op of the IR). isnan and isinf return bool, all others the dtype of x. `round` rounds halves to
/// even. `softplus` is log(1 + exp(x)), PyTorch's with its defaults but without a threshold.
#define SLUICE_FLOAT_FUNCTIONS(X)                                                                                      \
  X(sign, SignOp)                                                                                                      \
  X(exp, ExpOp)                                                                                                        \
  X(log, LogOp)                                                                                                        \
  X(expm1, Expm1Op)                                                                                                    \
  X(log1p, Log1pOp)                                                                                                    \
  X(sqrt, SqrtOp)                                                                                                      \
  X(rsqrt, RsqrtOp)                                                                                                    \
  X(reciprocal, ReciprocalOp)                                                                                          \
  X(square, SquareOp)                                                                                                  \
  X(sin, SinOp)                                                                                                        \
  X(cos, CosOp)                                                                                                        \
  X(asin, AsinOp)                                                                                                      \
  X(acos, AcosOp)                                                                                                      \
  X(atan, AtanOp)                                                                                                      \
  X(sinh, SinhOp)                                                                                                      \
  X(cosh, CoshOp)                                                                                                      \
  X(asinh, AsinhOp)                                                                                                    \
  X(acosh, AcoshOp)                                                                                                    \
  X(atanh, AtanhOp)                                                                                                    \
  X(tanh, TanhOp)                                                                                                      \
  X(sigmoid, SigmoidOp)                                                                                                \
  X(erf, ErfOp)                                                                                                        \
  X(relu, ReluOp)                                                                                                      \
  X(relu6, Relu6Op)                                                                                                    \
  X(silu, SiluOp)                                                                                                      \
  X(softplus, SoftplusOp)                                                                                              \
  X(hardsigmoid, HardsigmoidOp)                                                                                        \
  X(hardswish, HardswishOp)                                                                                            \
  X(floor, FloorOp)                                                                                                    \
  X(ceil, CeilOp)                                                                                                      \
  X(round, RoundOp)                                                                                                    \
  X(isnan, IsNanOp)                                                                                                    \
  X(isinf, IsInfOp)

/// All functions of one tensor.
#define SLUICE_UNARY_FUNCTIONS(X) SLUICE_NUMBER_FUNCTIONS(X) SLUICE_FLOAT_FUNCTIONS(X)

/// Functions of two operands: X(name, op of the IR). `maximum` and `minimum` return NaN if an operand is NaN, and tied
/// operands share the gradient equally. `remainder` is exact and has the sign of b, like Python's %. Integers by 0 give
/// a; PyTorch raises an error. `pow` is of floats only.
#define SLUICE_BINARY_FUNCTIONS(X)                                                                                     \
  X(add, AddOp)                                                                                                        \
  X(sub, SubOp)                                                                                                        \
  X(mul, MulOp)                                                                                                        \
  X(remainder, RemainderOp)                                                                                            \
  X(pow, PowOp)                                                                                                        \
  X(maximum, MaxOp)                                                                                                    \
  X(minimum, MinOp)

/// Comparisons: X(name, operator).
#define SLUICE_COMPARISONS(X) X(eq, ==) X(ne, !=) X(lt, <) X(le, <=) X(gt, >) X(ge, >=)

/// Functions of two tensors of bool: X(name, op of the IR).
#define SLUICE_LOGICAL_FUNCTIONS(X) X(logical_and, AndOp) X(logical_or, OrOp) X(logical_xor, XorOp)

/// Functions of the bits of integers and bool: X(name, op of the IR).
#define SLUICE_BITWISE_FUNCTIONS(X) X(bitwise_and, AndOp) X(bitwise_or, OrOp) X(bitwise_xor, XorOp)

/// Shifts of integers by integers: X(name, op of the IR).
#define SLUICE_SHIFT_FUNCTIONS(X) X(bitwise_left_shift, ShiftLeftOp) X(bitwise_right_shift, ShiftRightOp)
