// Elementwise ops. Each entry has the evaluation on doubles, the body on vectors, and the gradient.
//
// In `reference`, a and b are doubles. In `body`, a and b are `Lane`s: scalars or vectors with operators
// (ir/build/Lane.h). In `gradient`, a, b, y and dY are `Node`s: tensor values with operators (ir/build/Node.h); the
// result is dA, or dA and dB.
#ifndef SLUICE_IR_ELEMENTWISE
#define SLUICE_IR_ELEMENTWISE

include "ir/Base.td"

class Sluice_Elementwise<string mnemonic, list<Trait> traits = []>
    : Sluice_ValueOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<ElementwiseOp>, RowFlowOp], traits)> {
  let description = [{
    Operands and result have one shape. Each element of the result depends on the elements of the operands at its index.
    PyTorch's function has the same name unless the summary gives another one.
  }];
  let rows = "Any dimension may be `?`.";
  let rounding = [{
    In the element type, to nearest even. Sums, differences, products, quotients and square roots are IEEE's, each
    rounded separately. *Accuracy* lists the errors of other functions. Integers wrap around.
  }];
}

class UnaryMeaning<string ref, string lanes> {
  code text = [{
    double $cppClass::evaluateElement(::llvm::ArrayRef<double> in) { [[maybe_unused]] double a = in[0]; return }] # ref
        # [{; }
    ::mlir::Value $cppClass::buildBody(::mlir::OpBuilder &b_, ::mlir::Location loc_, ::mlir::ValueRange in) {
      [[maybe_unused]] Lane a(b_, loc_, in[0]); return }] # lanes # [{; }
    ::llvm::SmallVector<HostTensor> $cppClass::evaluate(::llvm::ArrayRef<HostTensor> operands, int64_t rows)
        { return evaluateElementwise(*this, operands, rows); }
  }];
}

// a -> y of the same type, without a gradient.
class Sluice_UnaryPlain<string mnemonic, string about, TypeConstraint type, string ref, string lanes,
    list<Trait> traits = []>
    : Sluice_Elementwise<mnemonic, traits> {
  let summary = about;
  let arguments = (ins type:$a);
  let results = (outs type:$y);
  let extraClassDefinition = UnaryMeaning<ref, lanes>.text # [{
    ::mlir::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *, std::optional<::mlir::Location>,
        ::mlir::ValueRange operands, ::mlir::DictionaryAttr, ::mlir::OpaqueProperties, ::mlir::RegionRange,
            ::llvm::SmallVectorImpl<::mlir::Type> &types)
                { types.push_back(withoutEncoding(operands[0].getType())); return ::mlir::success(); }
  }];
}

