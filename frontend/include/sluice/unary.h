// The elementwise functions of one tensor and no further argument, as a list that declarations and definitions share.
#pragma once

#include "sluice/language.h"

/// On numbers; integers wrap as two's complement does: X(name, op of the IR)
#define SLUICE_NUMBER_FUNCTIONS(X) X(neg, NegOp) X(abs, AbsOp)

/// On f32 and f64: X(name, op of the IR)
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

/// All of them.
#define SLUICE_UNARY_FUNCTIONS(X) SLUICE_NUMBER_FUNCTIONS(X) SLUICE_FLOAT_FUNCTIONS(X)

/// Functions of two tensors of one dtype that broadcast: X(name, op of the IR). Either operand may also be a number.
/// `remainder` is exact and has the sign of b, like Python's %. It accepts integers, for which the remainder by 0 is a.
#define SLUICE_BINARY_FUNCTIONS(X)                                                                                     \
  X(add, AddOp)                                                                                                        \
  X(sub, SubOp)                                                                                                        \
  X(mul, MulOp)                                                                                                        \
  X(remainder, RemainderOp)                                                                                            \
  X(pow, PowOp)                                                                                                        \
  X(maximum, MaxOp)                                                                                                    \
  X(minimum, MinOp)

/// Likewise, with a result of bool: X(name, operator).
#define SLUICE_COMPARISONS(X) X(eq, ==) X(ne, !=) X(lt, <) X(le, <=) X(gt, >) X(ge, >=)

/// On two tensors of bool: X(name, op of the IR).
#define SLUICE_LOGICAL_FUNCTIONS(X) X(logical_and, AndOp) X(logical_or, OrOp) X(logical_xor, XorOp)
