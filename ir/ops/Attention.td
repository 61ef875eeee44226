// Attention: a softmax of products of queries and keys, times values, by blocks of keys.
#ifndef SLUICE_IR_ATTENTION
#define SLUICE_IR_ATTENTION

include "ir/Base.td"

def Sluice_AttentionCausal : Arg<UnitAttr, "query t attends to keys 0 to t alone">;
def Sluice_AttentionScale : Arg<F64Attr, "by which products of queries and keys are multiplied; a number">;
def Sluice_AttentionBlock : Arg<DefaultValuedAttr<I64Attr, "64">, "keys (of the gradients of keys and values: queries) in a block, 1 to 1024">;
def Sluice_AttentionMask : Arg<Optional<RankedTensorOf<[F32, F64, F16, BF16, I1]>>, "[B, H, T, S], or 1 in the place of any of them: added to the scores, or whether a query attends to a key">;

class Sluice_Attention<string mnemonic, list<Trait> traits = []>
    : Sluice_ValueOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<BlockwiseOp>, DeclareOpInterfaceMethods<CompositeOp>, RowFlowOp, ComputesNarrow], traits)> {
  let rows = "B may be `?`, nothing else.";
  let rounding = [{
    In the element type, of halves in f32 with results rounded once. A score is summed over the elements of a query in their order; blocks follow
    in their order, and what is summed over a block in an order that depends on the shape and the target alone.
  }];
}

def ScaledDotProductAttentionOp : Sluice_Attention<"scaled_dot_product_attention", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "softmax(q k^T * scale + mask) v of q [B, H, T, D], k [B, Hk, S, D] and v [B, Hk, S, Dv], and the logarithms of the softmax's sums";
  let description = [{
    The score of query t and key s of head h is scale times the sum of q[b, h, t, d] * k[b, h / (H / Hk), s, d] over d, plus the mask; it is
    -inf where a mask of bool is false, and with `causal` where s > t. logsumexp [B, H, T] is the logarithm of the sum over s of e^score, and
    y [B, H, T, Dv] the sum of e^(score - logsumexp) * v over s. A query all of whose scores are -inf has 0 in y, and -inf as its
    logsumexp. Hk divides H.

    Keys come in blocks of `block`. Of the blocks so far it keeps the largest score m, the sum l of e^(score - m), and that of
    e^(score - m) * v, which a larger score scales by e^(m - m'). So no more than a block of scores is ever kept. logsumexp is of the type that
    sums of such elements are of. Blocks in which `causal` hides every key may be left out.
  }];
  let arguments = (ins Sluice_FloatTensor:$q, Sluice_FloatTensor:$k, Sluice_FloatTensor:$v, Sluice_AttentionMask:$mask,
                       Sluice_AttentionCausal:$causal, Sluice_AttentionScale:$scale, Sluice_AttentionBlock:$block);
  let results = (outs Sluice_FloatTensor:$y, Sluice_FloatTensor:$logsumexp);
}
def AttentionQueryGradOp : Sluice_Attention<"attention_query_grad", [DeclareOpInterfaceMethods<FormulaGradientOp>]> {
  let summary = "dQ of scaled_dot_product_attention from its operands, dY, its logsumexp, and delta [B, H, T]";
  let description = [{
    With p = e^(score - logsumexp), the scores those of scaled_dot_product_attention with the same operands and attributes, and 0 where both are -inf,
    dq is scale times the sum over s of p * (sum over d of dy * v - delta) * k. delta is the sum over the elements of y of dy * y, less the gradient of
    logsumexp. Keys come in blocks of `block`; scores are computed again.
  }];
  let arguments = (ins Sluice_FloatTensor:$q, Sluice_FloatTensor:$k, Sluice_FloatTensor:$v, Sluice_FloatTensor:$dy, Sluice_FloatTensor:$logsumexp, Sluice_FloatTensor:$delta,
                       Sluice_AttentionMask:$mask, Sluice_AttentionCausal:$causal, Sluice_AttentionScale:$scale, Sluice_AttentionBlock:$block);
  let results = (outs Sluice_FloatTensor:$dq);
}
def AttentionKeyValueGradOp : Sluice_Attention<"attention_key_value_grad", [DeclareOpInterfaceMethods<FormulaGradientOp>]> {
  let summary = "dK and dV of scaled_dot_product_attention from its operands, dY, its logsumexp, and delta [B, H, T]";
  let description = [{
    With p and delta as those of attention_query_grad, dv is the sum of p * dy and dk scale times the sum of p * (sum over d of dy * v - delta) * q, over the
    queries of the heads that read the key's head. These heads follow in their order, and the queries of one in blocks of `block`; scores are
    computed again.
  }];
  let arguments = (ins Sluice_FloatTensor:$q, Sluice_FloatTensor:$k, Sluice_FloatTensor:$v, Sluice_FloatTensor:$dy, Sluice_FloatTensor:$logsumexp, Sluice_FloatTensor:$delta,
                       Sluice_AttentionMask:$mask, Sluice_AttentionCausal:$causal, Sluice_AttentionScale:$scale, Sluice_AttentionBlock:$block);
  let results = (outs Sluice_FloatTensor:$dk, Sluice_FloatTensor:$dv);
}

#endif
