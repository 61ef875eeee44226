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
    Values are ranked tensors of f32, f64, f16, bf16, i32, i64, ui8 or i1. A dimension `?` is the batch dimension; a
    type has at most one. The module sets its capacity (see `model`), and each call of an entry point has a number of
    rows up to the capacity. The encoding of a type, `#sluice.at`, holds the device and the layout of a value.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

class Sluice_Attr<string cppName, string attrMnemonic, list<Trait> traits = []> :
    AttrDef<Sluice_Dialect, cppName, traits> {
  let mnemonic = attrMnemonic;
}

def Sluice_AtAttr : Sluice_Attr<"At", "at"> {
  let summary = "the device and the layout of a value: the only encoding of a tensor type";
  let description = [{
    `device` is a logical device of the module (see `device`); absent: not placed yet. `layout` maps logical indices to
    physical ones, outermost first. A result is a dimension, or its `floordiv` or `mod` by a tile; absent: row-major.
    `#sluice.at<device = "cpu", layout = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>>` is NHWC on the host.
  }];
  let parameters = (ins OptionalParameter<"::mlir::StringAttr">:$device,
                        OptionalParameter<"::mlir::AffineMapAttr">:$layout);
  let assemblyFormat = "(`<` struct($device, $layout)^ `>`)?";
}

def Sluice_InitAttr : Sluice_Attr<"Init", "init"> {
  let summary = "the initial value of a state";
  let description = [{
    `kind` is one of:

    constant: a in each element.

    uniform: random in [a, b).

    normal: random with mean a and standard deviation b.

    key: the random key that follows the key of entry point `init`; a is 0.

    data: the tensor of this state in the model's file of values, which has this `crc32`; a is 0.

    With `zero_row`, the elements at this index of dimension 0 are 0.
  }];
  let parameters = (ins StringRefParameter<"constant, uniform, normal, key or data">:$kind, "::mlir::FloatAttr":$a,
                        OptionalParameter<"::mlir::FloatAttr">:$b,
                        OptionalParameter<"::mlir::IntegerAttr">:$zero_row,
                        OptionalParameter<"::mlir::IntegerAttr">:$crc32);
  let builders = [AttrBuilder<(ins "::llvm::StringRef":$kind, "::mlir::FloatAttr":$a, "::mlir::FloatAttr":$b), [{
    return $_get($_ctxt, kind, a, b, ::mlir::IntegerAttr(), ::mlir::IntegerAttr());
  }]>];
  let extraClassDeclaration = [{
    /// Builds the initial value of a state of this type; random numbers come from stream `stream` of `key`.
    ::mlir::Value build(::mlir::OpBuilder &builder, ::mlir::Location loc, ::mlir::Value key, int64_t stream,
        ::mlir::RankedTensorType type) const;
    /// Whether the host provides the value instead of an entry point.
    bool isData() const { return getKind() == "data"; }
  }];
  let assemblyFormat = "`<` $kind `,` $a (`,` $b^)? (`zero_row` $zero_row^)? (`crc32` $crc32^)? `>`";
}

/// An enumeration that is written as a word. The summary is the noun in messages: "expected keyword for copy time".
class Sluice_Words<string name, string summary, list<I32EnumAttrCase> words> : I32EnumAttr<name, summary, words> {
  let cppNamespace = "::sluice::ir";
  let genSpecializedAttr = 0;
}
def Sluice_StateKinds : Sluice_Words<"StateKind", "state kind", [
    I32EnumAttrCase<"Parameter", 0, "parameter">, I32EnumAttrCase<"Slot", 1, "slot">,
        I32EnumAttrCase<"Statistic", 2, "statistic">,
    I32EnumAttrCase<"Hyperparameter", 3, "hyperparameter">, I32EnumAttrCase<"Step", 4, "step">,
        I32EnumAttrCase<"Share", 5, "share">, I32EnumAttrCase<"Accumulator", 6, "accumulator">,
    I32EnumAttrCase<"Key", 7, "key">, I32EnumAttrCase<"Constant", 8, "constant">,
        I32EnumAttrCase<"Cache", 9, "cache">, I32EnumAttrCase<"Derived", 10, "derived">,
        I32EnumAttrCase<"Scales", 11, "scales">]>;
