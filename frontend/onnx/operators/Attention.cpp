// Attention and RotaryEmbedding.
#include "frontend/onnx/import/Operators.h"
#include "sluice/ops.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::onnx {

namespace {

/// The operands of Attention: query [N, H, T, D], key [N, Hk, S, D] and value [N, Hk, S, Dv].
struct AttentionOperands {
  Tensor query, key, value;
  bool isFlat;           ///< the inputs have no dimension of heads
  std::int64_t past = 0; ///< keys that come before those of the node
};

/// The results of qk_matmul_output_mode.
enum class ScoreStage { products, capped, masked, weights };

/// Which keys a query may attend to, as a tensor that broadcasts to the scores; empty: all.
struct AttentionMask {
  Tensor allowed; ///< of bool
  Tensor added;   ///< to the scores; -inf forbids a key
};

} // namespace

static constexpr double kHidden = -std::numeric_limits<double>::infinity();
static constexpr std::size_t kMask = 3, kPastKey = 4, kPastValue = 5, kKeyCounts = 6;

//===- operands ---------------------------------------------------------------------------------------------------===//

/// [N, T, H * D] as [N, H, T, D].
static Tensor splitIntoHeads(const Tensor &x, std::int64_t heads) {
  if (heads < 1 || x.size(2).size % heads != 0)
    Node::fail(std::to_string(heads) + " heads do not divide " + x.size(2).str() + " elements");
  return x.reshape({x.size(0), x.size(1), heads, x.size(2).size / heads}).transpose(1, 2);
}

static AttentionOperands attentionOperands(Node &node) {
  std::int64_t rank = node.rank(0);
  if ((rank != 3 && rank != 4) || node.rank(1) != rank || node.rank(2) != rank)
    Node::fail("queries, keys and values must all have three dimensions, or all four");
  if (node.has(kPastKey) != node.has(kPastValue))
    Node::fail("past_key and past_value are used together");
  AttentionOperands of{node.tensor(0), node.tensor(1), node.tensor(2), rank == 3};
  if (of.isFlat) {
    of.query = splitIntoHeads(of.query, node.integer("q_num_heads", 0));
    for (Tensor *x : {&of.key, &of.value})
      *x = splitIntoHeads(*x, node.integer("kv_num_heads", 0));
  }
  if (!node.has(kPastKey))
    return of;
  if (node.rank(kPastKey) != 4 || !node.shape(kPastKey)[2].isKnown())
    Node::fail("the shape of past_key is not supported");
  of.past = node.shape(kPastKey)[2].constant;
  of.key = cat({node.tensor(kPastKey), of.key}, 2);
  of.value = cat({node.tensor(kPastValue), of.value}, 2);
  return of;
}

//===- the mask ---------------------------------------------------------------------------------------------------===//

static Tensor both(const Tensor &a, const Tensor &b) { return !bool(a) ? b : !bool(b) ? a : a & b; }

/// The place of each query among the keys minus the place of each key: [T, S], or [N, 1, T, S].
static Tensor distances(Node &node, const AttentionOperands &of) {
  Graph graph = node.graph();
  std::int64_t queries = of.query.size(2).size, keys = of.key.size(2).size;
  Tensor query = graph.arange(double(of.past), double(of.past + queries), 1, i32).unsqueeze(1);
  Tensor distance = query - graph.arange(double(keys), i32);
  if (!node.has(kKeyCounts) || of.past > 0)
    return distance;
  Tensor offset = node.tensor(kKeyCounts).to(i32) - double(queries);
  return offset.unsqueeze(1).unsqueeze(2).unsqueeze(3) + distance;
}

