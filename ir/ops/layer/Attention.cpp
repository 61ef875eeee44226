// Attention by blocks of keys: the semantics of the op and its gradients. The formulas for backends without a kernel
// are in AttentionFormula.cpp.
#include "ir/Dialect.h"
#include "ir/build/Node.h"
#include "ir/ops/Inference.h"
#include "ir/ops/layer/AttentionFormula.h"
#include "ir/ops/layer/AttentionReference.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace sluice::ir {

//===- types -----------------------------------------------------------------------------------------------------===//

/// The mask is broadcast along its dimensions of size 1.
static LogicalResult checkMask(MaybeLocation loc, Value mask, ArrayRef<int64_t> scores, Type element) {
  if (!mask)
    return success();
  if (!elementOf(mask).isInteger(1) && elementOf(mask) != element)
    return inferenceFailure(loc, "a mask is of bool or, as the queries are, of ", element, "; got ", elementOf(mask));
  ArrayRef<int64_t> shape = shapeOf(mask);
  bool repeats = shape.size() == scores.size() && llvm::all_of(llvm::zip_equal(shape, scores), [](auto sizes) {
                   return std::get<0>(sizes) == 1 || std::get<0>(sizes) == std::get<1>(sizes);
                 });
  if (repeats)
    return success();
  return inferenceFailure(loc, "a mask has the dimensions of the scores, or 1 in their place, ", printShape(scores),
                          "; got ", printShape(shape));
}

static LogicalResult checkKeys(MaybeLocation loc, ArrayRef<int64_t> q, ArrayRef<int64_t> k, ArrayRef<int64_t> v) {
  auto fail = [&](StringRef what) {
    return inferenceFailure(loc, what, ": q ", printShape(q), ", k ", printShape(k), ", v ", printShape(v));
  };
  for (ArrayRef<int64_t> shape : {q, k, v})
    if (llvm::is_contained(shape.drop_front(), ShapedType::kDynamic))
      return fail("only the first dimension of attention may be ?");
  if (q[0] != k[0] || q[0] != v[0])
    return fail("queries, keys and values differ in their first dimension");
  if (k[1] != v[1] || k[2] != v[2])
    return fail("there is not one value for each key");
  if (q[3] != k[3])
    return fail("queries and keys differ in their last dimension");
  if (q[1] % k[1] != 0)
    return fail("the heads of the keys do not divide those of the queries");
  return success();
}

static SmallVector<int64_t> scoresOf(ArrayRef<int64_t> q, ArrayRef<int64_t> k) { return {q[0], q[1], q[2], k[2]}; }

template <typename Adaptor> static LogicalResult checkAttention(MaybeLocation loc, Adaptor op) {
  constexpr int64_t kLargestBlock = 1024;
  if (failed(checkFloats(loc, {op.getQ(), op.getK(), op.getV()})) || failed(checkRank(loc, "q", op.getQ(), 4)) ||
      failed(checkRank(loc, "k", op.getK(), 4)) || failed(checkRank(loc, "v", op.getV(), 4)))
    return failure();
  ArrayRef<int64_t> q = shapeOf(op.getQ()), k = shapeOf(op.getK()), v = shapeOf(op.getV());
  if (failed(checkKeys(loc, q, k, v)) || failed(checkMask(loc, op.getMask(), scoresOf(q, k), elementOf(op.getQ()))))
    return failure();
  if (double scale = op.getScale().convertToDouble(); !std::isfinite(scale))
    return inferenceFailure(loc, "scale is a number; got ", scale);
  if (int64_t block = op.getBlock(); block < 1 || block > kLargestBlock)
    return inferenceFailure(loc, "block is 1 to ", kLargestBlock, "; got ", block);
  return success();
}

