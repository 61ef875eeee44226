// Random numbers: Threefry-2x32 on (key, index of the element in the whole tensor); see ir/Random.cpp for the formulas.
#ifndef SLUICE_IR_RANDOM
#define SLUICE_IR_RANDOM

include "ir/Base.td"

class Sluice_Random<string mnemonic> : Sluice_ValueOp<mnemonic, [DeclareOpInterfaceMethods<ElementOp>]> {
  let arguments = (ins RankedTensorOf<[I32]>:$key, I64Attr:$stream, F64Attr:$a, F64Attr:$b, TypeAttrOf<AnyRankedTensor>:$type);
  let results = (outs Sluice_FloatTensor:$y);
}
def UniformOp : Sluice_Random<"uniform"> {
  let summary = "uniform in [a, b) from a key [2]; the same bits as JAX's default for stream 0; other streams are independent";
}
def NormalOp : Sluice_Random<"normal"> {
  let summary = "normal with mean a and standard deviation b from a key [2]: sqrt(2) * erfinv of a uniform in (-1, 1)";
}

#endif