// With `wide` = "widened", the gradient of halves is computed in f32 and rounded once: for functions of several steps.
class Sluice_Unary<string mnemonic, string about, string ref, string lanes, string grad, string range = "{-2.0, 2.0}",
    TypeConstraint type = Sluice_FloatTensor, list<Trait> traits = [], string wide = "">
    : Sluice_Elementwise<mnemonic, !listconcat([DeclareOpInterfaceMethods<DifferentiableOp>], traits)> {
  let summary = about;
  let arguments = (ins type:$a);
  let results = (outs type:$y);
  code attributesOfSample = "";
  let extraClassDefinition = UnaryMeaning<ref, lanes>.text # [{
    ::mlir::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *, std::optional<::mlir::Location>,
        ::mlir::ValueRange operands, ::mlir::DictionaryAttr, ::mlir::OpaqueProperties, ::mlir::RegionRange,
            ::llvm::SmallVectorImpl<::mlir::Type> &types)
                { types.push_back(withoutEncoding(operands[0].getType())); return ::mlir::success(); }
    ::llvm::SmallVector<::mlir::Value> $cppClass::buildGradient(::mlir::OpBuilder &b_, ::mlir::ValueRange dResults) {
      [[maybe_unused]] Node a = }] # wide # [{(Node(b_, getLoc(), getA())), y = }] # wide #
          [{(Node(b_, getLoc(), getY())), dY = }] # wide # [{(Node(b_, getLoc(), dResults[0]));
      return {castTo(}] # grad # [{, elementOf(getA()))}; }
    ::llvm::SmallVector<Sample> $cppClass::samples()
        { return {{"\"sluice.}] # mnemonic # [{\"(%0) }] # attributesOfSample #
            [{ : (tensor<3x5xf64>) -> tensor<3x5xf64>", {}] # range # [{}}}; }
  }];
}

def NegOp : Sluice_Unary<"neg", "-a", "-a", "-a", "-dY", "{-2.0, 2.0}", Sluice_NumberTensor,
    traits = [DeclareOpInterfaceMethods<LinearOp>, FollowsPrecision]>;
def AbsOp : Sluice_Unary<"abs", "|a|; gradient 0 at 0; the least integer is its own result", "std::fabs(a)", "abs(a)",
    "dY * sign(a)", "{-2.0, 2.0}", Sluice_NumberTensor, traits = [FollowsPrecision]>;
def ExpOp : Sluice_Unary<"exp", "e^a", "std::exp(a)", "exp(a)", "dY * y">;
def LogOp : Sluice_Unary<"log", "natural logarithm", "std::log(a)", "log(a)", "dY / a", "{0.2, 3.0}">;
def Log1pOp : Sluice_Unary<"log1p", "log(1 + a)", "std::log1p(a)", "log1p(a)", "dY / (a + 1.0)", "{-0.5, 3.0}">;
def Expm1Op : Sluice_Unary<"expm1", "e^a - 1, accurate near 0", "std::expm1(a)", "expm1(a)", "dY * exp(a)">;
def SqrtOp : Sluice_Unary<"sqrt", "square root", "std::sqrt(a)", "sqrt(a)", "dY * 0.5 / y", "{0.2, 3.0}">;
def RsqrtOp : Sluice_Unary<"rsqrt", "1 / sqrt(a)", "1.0 / std::sqrt(a)", "1.0 / sqrt(a)", "dY * -0.5 * y / a",
    "{0.2, 3.0}">;
def ReciprocalOp : Sluice_Unary<"reciprocal", "1 / a", "1.0 / a", "1.0 / a", "-dY * y * y", "{0.3, 3.0}">;
def SquareOp : Sluice_Unary<"square", "a * a", "a * a", "a * a", "dY * a * 2.0">;
def SinOp : Sluice_Unary<"sin", "sine", "std::sin(a)", "sin(a)", "dY * cos(a)">;
def CosOp : Sluice_Unary<"cos", "cosine", "std::cos(a)", "cos(a)", "-dY * sin(a)">;
def AsinOp : Sluice_Unary<"asin", "arc sine; NaN outside of [-1, 1]", "std::asin(a)", "asin(a)",
    "dY / sqrt((1.0 - a) * (1.0 + a))", "{-0.9, 0.9}", wide = "widened">;
def AcosOp : Sluice_Unary<"acos", "arc cosine; NaN outside of [-1, 1]", "std::acos(a)", "acos(a)",
    "-dY / sqrt((1.0 - a) * (1.0 + a))", "{-0.9, 0.9}", wide = "widened">;
def AtanOp : Sluice_Unary<"atan", "arc tangent", "std::atan(a)", "atan(a)", "dY / (1.0 + a * a)", wide = "widened">;
def SinhOp : Sluice_Unary<"sinh", "hyperbolic sine", "std::sinh(a)", "sinh(a)", "dY * cosh(a)">;
def CoshOp : Sluice_Unary<"cosh", "hyperbolic cosine", "std::cosh(a)", "cosh(a)", "dY * sinh(a)">;
def AsinhOp : Sluice_Unary<"asinh", "inverse of sinh", "std::asinh(a)", "asinh(a)", "dY / sqrt(a * a + 1.0)",
    wide = "widened">;
def AcoshOp : Sluice_Unary<"acosh", "nonnegative inverse of cosh; NaN below 1", "std::acosh(a)", "acosh(a)",
    "dY / sqrt((a - 1.0) * (a + 1.0))", "{1.2, 3.0}", wide = "widened">;
def AtanhOp : Sluice_Unary<"atanh", "inverse of tanh; NaN outside of [-1, 1]", "std::atanh(a)", "atanh(a)",
    "dY / ((1.0 - a) * (1.0 + a))", "{-0.9, 0.9}", wide = "widened">;
def TanhOp : Sluice_Unary<"tanh", "hyperbolic tangent", "std::tanh(a)", "tanh(a)", "dY * (1.0 - y * y)",
    traits = [FollowsPrecision], wide = "widened">;
def SigmoidOp : Sluice_Unary<"sigmoid", "1 / (1 + e^-a)", "1.0 / (1.0 + std::exp(-a))", "sigmoid(a)",
    "dY * y * (1.0 - y)", traits = [FollowsPrecision], wide = "widened">;
def ErfOp : Sluice_Unary<"erf", "error function", "std::erf(a)", "erf(a)", "dY * exp(-a * a) * 1.1283791670955126">;
def ReluOp : Sluice_Unary<"relu", "max(a, 0); gradient 0 at 0", "std::isnan(a) ? a : a > 0 ? a : 0.0", "max(a, 0.0)",
    "where(y > 0.0, dY, 0.0)", traits = [FollowsPrecision]>;
def SiluOp : Sluice_Unary<"silu", "a * sigmoid(a)", "a / (1.0 + std::exp(-a))", "a / (1.0 + exp(-a))",
    "dY * (sigmoid(a) + y * (1.0 - sigmoid(a)))", traits = [FollowsPrecision], wide = "widened">;
def SoftplusOp : Sluice_Unary<"softplus", "log(1 + e^a), computed without overflow",
    "larger(a, 0.0) + std::log1p(std::exp(-std::fabs(a)))", "max(a, 0.0) + log1p(exp(-abs(a)))", "dY * sigmoid(a)">;
def HardswishOp : Sluice_Unary<"hardswish", "a * min(max(a + 3, 0), 6) / 6",
    "a * smaller(larger(a + 3.0, 0.0), 6.0) / 6.0", "a * min(max(a + 3.0, 0.0), 6.0) / 6.0",
    "where(a <= -3.0, 0.0, where(a >= 3.0, dY, dY * (a / 3.0 + 0.5)))", "{-4.0, 4.0}", traits = [FollowsPrecision],
        wide = "widened">;
def HardsigmoidOp : Sluice_Unary<"hardsigmoid", "min(max(a + 3, 0), 6) / 6",
    "smaller(larger(a + 3.0, 0.0), 6.0) / 6.0", "min(max(a + 3.0, 0.0), 6.0) / 6.0",
    "where(a <= -3.0, 0.0, where(a >= 3.0, 0.0, dY / 6.0))", "{-4.0, 4.0}", traits = [FollowsPrecision],
        wide = "widened">;
def IdentityOp : Sluice_Unary<"identity", "a (torch.nn.Identity)", "a", "a", "dY", traits = [FollowsPrecision]>;

def GeluOp : Sluice_Unary<"gelu",
    "Gaussian error linear unit: a * Phi(a), by erf, or by PyTorch's tanh approximation with `tanh`",
    [{getTanh() ? 0.5 * a * (1.0 + std::tanh(0.7978845608028654 * (a + 0.044715 * a * a * a))) : 0.5 * a *
        (1.0 + std::erf(a * 0.7071067811865476))}],
    [{getTanh() ? 0.5 * a * (1.0 + tanh(0.7978845608028654 * (a + 0.044715 * a * a * a))) : 0.5 * a *
        (1.0 + erf(a * 0.7071067811865476))}],
    "geluGradient(a, dY, getTanh())", traits = [FollowsPrecision], wide = "widened"> {
  let arguments = (ins Sluice_FloatTensor:$a,
                       Arg<UnitAttr, "0.5 * a * (1 + tanh(0.7978845608 * (a + 0.044715 * a^3)))">:$tanh);
}
def LeakyReluOp : Sluice_Unary<"leaky_relu", "a where a > 0, alpha * a elsewhere",
    "a > 0 ? a : a * getAlpha().convertToDouble()", "where(a > 0.0, a, a * getAlpha().convertToDouble())",
        "where(a > 0.0, dY, dY * getAlpha().convertToDouble())", traits = [FollowsPrecision]> {
  let arguments = (ins Sluice_FloatTensor:$a, Arg<DefaultValuedAttr<F64Attr, "0.01">, "the slope below 0">:$alpha);
}
def EluOp : Sluice_Unary<"elu", "a where a > 0, alpha * (e^a - 1) elsewhere",
    "a > 0 ? a : getAlpha().convertToDouble() * std::expm1(a)",
        "where(a > 0.0, a, expm1(a) * getAlpha().convertToDouble())",
    "where(a > 0.0, dY, dY * exp(a) * getAlpha().convertToDouble())", traits = [FollowsPrecision], wide = "widened"> {
  let arguments = (ins Sluice_FloatTensor:$a,
                       Arg<DefaultValuedAttr<F64Attr, "1.0">, "minus the limit for a -> -infinity">:$alpha);
}
def ClipOp : Sluice_Unary<"clip", "min(max(a, min), max); gradient 0 at the bounds, beyond them, and at NaN",
    "clip(a, getMin(), getMax())", "clip(a, getMin(), getMax())", "clipGradient(a, dY, getMin(), getMax())",
        traits = [FollowsPrecision]> {
  let description = [{
    Operand and result have one shape. Each element of the result depends on the element of the operand at its index. An
    absent bound has no effect. Bounds of integers are values of their type. The gradient is that of PyTorch 2.15's
    `clamp` with numbers as bounds.
  }];
  let arguments = (ins Sluice_NumberTensor:$a, Arg<OptionalAttr<F64Attr>, "the least result">:$min,
                       Arg<OptionalAttr<F64Attr>, "the greatest result">:$max);
  let results = (outs Sluice_NumberTensor:$y);
  let attributesOfSample = "{min = -0.7 : f64, max = 0.9 : f64}";
  let hasVerifier = 1;
}
def Relu6Op : Sluice_Unary<"relu6", "min(max(a, 0), 6); gradient 0 at 0 and 6, and beyond them",
    "smaller(larger(a, 0.0), 6.0)", "min(max(a, 0.0), 6.0)", "where(a <= 0.0, 0.0, where(a >= 6.0, 0.0, dY))",
        "{-3.0, 9.0}", traits = [FollowsPrecision]> {
  let description = [{
    Operand and result have one shape. Each element of the result depends on the element of the operand at its index.
    The gradient is that of PyTorch 2.15's `relu6`. Unlike that of `clip`, it is dY where a is NaN.
  }];
}

def SignOp : Sluice_UnaryPlain<"sign", "-1, 0 or 1", Sluice_FloatTensor, "(a > 0) - (a < 0)",
    "where(a > 0.0, 1.0, where(a < 0.0, -1.0, a.like(0.0)))", [NoGradient, FollowsPrecision]>;
def FloorOp : Sluice_UnaryPlain<"floor", "the largest integer not above a", Sluice_FloatTensor, "std::floor(a)",
    "floor(a)", [NoGradient, FollowsPrecision]>;
def CeilOp : Sluice_UnaryPlain<"ceil", "the smallest integer not below a", Sluice_FloatTensor, "std::ceil(a)",
    "ceil(a)", [NoGradient, FollowsPrecision]>;
def RoundOp : Sluice_UnaryPlain<"round", "the nearest integer, halves to even", Sluice_FloatTensor, "std::nearbyint(a)",
    "roundeven(a)", [NoGradient, FollowsPrecision]>;
def IgnoreIndexOp : Sluice_UnaryPlain<"ignore_index",
    "-1 where a is `ignored`, a elsewhere: for labels of which one value means no label", Sluice_IntTensor,
    "a == double(int64_t(getIgnored())) ? -1 : a", "where(a == double(int64_t(getIgnored())), -1.0, a)",
        [DeclareOpInterfaceMethods<IndexOp, ["getIgnoredIndex"]>]> {
  let description = [{
    Operand and result have one shape. Each element of the result depends on the element of the operand at its index. A
    call is rejected if an input contains other values than `ignored` and 0 to `size` - 1. PyTorch's losses take
    `ignore_index` as an argument.
  }];
  let arguments = (ins Sluice_IntTensor:$a, Arg<I64Attr, "the number of valid indices; at least 1">:$size,
                       Arg<I64Attr, "the value that is no index, of 32 bits">:$ignored);
  let hasVerifier = 1;
}
def StopGradientOp : Sluice_UnaryPlain<"stop_gradient", "a without a gradient (torch.Tensor.detach)", Sluice_Tensor,
    "a", "a", [NoGradient, SameElementsOp, FollowsPrecision]>;
def NotOp : Sluice_UnaryPlain<"not", "bitwise not of booleans and integers (torch.bitwise_not)",
    Sluice_BitsTensor, "invert(a, getA())", "~a">;

class Sluice_Predicate<string mnemonic, string about, string ref, string lanes> : Sluice_Elementwise<mnemonic> {
  let summary = about;
  let arguments = (ins Sluice_FloatTensor:$a);
  let results = (outs Sluice_BoolTensor:$y);
  let extraClassDefinition = UnaryMeaning<ref, lanes>.text # [{
    ::mlir::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *, std::optional<::mlir::Location>,
        ::mlir::ValueRange operands, ::mlir::DictionaryAttr, ::mlir::OpaqueProperties, ::mlir::RegionRange,
            ::llvm::SmallVectorImpl<::mlir::Type> &types)
                { types.push_back(withElement(withoutEncoding(operands[0].getType()),
                ::mlir::IntegerType::get(operands[0].getContext(), 1))); return ::mlir::success(); }
  }];
}
def IsNanOp : Sluice_Predicate<"isnan", "whether a is NaN", "std::isnan(a)", "a != a">;
def IsInfOp : Sluice_Predicate<"isinf", "whether a is infinite", "std::isinf(a)",
    "abs(a) == std::numeric_limits<double>::infinity()">;

