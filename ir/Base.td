// The dialect, its attributes, and the base class of every op.
#ifndef SLUICE_IR_BASE
#define SLUICE_IR_BASE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "ir/Interfaces.td"

def Sluice_Dialect : Dialect {
  let name = "sluice";
  let cppNamespace = "::sluice::ir";
  let summary = "Computation graphs: values, state, entry points and kernels";
  let description = [{
    Values are ranked tensors of f32, f64, f16, bf16, i32, i64, ui8 or i1. A dimension `?` is the batch dimension: its capacity is the
    module's (see `model`), and every call of an entry point has a run-time number of rows up to it. At most one
    dimension of a type is `?`. Where a value lives and how it is laid out is the type's encoding, `#sluice.at`.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

class Sluice_Attr<string cppName, string attrMnemonic, list<Trait> traits = []> : AttrDef<Sluice_Dialect, cppName, traits> {
  let mnemonic = attrMnemonic;
}

def Sluice_AtAttr : Sluice_Attr<"At", "at"> {
  let summary = "where a value lives and how it is laid out: the one encoding of a tensor type";
  let description = [{
    `device` is a logical device of the module's table; absent: not placed yet. `layout` maps logical indices to physical
    ones, outermost first, by `floordiv` and `mod` of a dimension by a tile or the dimension itself; absent: row-major.
    `#sluice.at<device = "cpu", layout = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>>` is NHWC on the host.
  }];
  let parameters = (ins OptionalParameter<"::mlir::StringAttr">:$device, OptionalParameter<"::mlir::AffineMapAttr">:$layout);
  let assemblyFormat = "(`<` struct($device, $layout)^ `>`)?";
}

def Sluice_InitAttr : Sluice_Attr<"Init", "init"> {
  let summary = "how a state begins: constant (a), uniform in [a, b), normal with mean a and deviation b, key (the one behind that of `init`; a is 0), or data (what the model's file of values has under the state's name, with this `crc32`; a is 0); `zero_row` of the first dimension is 0";
  let parameters = (ins StringRefParameter<"constant, uniform, normal, key or data">:$kind, "::mlir::FloatAttr":$a, OptionalParameter<"::mlir::FloatAttr">:$b,
                        OptionalParameter<"::mlir::IntegerAttr">:$zero_row, OptionalParameter<"::mlir::IntegerAttr">:$crc32);
  let builders = [AttrBuilder<(ins "::llvm::StringRef":$kind, "::mlir::FloatAttr":$a, "::mlir::FloatAttr":$b), [{
    return $_get($_ctxt, kind, a, b, ::mlir::IntegerAttr(), ::mlir::IntegerAttr());
  }]>];
  let extraClassDeclaration = [{
    /// A value of this type that begins so; random ones are drawn from stream `stream` of `key`.
    ::mlir::Value build(::mlir::OpBuilder &builder, ::mlir::Location loc, ::mlir::Value key, int64_t stream, ::mlir::RankedTensorType type) const;
    /// Whether the host gives the value, and no entry point makes it.
    bool isData() const { return getKind() == "data"; }
  }];
  let assemblyFormat = "`<` $kind `,` $a (`,` $b^)? (`zero_row` $zero_row^)? (`crc32` $crc32^)? `>`";
}

class Sluice_Words<string name, string summary, list<I32EnumAttrCase> words> : I32EnumAttr<name, summary, words> {
  let cppNamespace = "::sluice::ir";
  let genSpecializedAttr = 0;
}
def Sluice_StateKinds : Sluice_Words<"StateKind", "what a state is for", [
    I32EnumAttrCase<"Parameter", 0, "parameter">, I32EnumAttrCase<"Slot", 1, "slot">, I32EnumAttrCase<"Statistic", 2, "statistic">,
    I32EnumAttrCase<"Hyper", 3, "hyper">, I32EnumAttrCase<"Step", 4, "step">, I32EnumAttrCase<"Share", 5, "share">, I32EnumAttrCase<"Accumulator", 6, "accumulator">,
    I32EnumAttrCase<"Key", 7, "key">, I32EnumAttrCase<"Constant", 8, "constant">, I32EnumAttrCase<"Cache", 9, "cache">]>;
def Sluice_StateKindAttr : EnumAttr<Sluice_Dialect, Sluice_StateKinds, "state_kind">;
def Sluice_CopyReasons : Sluice_Words<"CopyReason", "who wants a copy", [
    I32EnumAttrCase<"To", 0, "to">, I32EnumAttrCase<"CopyTo", 1, "copy_to">, I32EnumAttrCase<"Pin", 2, "pin">, I32EnumAttrCase<"Placement", 3, "placement">,
    I32EnumAttrCase<"Input", 4, "input">, I32EnumAttrCase<"Output", 5, "output">, I32EnumAttrCase<"State", 6, "state">, I32EnumAttrCase<"Constant", 7, "constant">,
    I32EnumAttrCase<"InitialValue", 8, "initial_value">]>;
def Sluice_CopyReasonAttr : EnumAttr<Sluice_Dialect, Sluice_CopyReasons, "copy_reason">;
def Sluice_CopyTimes : Sluice_Words<"CopyTime", "when a copy happens: in every call, at the start of a call if its mirror is stale, or when the host asks for it", [
    I32EnumAttrCase<"Step", 0, "step">, I32EnumAttrCase<"Stale", 1, "stale">, I32EnumAttrCase<"Asked", 2, "asked">]>;
def Sluice_CopyTimeAttr : EnumAttr<Sluice_Dialect, Sluice_CopyTimes, "copy_time">;

def Sluice_CopyPolicies : Sluice_Words<"CopyPolicy", "what becomes of copies that pins need and nobody wrote: errors, warnings, or nothing", [
    I32EnumAttrCase<"Explicit", 0, "explicit">, I32EnumAttrCase<"Warn", 1, "warn">, I32EnumAttrCase<"Insert", 2, "insert">]>;
def Sluice_CopyPolicyAttr : EnumAttr<Sluice_Dialect, Sluice_CopyPolicies, "copy_policy">;

def Sluice_CollectiveKinds : Sluice_Words<"CollectiveKind", "what replicas do together", [
    I32EnumAttrCase<"AllReduce", 0, "all_reduce">, I32EnumAttrCase<"Broadcast", 1, "broadcast">,
    I32EnumAttrCase<"AllGather", 2, "all_gather">, I32EnumAttrCase<"ReduceScatter", 3, "reduce_scatter">]>;
def Sluice_CollectiveKindAttr : EnumAttr<Sluice_Dialect, Sluice_CollectiveKinds, "collective_kind">;
def Sluice_CollectiveReductions : Sluice_Words<"CollectiveReduction", "how elements of replicas are reduced", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">, I32EnumAttrCase<"TreeSum", 2, "tree_sum">]>;
def Sluice_CollectiveReductionAttr : EnumAttr<Sluice_Dialect, Sluice_CollectiveReductions, "collective_reduction">;

def Sluice_SubjectKinds : Sluice_Words<"SubjectKind", "what users know a value of replicas as", [
    I32EnumAttrCase<"Gradient", 0, "gradient">, I32EnumAttrCase<"Statistic", 1, "statistic">, I32EnumAttrCase<"Output", 2, "output">,
    I32EnumAttrCase<"Parameter", 3, "parameter">]>;
def Sluice_SubjectAttr : Sluice_Attr<"Subject", "subject"> {
  let summary = "what a collective is of: a parameter or its gradient, a statistic, or an output, by its name; or several of a kind";
  let parameters = (ins EnumParameter<Sluice_SubjectKinds>:$kind, ArrayRefParameter<"::mlir::StringAttr">:$names);
  let assemblyFormat = "`<` $kind `,` $names `>`";
}

def Sluice_Precisions : Sluice_Words<"Precision", "what ops of f32 may compute in", [
    I32EnumAttrCase<"F32", 0, "f32">, I32EnumAttrCase<"BF16", 1, "bf16">, I32EnumAttrCase<"F16", 2, "f16">]>;
def Sluice_PrecisionAttr : EnumAttr<Sluice_Dialect, Sluice_Precisions, "precision">;

def Sluice_Tensor : RankedTensorOf<[F32, F64, F16, BF16, I32, I64, UI8, I1]>;
def Sluice_NumberTensor : RankedTensorOf<[F32, F64, F16, BF16, I32, I64, UI8]>;
def Sluice_FloatTensor : RankedTensorOf<[F32, F64, F16, BF16]>;
/// What replicas exchange.
def Sluice_ReducedTensor : RankedTensorOf<[F32, F64, F16, BF16, I32, I64]>;
def Sluice_IntTensor : RankedTensorOf<[I32, I64]>;
def Sluice_BoolTensor : RankedTensorOf<[I1]>;

/// Every op runs where its results live, and its operands live there too.
def SameDevice : NativeOpTrait<"SameDevice"> { let cppNamespace = "::sluice::ir"; }

/// No gradient flows through the op: its derivative is zero or is not wanted.
def NoGradient : NativeOpTrait<"NoGradient"> { let cppNamespace = "::sluice::ir"; }

// What an op of f32 computes in where a narrow precision is asked for (`--precision`). An op that says nothing, as those
// that sum, average, divide by what may be small, raise e to a power or take a logarithm do, computes in f32 from f32. Sums
// within an op are those of its rounding: of halves, they add up in f32.

/// In the narrow type, whatever its operands are: an op whose cost is products, which tensor cores multiply.
def ComputesNarrow : NativeOpTrait<"ComputesNarrow"> { let cppNamespace = "::sluice::ir"; }

/// In the type of its operands: narrow where one of them is, and the others are too or are made of parameters and constants
/// alone. An op that moves elements, or rounds once what it computes.
def FollowsPrecision : NativeOpTrait<"FollowsPrecision"> { let cppNamespace = "::sluice::ir"; }

/// In f32; its first result is rounded where its first operand is narrow, so that what is stored stays narrow. A norm, whose
/// parameters and statistics stay in f32.
def RoundsNarrow : NativeOpTrait<"RoundsNarrow"> { let cppNamespace = "::sluice::ir"; }

/// The reference of ops is made from summaries, descriptions, the text of each `Arg`, and two fields: how an op on values treats
/// the rows of a call, and how its results are rounded.
class Sluice_Op<string mnemonic, list<Trait> traits = []> : Op<Sluice_Dialect, mnemonic, traits> {
  string rows = "";
  string rounding = "";
}

// Attributes that ops share.
def Sluice_KernelSize : Arg<DenseI64ArrayAttr, "[kH, kW]: taps of a window, vertically and horizontally; at least 1">;
def Sluice_Stride : Arg<DenseI64ArrayAttr, "[vertical, horizontal]: elements from one window to the next; at least 1">;
def Sluice_Padding : Arg<DenseI64ArrayAttr, "[top, left, bottom, right]: elements beyond each edge of the image; at least 0">;
def Sluice_Dilation : Arg<DenseI64ArrayAttr, "[vertical, horizontal]: elements from one tap of a window to the next; at least 1">;
def Sluice_Groups : Arg<I64Attr, "so many equal parts of the channels of x and of y; part i of y is made of part i of x alone; divides both">;
def Sluice_ImageSize : Arg<DenseI64ArrayAttr, "[H, W] of the result, in elements; needed because several sizes give one size of dY">;
def Sluice_CeilMode : Arg<UnitAttr, "the number of windows is rounded up, but the last may not start beyond the image and its padding before">;
def Sluice_Axis : Arg<I64Attr, "a dimension of x, from 0">;
def Sluice_ElementType : Arg<TypeAttr, "the result's element type: f32, f64, f16, bf16, i32, i64, ui8 (u8) or i1 (bool)">;
def Sluice_ResultType : Arg<TypeAttrOf<AnyRankedTensor>, "the result's type, as in tensor<?x5xf32>">;

/// An op on values: pure, with inferred result types that ignore encodings, a meaning and an element-wise definition.
class Sluice_ValueOp<string mnemonic, list<Trait> traits = []>
    : Sluice_Op<mnemonic, !listconcat([Pure, SameDevice, DeclareOpInterfaceMethods<InferTypeOpInterface>, DeclareOpInterfaceMethods<ReferenceOp>], traits)> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  code typeCompatibility = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return ::sluice::ir::sameShapesAndElements(inferred, actual);
    }
  }];
  let extraClassDeclaration = typeCompatibility;
}

#endif
