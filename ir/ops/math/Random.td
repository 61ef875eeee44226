// Random numbers: Threefry-2x32 on (key, index of the element in the whole tensor); see ir/ops/math/Random.cpp for the
// formulas.
#ifndef SLUICE_IR_RANDOM
#define SLUICE_IR_RANDOM

include "ir/Base.td"

class Sluice_Threefry<string mnemonic> :
    Sluice_ValueOp<mnemonic, [DeclareOpInterfaceMethods<ElementOp>,
        DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>]> {
  string threefry = [{
    Threefry-2x32 with 20 rounds encrypts a block (x, y) of 32-bit words with a key (k0, k1). With
    k2 = k0 ^ k1 ^ 0x1BD11BDA, it begins with x += k0 and y += k1. Then, for g = 0 to 4, it does four rounds
    `x += y; y = rotl(y, r) ^ x`, where r is 13, 15, 26, 6 for even g and 17, 29, 16, 24 for odd g, followed by
    x += k[(g + 1) mod 3] and y += k[(g + 2) mod 3] + g + 1.

    The key is the operand [2]. For a stream s other than 0, it is the encryption of (upper half of s, lower half of s)
    with the operand. Elements are numbered i in row-major order of logical indices. For a result of n elements without
    `?`, let h = n / 2, rounded up, and j = i mod h. The block (j, h + j) is encrypted, or (j, 0) if h + j is n; the
    bits are x if i < h, and y otherwise. For a result with `?`, the block (upper half of i, lower half of i) is
    encrypted, and the bits are x ^ y.
  }];
  let description = threefry;
  let rows = "Dimension 0 of the result may be `?`. The bits then do not depend on the number of rows.";
}
class Sluice_Random<string mnemonic, string a, string b> : Sluice_Threefry<mnemonic> {
  string fraction = threefry # [{
    The fraction is u = (bits >> 9) / 2^23.

    With `wide`, an element has 64 bits, those of JAX for f64. Without `?`, the block (i, n + i) is encrypted; with `?`,
    the block is as above. The bits are 2^32 * x + y, and the fraction is u = (bits >> 12) / 2^52. The number is
    computed in f64 and rounded once.
  }];
  let rounding = [{
    The random bits are equal on all targets; the last step is rounded in the element type. Without `wide`, f64 has as
    many random bits as f32.
  }];
  let arguments = (ins RankedTensorOf<[I32]>:$key,
                       Arg<I64Attr, "the number of an independent sequence of the same key">:$stream,
                       Arg<F64Attr, a>:$a, Arg<F64Attr, b>:$b, Sluice_ResultType:$type,
                       Arg<UnitAttr, "draw 64 bits for each element">:$wide);
  let results = (outs Sluice_FloatTensor:$y);
}
def RandomBitsOp : Sluice_Threefry<"random_bits"> {
  let summary = "32 random bits for each element from a key [2] (jax.random.bits)";
  let description = threefry # [{

    For stream 0, the bits are those of JAX's default generator; of a result [2 n], row i of [n, 2] is the key i into
    which JAX splits a key.
  }];
  let rounding = "None: the bits are equal on all targets.";
  let arguments = (ins RankedTensorOf<[I32]>:$key,
                       Arg<I64Attr, "the number of an independent sequence of the same key">:$stream,
                       Sluice_ResultType:$type);
  let results = (outs RankedTensorOf<[I32]>:$y);
}
def UniformOp : Sluice_Random<"uniform", "the lower bound, inclusive", "the upper bound, exclusive"> {
  let summary = "uniform in [a, b) from a key [2]: max(a, u * (b - a) + a) (torch.rand)";
  let description = fraction # [{

    a, b and b - a are rounded to the type in which the number is computed. For stream 0, the numbers are those of JAX's
    default generator.
  }];
}
def NormalOp : Sluice_Random<"normal", "the mean", "the standard deviation"> {
  let summary = "normal with mean a and standard deviation b from a key [2] (torch.normal)";
  string erfinv = [{

    The result is sqrt(2) * erfinv(v) * b + a with v = 2 * u - 1 + 2^-24. erfinv(v) is Giles' polynomial p(w) * v with w
    = -log((1 - v) * (1 + v)). For w < 5, p is in w - 2.5 with the coefficients, highest power first, 2.81022636e-08,
    3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164, 0.246640727,
    1.50140941; otherwise, p is in sqrt(w) - 3 with -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844,
    0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682.

    With `wide`, v = 2 * u - 1 + 2^-53, and erfinv has a relative error of at most 1e-14. The reference function has the
    polynomials of Giles for double precision. The logarithm is computed by portable arithmetic, so that normal numbers
    are equal on all targets.
  }];
  let description = fraction # erfinv;
}
def BernoulliOp : Sluice_ValueOp<"bernoulli",
    [DeclareOpInterfaceMethods<ElementOp>, DeclareOpInterfaceMethods<RowFlowOp, ["expandForReplicas"]>, NoGradient]> {
  let summary = "true with probability p, from a key [2]: u < p (torch.bernoulli)";
  let description = [{
    u is the fraction of `uniform` from other bits: the block (row, place) is encrypted with the key (k0 + 0x85EBCA77 *
    stream, k1), and the bits are x ^ y. row is the index in dimension `?`, plus `first` if given, and 0 without `?`.
    place is the number of the element within its row, in row-major order of logical indices. So an element depends
    neither on the number of rows nor on the replica that has them.
  }];
  let rows = "Any dimension of the result may be `?`.";
  let rounding = "None: the bits are equal on all targets.";
  let arguments = (ins RankedTensorOf<[I32]>:$key,
                       Arg<Optional<RankedTensorOf<[I64]>>,
                       "the number of the first row of this replica; a scalar">:$first,
                       Arg<I64Attr, "the number of an independent sequence of the same key">:$stream,
                       Arg<F64Attr, "within [0, 1]">:$p, Sluice_ResultType:$type);
  let results = (outs Sluice_BoolTensor:$y);
  let extraClassDeclaration = typeCompatibility #
      "static ::sluice::ir::FusionKind getFusionKind() { return ::sluice::ir::FusionKind::Injective; }";
}
def DropoutOp : Sluice_ValueOp<"dropout", [DeclareOpInterfaceMethods<DifferentiableOp>,
    DeclareOpInterfaceMethods<CompositeOp, ["isExpandedEarly"]>, DeclareOpInterfaceMethods<ModeOp, ["getUnchanged"]>,
        RowFlowOp, FollowsPrecision]> {
  let summary = "x; in training, 0 with probability p and x / (1 - p) otherwise (torch.nn.functional.dropout)";
  let description = [{
    With `training`, an element is 0 where `bernoulli` with the same key, stream and p and the shape of x is true, and x
    * (1 / (1 - p)) elsewhere. The op is expanded into these before ops are placed. The drawn numbers are not stored:
    the gradient is the same op on dY.
  }];
  let rows = "Any dimension may be `?`.";
  let rounding = "That of the ops that it is expanded into; backends never receive it. Halves are scaled in f32.";
  let arguments = (ins Sluice_FloatTensor:$x, RankedTensorOf<[I32]>:$key, Arg<F64Attr, "within [0, 1]">:$p,
                       Arg<I64Attr, "the number of an independent sequence of the same key">:$stream,
                       Arg<UnitAttr, "drop elements">:$training);
  let results = (outs Sluice_FloatTensor:$y);
}

#endif