class BinaryMeaning<string ref, string lanes> {
  code text = [{
    double $cppClass::evaluateElement(::llvm::ArrayRef<double> in) { double a = in[0], b = in[1]; return }] # ref #
        [{; }
    ::mlir::Value $cppClass::buildBody(::mlir::OpBuilder &b_, ::mlir::Location loc_, ::mlir::ValueRange in) {
      Lane a(b_, loc_, in[0]), b(b_, loc_, in[1]); return }] # lanes # [{; }
    ::llvm::SmallVector<HostTensor> $cppClass::evaluate(::llvm::ArrayRef<HostTensor> operands, int64_t rows)
        { return evaluateElementwise(*this, operands, rows); }
    ::mlir::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *, std::optional<::mlir::Location> loc,
        ::mlir::ValueRange operands, ::mlir::DictionaryAttr, ::mlir::OpaqueProperties, ::mlir::RegionRange,
            ::llvm::SmallVectorImpl<::mlir::Type> &types) { return inferBinary(loc, operands, types); }
  }];
}

class Sluice_BinaryPlain<string mnemonic, string about, TypeConstraint type, string ref, string lanes> :
    Sluice_Elementwise<mnemonic> {
  let summary = about;
  let arguments = (ins type:$a, type:$b);
  let results = (outs type:$y);
  let extraClassDefinition = BinaryMeaning<ref, lanes>.text;
}