/// Checks the additional operands of gradients.
template <typename Adaptor> static LogicalResult checkAttentionGrad(MaybeLocation loc, Adaptor op) {
  if (failed(checkAttention(loc, op)) || failed(checkFloats(loc, {op.getQ(), op.getDy()})) ||
      failed(checkFloats(loc, {op.getLogsumexp(), op.getDelta()})))
    return failure();
  ArrayRef<int64_t> q = shapeOf(op.getQ());
  SmallVector<int64_t> y(q.drop_back()), rows(y);
  y.push_back(shapeOf(op.getV()).back());
  if (shapeOf(op.getDy()) != ArrayRef(y))
    return inferenceFailure(loc, "dY differs in shape from y: ", printShape(shapeOf(op.getDy())), " and ",
                            printShape(y));
  for (Value value : {op.getLogsumexp(), op.getDelta()})
    if (shapeOf(value) != ArrayRef(rows) || elementOf(value) != getAccumulator(elementOf(op.getQ())))
      return inferenceFailure(loc, "logsumexp and delta have one ", getAccumulator(elementOf(op.getQ())),
                              " for each query, ", printShape(rows), "; got ", printShape(shapeOf(value)), " of ",
                              elementOf(value));
  return success();
}

LogicalResult ScaledDotProductAttentionOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                                            DictionaryAttr attributes, OpaqueProperties properties,
                                                            RegionRange, SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  if (failed(checkAttention(loc, op)))
    return failure();
  SmallVector<int64_t> rows(shapeOf(op.getQ()).drop_back()), y(rows);
  y.push_back(shapeOf(op.getV()).back());
  return success(succeeded(addResult(loc, y, elementOf(op.getQ()), types)) &&
                 succeeded(addResult(loc, rows, getAccumulator(elementOf(op.getQ())), types)));
}

LogicalResult AttentionQueryGradOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                                     DictionaryAttr attributes, OpaqueProperties properties,
                                                     RegionRange, SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  if (failed(checkAttentionGrad(loc, op)))
    return failure();
  return addResult(loc, shapeOf(op.getQ()), elementOf(op.getQ()), types);
}

LogicalResult AttentionKeyValueGradOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                                        DictionaryAttr attributes, OpaqueProperties properties,
                                                        RegionRange, SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  if (failed(checkAttentionGrad(loc, op)))
    return failure();
  return success(succeeded(addResult(loc, shapeOf(op.getK()), elementOf(op.getK()), types)) &&
                 succeeded(addResult(loc, shapeOf(op.getV()), elementOf(op.getV()), types)));
}

//===- references ------------------------------------------------------------------------------------------------===//

namespace {

/// Whether results contain contributions of non-finite elements of hidden keys and queries. The ops do not define it:
/// kernels leave out some of the hidden keys. Without non-finite elements both give the same results.
enum class Hidden { LeftOut, Computed };

/// The score of a query and a key.
struct HostScore {
  int64_t key;
  double value;
};

/// The scores of one query, in double precision, and the offsets of their operands.
template <typename Op> class HostScores {
public:
  HostScores(Op op, const HostTensor &q, const HostTensor &k, const HostTensor *mask, Hidden hidden)
      : causal(op.getCausal()), scale(op.getScale().convertToDouble()),
        isBool(op.getMask() && elementOf(op.getMask()).isInteger(1)), hidden(hidden), q(q), k(k), mask(mask) {}

  int64_t headOfKeys(int64_t head) const { return head / (q.shape[1] / k.shape[1]); }

  std::vector<HostScore> of(int64_t b, int64_t h, int64_t t) const {
    std::vector<HostScore> scores;
    for (int64_t s = 0; s < k.shape[2]; ++s) {
      double added = causal && s > t ? kHidden : ofMask(b, h, t, s), score = 0;
      if (added == kHidden && hidden == Hidden::LeftOut)
        continue;
      for (int64_t d = 0; d < q.shape[3]; ++d)
        score += q.at({b, h, t, d}) * k.at({b, headOfKeys(h), s, d});
      scores.push_back({s, score * scale + added});
    }
    return scores;
  }

private:
  static constexpr double kHidden = -std::numeric_limits<double>::infinity();

  double ofMask(int64_t b, int64_t h, int64_t t, int64_t s) const {
    if (!mask)
      return 0;
    SmallVector<int64_t> index{b, h, t, s};
    for (auto [place, size] : llvm::zip_equal(index, mask->shape))
      place = size == 1 ? 0 : place;
    double value = mask->at(index);
    return !isBool ? value : value != 0 ? 0 : kHidden;
  }

  bool causal;
  double scale;
  bool isBool;
  Hidden hidden;
  const HostTensor &q, &k, *mask;
};

} // namespace