def Sluice_StateKindAttr : EnumAttr<Sluice_Dialect, Sluice_StateKinds, "state_kind">;
def Sluice_CopyReasons : Sluice_Words<"CopyReason", "copy reason", [
    I32EnumAttrCase<"To", 0, "to">, I32EnumAttrCase<"CopyTo", 1, "copy_to">, I32EnumAttrCase<"Pin", 2, "pin">,
        I32EnumAttrCase<"Placement", 3, "placement">,
    I32EnumAttrCase<"Input", 4, "input">, I32EnumAttrCase<"Output", 5, "output">, I32EnumAttrCase<"State", 6, "state">,
        I32EnumAttrCase<"Constant", 7, "constant">,
    I32EnumAttrCase<"InitialValue", 8, "initial_value">]>;
def Sluice_CopyReasonAttr : EnumAttr<Sluice_Dialect, Sluice_CopyReasons, "copy_reason">;
/// When a copy runs: in every call, at the start of a call if the mirror is stale, or when the host reads the output.
def Sluice_CopyTimes : Sluice_Words<"CopyTime", "copy time", [
    I32EnumAttrCase<"Step", 0, "step">, I32EnumAttrCase<"Stale", 1, "stale">, I32EnumAttrCase<"Asked", 2, "asked">]>;
def Sluice_CopyTimeAttr : EnumAttr<Sluice_Dialect, Sluice_CopyTimes, "copy_time">;

/// The policy for copies that pins require and the graph lacks: an error, insertion with a warning, or silent
/// insertion.
def Sluice_CopyPolicies : Sluice_Words<"CopyPolicy", "copy policy", [
    I32EnumAttrCase<"Explicit", 0, "explicit">, I32EnumAttrCase<"Warn", 1, "warn">,
        I32EnumAttrCase<"Insert", 2, "insert">]>;
def Sluice_CopyPolicyAttr : EnumAttr<Sluice_Dialect, Sluice_CopyPolicies, "copy_policy">;

def Sluice_CollectiveKinds : Sluice_Words<"CollectiveKind", "collective kind", [
    I32EnumAttrCase<"AllReduce", 0, "all_reduce">, I32EnumAttrCase<"Broadcast", 1, "broadcast">,
    I32EnumAttrCase<"AllGather", 2, "all_gather">, I32EnumAttrCase<"ReduceScatter", 3, "reduce_scatter">]>;
def Sluice_CollectiveKindAttr : EnumAttr<Sluice_Dialect, Sluice_CollectiveKinds, "collective_kind">;
def Sluice_CollectiveReductions : Sluice_Words<"CollectiveReduction", "collective reduction", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">, I32EnumAttrCase<"TreeSum", 2, "tree_sum">]>;
def Sluice_CollectiveReductionAttr : EnumAttr<Sluice_Dialect, Sluice_CollectiveReductions, "collective_reduction">;

/// The user-visible kind of a value that replicas exchange.
def Sluice_SubjectKinds : Sluice_Words<"SubjectKind", "subject kind", [
    I32EnumAttrCase<"Gradient", 0, "gradient">, I32EnumAttrCase<"Statistic", 1, "statistic">,
        I32EnumAttrCase<"Output", 2, "output">,
    I32EnumAttrCase<"Parameter", 3, "parameter">]>;
def Sluice_SubjectAttr : Sluice_Attr<"Subject", "subject"> {
  let summary = "the subject of a collective, by name: parameters, gradients, statistics or outputs of one kind";
  let parameters = (ins EnumParameter<Sluice_SubjectKinds>:$kind, ArrayRefParameter<"::mlir::StringAttr">:$names);
  let assemblyFormat = "`<` $kind `,` $names `>`";
}

/// The dtype in which ops of f32 may compute.
def Sluice_Precisions : Sluice_Words<"Precision", "precision", [
    I32EnumAttrCase<"F32", 0, "f32">, I32EnumAttrCase<"BF16", 1, "bf16">, I32EnumAttrCase<"F16", 2, "f16">]>;
def Sluice_PrecisionAttr : EnumAttr<Sluice_Dialect, Sluice_Precisions, "precision">;

def Sluice_Tensor : RankedTensorOf<[F32, F64, F16, BF16, I32, I64, UI8, I1]>;
def Sluice_NumberTensor : RankedTensorOf<[F32, F64, F16, BF16, I32, I64, UI8]>;
def Sluice_FloatTensor : RankedTensorOf<[F32, F64, F16, BF16]>;
/// The types that replicas exchange.
def Sluice_ReducedTensor : RankedTensorOf<[F32, F64, F16, BF16, I32, I64]>;
def Sluice_IntTensor : RankedTensorOf<[I32, I64]>;
def Sluice_WholeTensor : RankedTensorOf<[I32, I64, UI8]>;
def Sluice_BitsTensor : RankedTensorOf<[I32, I64, UI8, I1]>;
def Sluice_BoolTensor : RankedTensorOf<[I1]>;