class Sluice_Binary<string mnemonic, string about, string ref, string lanes, string grad, string range = "{-2.0, 2.0}",
    list<Trait> traits = []>
    : Sluice_Elementwise<mnemonic, !listconcat([DeclareOpInterfaceMethods<DifferentiableOp>], traits)> {
  let summary = about;
  let arguments = (ins Sluice_NumberTensor:$a, Sluice_NumberTensor:$b);
  let results = (outs Sluice_NumberTensor:$y);
  let extraClassDefinition = BinaryMeaning<ref, lanes>.text # [{
    ::llvm::SmallVector<::mlir::Value> $cppClass::buildGradient(::mlir::OpBuilder &b_, ::mlir::ValueRange dResults) {
      [[maybe_unused]] Node a(b_, getLoc(), getA()), b(b_, getLoc(), getB()), y(b_, getLoc(), getY()),
          dY(b_, getLoc(), dResults[0]); return {}] # grad # [{}; }
    ::llvm::SmallVector<Sample> $cppClass::samples()
        { return {{"\"sluice.}] # mnemonic # [{\"(%0, %1) : (tensor<3x5xf64>, tensor<3x5xf64>) -> tensor<3x5xf64>", {}]
            # range # ", " # range # [{}}}; }
  }];
}
def AddOp : Sluice_Binary<"add", "a + b", "a + b", "a + b", "dY, dY",
    traits = [DeclareOpInterfaceMethods<LinearOp>, FollowsPrecision]>;