static SmallVector<HostTensor> evaluateAs(ScaledDotProductAttentionOp op, ArrayRef<HostTensor> operands,
                                          Hidden hidden) {
  const HostTensor &q = operands[0], &k = operands[1], &v = operands[2];
  HostScores scoring(op, q, k, op.getMask() ? &operands[3] : nullptr, hidden);
  HostTensor y({q.shape[0], q.shape[1], q.shape[2], v.shape[3]}), logsumexp(ArrayRef(q.shape).drop_back());
  forEachIndex(logsumexp.shape, [&](ArrayRef<int64_t> index) {
    int64_t b = index[0], h = index[1], t = index[2];
    std::vector<HostScore> scores = scoring.of(b, h, t);
    double largest = -std::numeric_limits<double>::infinity(), total = 0;
    for (auto [s, score] : scores)
      largest = std::max(largest, score);
    double shift = std::isinf(largest) && largest < 0 ? 0 : largest; // 0 for a query that attends to no key
    for (auto [s, score] : scores)
      total += std::exp(score - shift);
    logsumexp.at(index) = shift + std::log(total);
    if (total == 0)
      return;
    for (auto [s, score] : scores)
      for (int64_t d = 0; d < v.shape[3]; ++d)
        y.at({b, h, t, d}) += std::exp(score - shift) / total * v.at({b, scoring.headOfKeys(h), s, d});
  });
  return {y, logsumexp};
}

/// Calls `body` for each pair of a query and a key, with its probability p and the gradient of its score.
template <typename Op>
static void forEachScoreGradient(
    Op op, ArrayRef<HostTensor> operands, Hidden hidden,
    llvm::function_ref<void(int64_t b, int64_t h, int64_t t, int64_t ofKeys, int64_t s, double p, double dScore)>
        body) {
  const HostTensor &q = operands[0], &v = operands[2], &dY = operands[3], &logsumexp = operands[4],
                   &delta = operands[5];
  HostScores scoring(op, q, operands[1], op.getMask() ? &operands[6] : nullptr, hidden);
  forEachIndex(logsumexp.shape, [&](ArrayRef<int64_t> index) {
    int64_t b = index[0], h = index[1], t = index[2], ofKeys = scoring.headOfKeys(h);
    double total = logsumexp.at(index), shift = std::isinf(total) && total < 0 ? 0 : total;
    for (auto [s, score] : scoring.of(b, h, t)) {
      double p = std::exp(score - shift), dP = 0;
      for (int64_t d = 0; d < v.shape[3]; ++d)
        dP += dY.at({b, h, t, d}) * v.at({b, ofKeys, s, d});
      body(b, h, t, ofKeys, s, p, p * (dP - delta.at(index)));
    }
  });
}

static SmallVector<HostTensor> evaluateAs(AttentionQueryGradOp op, ArrayRef<HostTensor> operands, Hidden hidden) {
  const HostTensor &k = operands[1];
  HostTensor dQ(operands[0].shape);
  double scale = op.getScale().convertToDouble();
  forEachScoreGradient(op, operands, hidden,
                       [&](int64_t b, int64_t h, int64_t t, int64_t ofKeys, int64_t s, double, double dScore) {
                         for (int64_t d = 0; d < k.shape[3]; ++d)
                           dQ.at({b, h, t, d}) += scale * dScore * k.at({b, ofKeys, s, d});
                       });
  return {dQ};
}

