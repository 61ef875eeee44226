// Weights in blocks of 8-bit integers with a scale for each block.
#ifndef SLUICE_IR_BLOCKS
#define SLUICE_IR_BLOCKS

include "ir/Base.td"

def DequantizeBlocksOp : Sluice_ValueOp<"dequantize_blocks",
    [DeclareOpInterfaceMethods<ElementOp>, RowFlowOp, NoGradient, SharesLayout]> {
  let summary = "f32 values of 8-bit integers in blocks of 32, each with an f16 scale (q8_0 of ggml)";
  let description = [{
    y has the shape of x. An element of y is the element of x, read as a signed integer in two's complement, times the
    scale of its block: y[..., i, ...] = x[..., i, ...] * scales[..., i / 32, ...], rounded down, at dimension `axis`.
    scales has the shape of x, with 1/32 of its size in this dimension. PyTorch has no equivalent.

    A block of values x is stored as scale d = max |x| / 127, rounded to f16, and integers round(x * (1 / d)), halves
    away from zero, with d in f32; see sluice/backend/blocks.h.
  }];
  let rows = "No dimension is `?`.";
  let rounding = "None: the products are exact in f32.";
  let arguments = (ins RankedTensorOf<[UI8]>:$x, RankedTensorOf<[F16]>:$scales,
                       Arg<I64Attr, "the dimension of the blocks, from 0; its size is a multiple of 32">:$axis);
  let results = (outs RankedTensorOf<[F32]>:$y);
}

#endif