/// The op runs on the device of its results, and its operands are on the same device.
def SameDevice : NativeOpTrait<"SameDevice"> { let cppNamespace = "::sluice::ir"; }

/// No gradient flows through the op: its derivative is zero or must be ignored.
def NoGradient : NativeOpTrait<"NoGradient"> { let cppNamespace = "::sluice::ir"; }

/// Operands and results have one layout where the backend leaves it open, as those of elementwise ops. For ops whose
/// operands have the rank of the result, and elements at its index or at a part of it.
def SharesLayout : NativeOpTrait<"SharesLayout"> { let cppNamespace = "::sluice::ir"; }

// The dtype in which an op of f32 computes with a narrow `--precision`. An op without one of these traits computes in
// f32 from f32: sums, means, divisions by small numbers, exponentials and logarithms. Sums within an op follow its
// rounding: those of halves are added in f32.

/// In the narrow type, for any operands. For ops whose cost is products, which tensor cores compute.
def ComputesNarrow : NativeOpTrait<"ComputesNarrow"> { let cppNamespace = "::sluice::ir"; }

/// In the type of its operands: narrow if one operand is narrow, and every other one is narrow or computed from
/// parameters and constants only. For ops that move elements or round their result once.
def FollowsPrecision : NativeOpTrait<"FollowsPrecision"> { let cppNamespace = "::sluice::ir"; }

/// In f32; the first result is rounded if the first operand is narrow, so that stored values stay narrow. For norms,
/// whose parameters and statistics stay in f32.
def RoundsNarrow : NativeOpTrait<"RoundsNarrow"> { let cppNamespace = "::sluice::ir"; }

/// The reference of ops is generated from summaries, descriptions, the text of each `Arg`, and the two fields below:
/// which dimensions of an op on values may be `?`, and how its results are rounded.
class Sluice_Op<string mnemonic, list<Trait> traits = []> : Op<Sluice_Dialect, mnemonic, traits> {
  string rows = "";
  string rounding = "";
}

// Attributes that ops share.
def Sluice_KernelSize : Arg<DenseI64ArrayAttr,
    "[kH, kW]: elements of a window, vertically and horizontally; at least 1">;
def Sluice_Stride : Arg<DenseI64ArrayAttr, "[vertical, horizontal]: elements from one window to the next; at least 1">;
def Sluice_Padding : Arg<DenseI64ArrayAttr,
    "[top, left, bottom, right]: elements beyond each edge of the image; at least 0">;
def Sluice_Dilation : Arg<DenseI64ArrayAttr,
    "[vertical, horizontal]: distance of adjacent elements of a window; at least 1">;
def Sluice_Groups : Arg<I64Attr, "the number of equal parts of the channels of x and of y; part i of y depends on "
    "part i of x only; divides both">;
def Sluice_ImageSize : Arg<DenseI64ArrayAttr,
    "[H, W] of the result, in elements; the size of dY does not determine it">;
def Sluice_CeilMode : Arg<UnitAttr, "the number of windows is rounded up, but the last one must start within the "
    "image or the padding before it">;
def Sluice_Axis : Arg<I64Attr, "a dimension of x, from 0">;
def Sluice_ElementType : Arg<TypeAttr,
    "the result's element type: f32, f64, f16, bf16, i32, i64, ui8 (u8) or i1 (bool)">;
def Sluice_ResultType : Arg<TypeAttrOf<AnyRankedTensor>, "the type of the result, such as tensor<?x5xf32>">;

/// An op on values: pure, with inferred result types that ignore encodings, and with a reference evaluation.
class Sluice_ValueOp<string mnemonic, list<Trait> traits = []>
    : Sluice_Op<mnemonic, !listconcat([Pure, SameDevice, DeclareOpInterfaceMethods<InferTypeOpInterface>,
        DeclareOpInterfaceMethods<ReferenceOp>], traits)> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  code typeCompatibility = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return ::sluice::ir::sameShapesAndElements(inferred, actual);
    }
  }];
  let extraClassDeclaration = typeCompatibility;
}

#endif