def SubOp : Sluice_Binary<"sub", "a - b", "a - b", "a - b", "dY, -dY",
    traits = [DeclareOpInterfaceMethods<LinearOp>, FollowsPrecision]>;
def MulOp : Sluice_Binary<"mul", "a * b", "a * b", "a * b", "dY * b, dY * a",
    traits = [DeclareOpInterfaceMethods<LinearOp>, FollowsPrecision]>;
def DivOp : Sluice_Binary<"div", "a / b; integers round toward zero, and division by zero gives 0",
    "divide(a, b, getY())", "a / b", "dY / b, -dY * y / b", "{0.5, 2.0}",
        traits = [DeclareOpInterfaceMethods<LinearOp>, FollowsPrecision]>;
def PowOp : Sluice_Binary<"pow", "a to the power b; dA is 0 where b is 0; dB is 0 where a is 0 and b is not negative",
    "std::pow(a, b)", "pow(a, b)",
    "where(b == 0.0, 0.0, dY * b * pow(a, b - 1.0)), where(where(b >= 0.0, a, 1.0) == 0.0, 0.0, dY * y * log(a))",
        "{0.5, 2.0}"> {
  let arguments = (ins Sluice_FloatTensor:$a, Sluice_FloatTensor:$b);
  let results = (outs Sluice_FloatTensor:$y);
}
def RemainderOp : Sluice_Binary<"remainder", "a - floor(a / b) * b, rounded once, with the sign of b; b = 0 gives NaN "
    "for floats, a for integers", "remainder(a, b, getY())", "remainder(a, b)",
    "dY, -dY * floorOfQuotient(a, b, y)", "{0.5, 2.0}">;