/// The rules of the attributes and of nonpad_kv_seqlen; empty if they allow all keys.
static Tensor allowedKeys(Node &node, const AttentionOperands &of, bool isCausal) {
  std::int64_t left = node.integer("left_window_size", -1), right = node.integer("right_window_size", -1);
  std::int64_t keys = of.key.size(2).size;
  if (std::max(left, right) > std::numeric_limits<std::int32_t>::max() || std::min(left, right) < -1)
    Node::fail("window sizes " + std::to_string(left) + " and " + std::to_string(right) + " are not supported");
  Tensor allowed;
  if (isCausal || left >= 0 || right >= 0) {
    Tensor distance = distances(node, of);
    if (isCausal)
      allowed = both(allowed, distance >= 0.0);
    if (left >= 0)
      allowed = both(allowed, distance <= double(left));
    if (right >= 0)
      allowed = both(allowed, distance >= -double(right));
  }
  if (!node.has(kKeyCounts))
    return allowed;
  Tensor counts = node.tensor(kKeyCounts).to(i32).unsqueeze(1).unsqueeze(2).unsqueeze(3);
  return both(allowed, node.graph().arange(double(keys), i32) < counts);
}

/// The mask of the node, and the rules in `allowed`.
static AttentionMask attentionMask(Node &node, const AttentionOperands &of, const Tensor &allowed) {
  if (!node.has(kMask))
    return {allowed, {}};
  Tensor mask = node.tensor(kMask);
  bool isBool = mask.dtype() == DType::boolean;
  if (mask.dim() == 0 || (!isBool && !is_float(mask.dtype())))
    Node::fail("an attn_mask of type " + nameOf(node.type(kMask)) + " with " + std::to_string(mask.dim()) +
               " dimensions is not supported");
  std::int64_t missing = of.key.size(2).size - mask.size(-1).size;
  if (missing < 0)
    Node::fail("attn_mask has more keys than there are");
  if (missing > 0 && mask.size(-1).size > 1)
    mask = pad(mask, {0, missing}, isBool ? 0.0 : kHidden);
  if (isBool)
    return {both(mask, allowed), {}};
  mask = mask.to(of.query.dtype());
  return {{}, bool(allowed) ? where(allowed, mask, kHidden) : mask};
}

//===- scores -----------------------------------------------------------------------------------------------------===//

/// Attention written out, with all scores. Sets output 3.
static Tensor attendByScores(Node &node, const AttentionOperands &of, double scale, const AttentionMask &mask) {
  std::int64_t heads = of.query.size(1).size, keyHeads = of.key.size(1).size;
  if (heads % keyHeads != 0)
    Node::fail(std::to_string(keyHeads) + " heads of keys do not divide " + std::to_string(heads) + " of queries");
  Shape shape = of.query.shape();
  Tensor query = of.query.reshape({shape[0], keyHeads, heads / keyHeads, shape[2], shape[3]});
  double root = std::sqrt(scale);
  Tensor scores = einsum("bgrtd,bgsd->bgrts", query * root, of.key * root);
  scores = scores.reshape({shape[0], heads, shape[2], of.key.size(2)});
  auto mode = ScoreStage(node.integer("qk_matmul_output_mode", 0));
  auto expose = [&](ScoreStage stage, const Tensor &x) {
    if (mode == stage)
      node.set(3, x);
  };
  expose(ScoreStage::products, scores);
  if (double cap = node.real("softcap", 0.0); cap != 0.0)
    scores = cap * sluice::tanh(scores / cap);
  expose(ScoreStage::capped, scores);
  Tensor added = bool(mask.allowed) ? where(mask.allowed, full_like(scores, 0.0), kHidden) : mask.added;
  if (bool(added))
    scores = scores + added;
  expose(ScoreStage::masked, scores);
  auto precision = ElementType(node.integer("softmax_precision", 0));
  DType wide = precision == ElementType::undefined ? scores.dtype() : heldAs(precision).value_or(scores.dtype());
  Tensor weights = scores.to(wide).softmax(-1).to(scores.dtype());
  if (bool(added))
    weights = where(sluice::max(added, -1, true) == kHidden, 0.0, weights);
  expose(ScoreStage::weights, weights);
  Tensor y = einsum("bgrts,bgsd->bgrtd",
                    weights.reshape({shape[0], keyHeads, heads / keyHeads, shape[2], of.key.size(2)}), of.value);
  return y.reshape({shape[0], heads, shape[2], of.value.size(3)});
}