static SmallVector<HostTensor> evaluateAs(AttentionKeyValueGradOp op, ArrayRef<HostTensor> operands, Hidden hidden) {
  const HostTensor &q = operands[0], &dY = operands[3];
  HostTensor dK(operands[1].shape), dV(operands[2].shape);
  double scale = op.getScale().convertToDouble();
  forEachScoreGradient(op, operands, hidden,
                       [&](int64_t b, int64_t h, int64_t t, int64_t ofKeys, int64_t s, double p, double dScore) {
                         for (int64_t d = 0; d < q.shape[3]; ++d)
                           dK.at({b, ofKeys, s, d}) += scale * dScore * q.at({b, h, t, d});
                         for (int64_t d = 0; d < dY.shape[3]; ++d)
                           dV.at({b, ofKeys, s, d}) += p * dY.at({b, h, t, d});
                       });
  return {dK, dV};
}

SmallVector<HostTensor> ScaledDotProductAttentionOp::evaluate(ArrayRef<HostTensor> operands, int64_t) {
  return evaluateAs(*this, operands, Hidden::LeftOut);
}
SmallVector<HostTensor> AttentionQueryGradOp::evaluate(ArrayRef<HostTensor> operands, int64_t) {
  return evaluateAs(*this, operands, Hidden::LeftOut);
}
SmallVector<HostTensor> AttentionKeyValueGradOp::evaluate(ArrayRef<HostTensor> operands, int64_t) {
  return evaluateAs(*this, operands, Hidden::LeftOut);
}

SmallVector<HostTensor> evaluateHiddenKeys(Operation *op, ArrayRef<HostTensor> operands, int64_t rows) {
  return llvm::TypeSwitch<Operation *, SmallVector<HostTensor>>(op)
      .Case<ScaledDotProductAttentionOp, AttentionQueryGradOp, AttentionKeyValueGradOp>(
          [&](auto attention) { return evaluateAs(attention, operands, Hidden::Computed); })
      .Default([&](Operation *other) { return cast<ReferenceOp>(other).evaluate(operands, rows); });
}

//===- work ------------------------------------------------------------------------------------------------------===//

/// The number of scores of a head that `causal` does not hide: query t attends to keys 0 to t.
static int64_t countCausalScores(int64_t queries, int64_t keys) {
  uint64_t partial = std::min(queries, keys); // the queries that may attend to fewer than all keys
  uint64_t scores = llvm::SaturatingMultiplyAdd(uint64_t(queries) - partial, uint64_t(keys),
                                                llvm::SaturatingMultiply(partial, partial + 1) / 2);
  return int64_t(std::min<uint64_t>(scores, INT64_MAX));
}

/// The flops of `ofKeys` products of queries and keys, and of `ofValues` products of scores and values.
template <typename Op> static std::pair<int64_t, int64_t> flopsOf(Op op, int64_t ofKeys, int64_t ofValues) {
  ArrayRef<int64_t> q = shapeOf(op.getQ()), k = shapeOf(op.getK());
  int64_t products = ofKeys * q.back() + ofValues * shapeOf(op.getV()).back();
  if (op.getCausal())
    return countFlops({q.take_front(2), countCausalScores(q[2], k[2]), products});
  return countFlops({scoresOf(q, k), products});
}

std::pair<int64_t, int64_t> ScaledDotProductAttentionOp::getFlops() { return flopsOf(*this, 1, 1); }
std::pair<int64_t, int64_t> AttentionQueryGradOp::getFlops() { return flopsOf(*this, 2, 1); }
std::pair<int64_t, int64_t> AttentionKeyValueGradOp::getFlops() { return flopsOf(*this, 2, 2); }

// The vectors are q, k, v and dy, which come first. The mask, logsumexp and delta hold none.
bool ScaledDotProductAttentionOp::holdsVectors(bool isResult, unsigned number) { return number < (isResult ? 1 : 3); }
bool AttentionQueryGradOp::holdsVectors(bool isResult, unsigned number) { return isResult || number < 4; }
bool AttentionKeyValueGradOp::holdsVectors(bool isResult, unsigned number) { return isResult || number < 4; }