def MaxOp : Sluice_Binary<"max", "the larger, or NaN if either is (torch.maximum); at a tie, both have half the "
    "gradient", "std::isnan(a) || a > b ? a : b", "max(a, b)",
    "where(a > b, dY, where(a < b, 0.0, dY * 0.5)), where(b > a, dY, where(b < a, 0.0, dY * 0.5))",
        traits = [FollowsPrecision]>;
def MinOp : Sluice_Binary<"min", "the smaller, or NaN if either is (torch.minimum); at a tie, both have half the "
    "gradient", "std::isnan(a) || a < b ? a : b", "min(a, b)",
    "where(a < b, dY, where(a > b, 0.0, dY * 0.5)), where(b < a, dY, where(b > a, 0.0, dY * 0.5))",
        traits = [FollowsPrecision]>;
def AndOp : Sluice_BinaryPlain<"and", "bitwise and of booleans and integers (torch.bitwise_and)",
    Sluice_BitsTensor, "double(int64_t(a) & int64_t(b))", "a & b">;
def OrOp : Sluice_BinaryPlain<"or", "bitwise or of booleans and integers (torch.bitwise_or)", Sluice_BitsTensor,
    "double(int64_t(a) | int64_t(b))", "a | b">;
def XorOp : Sluice_BinaryPlain<"xor", "bitwise exclusive or of booleans and integers (torch.bitwise_xor)",
    Sluice_BitsTensor, "double(int64_t(a) ^ int64_t(b))", "a ^ b">;
def ShiftLeftOp : Sluice_BinaryPlain<"shift_left", "a << b; 0 if b is negative or at least "
    "the width of the type (torch.bitwise_left_shift)", Sluice_WholeTensor, "shiftLeft(a, b, getY())",
    "shiftLeft(a, b)">;
def ShiftRightOp : Sluice_BinaryPlain<"shift_right", "floor(a / 2^b); -1 for negative a and 0 for others if b is "
    "negative or at least the width of the type (torch.bitwise_right_shift)", Sluice_WholeTensor,
    "shiftRight(a, b, getY())", "shiftRight(a, b)">;

def Sluice_Predicates : I32EnumAttr<"Predicate", "predicate", [
    I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>, I32EnumAttrCase<"le", 3>,
        I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::sluice::ir";
}
def Sluice_PredicateAttr : EnumAttr<Sluice_Dialect, Sluice_Predicates, "predicate">;

def CompareOp : Sluice_Elementwise<"compare"> {
  let summary = "compares elements (torch.eq, torch.ne, ...); false with a NaN, except ne";
  let arguments = (ins Sluice_Tensor:$a, Sluice_Tensor:$b,
                       Arg<Sluice_PredicateAttr, "eq, ne, lt, le, gt or ge: the comparison of a with b">:$predicate);
  let results = (outs Sluice_BoolTensor:$y);
}
def WhereOp : Sluice_Elementwise<"where", [DeclareOpInterfaceMethods<DifferentiableOp>, FollowsPrecision]> {
  let summary = "a where the condition is true, b elsewhere";
  let arguments = (ins Sluice_BoolTensor:$condition, Sluice_Tensor:$a, Sluice_Tensor:$b);
  let results = (outs Sluice_Tensor:$y);
}
def CastOp : Sluice_Elementwise<"cast", [DeclareOpInterfaceMethods<DifferentiableOp>,
    DeclareOpInterfaceMethods<SameElementsOp, ["getElementsSource"]>, DeclareOpInterfaceMethods<LinearOp>]> {
  let summary = "changes the element type (torch.Tensor.to); floats to integers round toward zero and saturate";
  let description = [{
    Operand and result have one shape. NaN becomes 0 as an integer, which PyTorch leaves undefined. Every value but 0
    becomes true.
  }];
  let arguments = (ins Sluice_Tensor:$a, Sluice_ElementType:$to);
  let results = (outs Sluice_Tensor:$y);
  let hasFolder = 1;
}

#endif