void attention(Node &node) {
  AttentionOperands of = attentionOperands(node);
  bool isCausal = node.integer("is_causal", 0) != 0, isOffset = of.past > 0 || node.has(kKeyCounts);
  bool needsScores = node.wants(3) || node.real("softcap", 0.0) != 0.0;
  double scale = node.real("scale", 1.0 / std::sqrt(double(of.query.size(3).size)));
  if (node.integer("qk_matmul_output_mode", 0) < 0 || node.integer("qk_matmul_output_mode", 0) > 3 || !(scale >= 0))
    Node::fail("qk_matmul_output_mode or scale is out of range");
  bool isMasked = isCausal && (isOffset || needsScores);
  AttentionMask mask = attentionMask(node, of, allowedKeys(node, of, isMasked));
  Tensor y;
  if (needsScores)
    y = attendByScores(node, of, scale, mask);
  else
    y = scaled_dot_product_attention(of.query, of.key, of.value,
                                     {.attn_mask = bool(mask.allowed) ? mask.allowed : mask.added,
                                      .is_causal = isCausal && !isMasked,
                                      .scale = scale});
  node.set(0, of.isFlat ? y.transpose(1, 2).flatten(2, 3) : y);
  node.set(1, of.key);
  node.set(2, of.value);
}

//===- RotaryEmbedding --------------------------------------------------------------------------------------------===//

/// A cache [positions, R / 2], of which position_ids select rows, or [N, T, R / 2], as [N, 1, T, R / 2].
static Tensor rotation(Node &node, std::size_t cache) {
  Tensor all = node.weight(cache);
  if (node.has(3))
    all = all.index_select(0, node.tensor(3));
  if (all.dim() != 3)
    Node::fail("a cache of " + std::to_string(all.dim()) + " dimensions is not supported");
  return all.unsqueeze(1);
}

void rotaryEmbedding(Node &node) {
  Tensor x = node.tensor(0);
  bool isFlat = x.dim() == 3;
  if (isFlat)
    x = splitIntoHeads(x, node.integer("num_heads", 0));
  if (x.dim() != 4)
    Node::fail("an input of " + std::to_string(x.dim()) + " dimensions is not supported");
  std::int64_t width = x.size(3).size, rotated = node.integer("rotary_embedding_dim", 0);
  rotated = rotated == 0 ? width : rotated;
  if (rotated < 2 || rotated > width || rotated % 2 != 0)
    Node::fail("rotary_embedding_dim " + std::to_string(rotated) + " of " + std::to_string(width) + " elements");
  Tensor cosine = rotation(node, 1), sine = rotation(node, 2), part = x.slice(3, 0, rotated);
  if (cosine.size(3).size != rotated / 2 || sine.size(3).size != rotated / 2)
    Node::fail("the caches have " + cosine.size(3).str() + " angles, not " + std::to_string(rotated / 2));
  bool isInterleaved = node.integer("interleaved", 0) != 0;
  Tensor first = isInterleaved ? part.slice(3, 0, rotated, 2) : part.slice(3, 0, rotated / 2);
  Tensor second = isInterleaved ? part.slice(3, 1, rotated, 2) : part.slice(3, rotated / 2, rotated);
  Tensor real = cosine * first - sine * second, imaginary = sine * first + cosine * second;
  Tensor y = isInterleaved ? stack({real, imaginary}, 4).flatten(3, 4) : cat({real, imaginary}, 3);
  if (rotated < width)
    y = cat({y, x.slice(3, rotated, width)}, 3);
  node.set(0, isFlat ? y.transpose(1, 2).flatten(2, 3) : y);
}

} // namespace sluice::onnx
