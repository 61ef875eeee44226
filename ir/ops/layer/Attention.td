// Attention: the softmax of products of queries and keys, times values, by blocks of keys.
#ifndef SLUICE_IR_ATTENTION
#define SLUICE_IR_ATTENTION

include "ir/Base.td"

def Sluice_AttentionCausal : Arg<UnitAttr, "query t attends to keys 0 to t only">;
def Sluice_AttentionScale : Arg<F64Attr, "the factor of products of queries and keys; not NaN">;
def Sluice_AttentionBlock : Arg<DefaultValuedAttr<I64Attr, "64">,
    "keys in a block (for the gradients of keys and values: queries), 1 to 1024">;
def Sluice_AttentionMask : Arg<Optional<RankedTensorOf<[F32, F64, F16, BF16, I1]>>,
    "[B, H, T, S], where any size may be 1: floats are added to the scores, bool is true where a query attends to a "
        "key">;

class Sluice_Attention<string mnemonic, list<Trait> traits = []>
    : Sluice_ValueOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<BlockwiseOp>,
        DeclareOpInterfaceMethods<CompositeOp>, RowFlowOp, ComputesNarrow], traits)> {
  let rows = "Only B may be `?`.";
  let rounding = [{
    In the element type; halves in f32, with results rounded once. A score is a sum over the elements of a query in
    order. Blocks are processed in order; sums over a block are in an order that depends only on the shape and the
    target.
  }];
}

def ScaledDotProductAttentionOp :
    Sluice_Attention<"scaled_dot_product_attention", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "softmax(q k^T * scale + mask) v, and its logsumexp (torch.nn.functional.scaled_dot_product_attention)";
  let description = [{
    q is [B, H, T, D], k is [B, Hk, S, D], v is [B, Hk, S, Dv], and Hk divides H. The score of query t and key s of head
    h is scale times the sum of q[b, h, t, d] * k[b, h / (H / Hk), s, d] over d, plus the mask. It is -inf where a mask
    of bool is false, and with `causal` where s > t. logsumexp [B, H, T] is the logarithm of the sum of e^score over s.
    y [B, H, T, Dv] is the sum of e^(score - logsumexp) * v over s. If all scores of a query are -inf, its y is 0 and
    its logsumexp is -inf; PyTorch's y is NaN.

    A key is hidden from a query if its score is -inf because of a mask of bool, a -inf in another mask, or `causal`.
    Its weight is 0. It is not defined whether a NaN or an infinity in a hidden key or its value reaches the results of
    the query: kernels skip blocks of hidden keys, or multiply by their weight.

    Keys are processed in blocks of `block`. The kernel keeps, over the blocks so far, the largest score m, the sum of
    e^(score - m), and the sum of e^(score - m) * v; a larger score m' scales both sums by e^(m - m'). So it stores one
    block of scores only. logsumexp has the type of sums of such elements. Blocks that `causal` hides may be skipped.
  }];
  let arguments = (ins Sluice_FloatTensor:$q, Sluice_FloatTensor:$k, Sluice_FloatTensor:$v, Sluice_AttentionMask:$mask,
                       Sluice_AttentionCausal:$causal, Sluice_AttentionScale:$scale, Sluice_AttentionBlock:$block);
  let results = (outs Sluice_FloatTensor:$y, Sluice_FloatTensor:$logsumexp);
}
def AttentionQueryGradOp : Sluice_Attention<"attention_query_grad", [DeclareOpInterfaceMethods<FormulaGradientOp>]> {
  let summary = "dQ of scaled_dot_product_attention";
  let description = [{
    Scores are those of scaled_dot_product_attention with the same operands and attributes; they are recomputed. p =
    e^(score - logsumexp), and 0 if both are -inf. delta [B, H, T] is the sum of dy * y over the elements of y, minus
    the gradient of logsumexp. dq is scale times the sum over s of p * (sum over d of dy * v - delta) * k. Keys are
    processed in blocks of `block`. It is not defined whether a NaN or an infinity in a hidden key or its value reaches
    dq.
  }];
  let arguments = (ins Sluice_FloatTensor:$q, Sluice_FloatTensor:$k, Sluice_FloatTensor:$v, Sluice_FloatTensor:$dy,
                       Sluice_FloatTensor:$logsumexp, Sluice_FloatTensor:$delta,
                       Sluice_AttentionMask:$mask, Sluice_AttentionCausal:$causal, Sluice_AttentionScale:$scale,
                       Sluice_AttentionBlock:$block);
  let results = (outs Sluice_FloatTensor:$dq);
}
def AttentionKeyValueGradOp : Sluice_Attention<"attention_key_value_grad",
    [DeclareOpInterfaceMethods<FormulaGradientOp>]> {
  let summary = "dK and dV of scaled_dot_product_attention";
  let description = [{
    p and delta are those of attention_query_grad. dv is the sum of p * dy, and dk is scale times the sum of p * (sum
    over d of dy * v - delta) * q. The sums are over the queries of the heads that read the head of the key: head by
    head, and the queries of a head in blocks of `block`. Scores are recomputed. It is not defined whether a NaN or an
    infinity in a query, or in its dy, logsumexp and delta, reaches dk and dv of keys that are hidden from it.
  }];
  let arguments = (ins Sluice_FloatTensor:$q, Sluice_FloatTensor:$k, Sluice_FloatTensor:$v, Sluice_FloatTensor:$dy,
                       Sluice_FloatTensor:$logsumexp, Sluice_FloatTensor:$delta,
                       Sluice_AttentionMask:$mask, Sluice_AttentionCausal:$causal, Sluice_AttentionScale:$scale,
                       Sluice_AttentionBlock:$block);
  let results = (outs Sluice_FloatTensor:$dk, Sluice_FloatTensor:$dv);
}

#endif