//===- gradient --------------------------------------------------------------------------------------------------===//

// delta is computed once for both. p * (dP - delta) reaches the scores through the softmax; p times the gradient of
// logsumexp reaches them through logsumexp. A mask's gradient, if requested, is as large as the scores.
SmallVector<Value> ScaledDotProductAttentionOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  Location loc = getLoc();
  auto ofResult = [&](unsigned number) {
    Node y(builder, loc, getResult(number));
    return dResults[number] ? Node(builder, loc, dResults[number]) : y.like(0.0);
  };
  Node dY = ofResult(0), delta = sum(widened(dY) * widened(Node(builder, loc, getY())), {3}) - ofResult(1);
  auto dQ = builder.create<AttentionQueryGradOp>(loc, getQ(), getK(), getV(), dY, getLogsumexp(), delta, getMask(),
                                                 getCausal(), getScale(), getBlock());
  auto dKV = builder.create<AttentionKeyValueGradOp>(loc, getQ(), getK(), getV(), dY, getLogsumexp(), delta, getMask(),
                                                     getCausal(), getScale(), getBlock());
  SmallVector<Value> gradients{dQ.getDq(), dKV.getDk(), dKV.getDv()};
  if (getMask())
    gradients.push_back(elementOf(getMask()).isInteger(1) ? Value() : buildMaskGradient(builder, dKV));
  return gradients;
}

/// Fewer heads of keys; masks that are broadcast along each dimension; causal masks with fewer keys than queries and
/// with more.
SmallVector<Sample> ScaledDotProductAttentionOp::samples() {
  auto sample = [](const std::string &attributes, const std::string &q, const std::string &k, const std::string &v,
                   const std::string &y, const std::string &rows, const std::string &mask = "") {
    Sample result{"\"sluice.scaled_dot_product_attention\"(%0, %1, %2" + std::string(mask.empty() ? "" : ", %3") +
                      ") {" + attributes + "} : (tensor<" + q + "xf64>, tensor<" + k + "xf64>, tensor<" + v + "xf64>" +
                      (mask.empty() ? "" : ", tensor<" + mask + ">") + ") -> (tensor<" + y + "xf64>, tensor<" + rows +
                      "xf64>)",
                  {{-1, 1}, {-1, 1}, {-1, 1}}};
    if (!mask.empty())
      result.ranges.push_back(StringRef(mask).ends_with("i1") ? std::pair(0.0, 2.0) : std::pair(-1.0, 1.0));
    return result;
  };
  return {
      sample("scale = 0.5 : f64, block = 2 : i64", "?x2x3x4", "?x2x5x4", "?x2x5x3", "?x2x3x3", "?x2x3"),
      sample("causal, scale = 0.7 : f64", "2x4x5x2", "2x2x5x2", "2x2x5x3", "2x4x5x3", "2x4x5"),
      sample("causal, scale = 1.0 : f64, block = 1 : i64", "?x2x4x2", "?x1x3x2", "?x1x3x2", "?x2x4x2", "?x2x4",
             "?x1x1x3xf64"),
      sample("scale = -0.5 : f64, block = 3 : i64", "1x2x3x2", "1x2x4x2", "1x2x4x2", "1x2x3x2", "1x2x3", "1x2x3x4xf64"),
      sample("scale = 0.5 : f64, block = 3 : i64", "?x2x3x2", "?x2x4x2", "?x2x4x1", "?x2x3x1", "?x2x3", "1x1x3x4xi1"),
      sample("scale = 2.0 : f64, block = 2 : i64", "3x1x2x1", "3x1x5x1", "3x1x5x2", "3x1x2x2", "3x1x2", "3x1x2x1xf64")};
}

} // namespace sluice::ir
