// Random numbers from Threefry-2x32 with 20 rounds (Salmon et al., 2011), as JAX uses it.
//
// bits      The 32 bits of element i of n. A shape without `?` has JAX's original scheme: the counters 0 .. n-1, with a
//           0 after them if n is odd, are cut in halves. Block j encrypts counters (j, h + j) with h = ceil(n / 2) into
//           the bits of elements j and h + j. A shape with `?` has JAX's partitionable scheme, in which element i does
//           not depend on n: the exclusive or of the two words into which the block (0, i) is encrypted.
// stream    The key of a stream s other than 0 is the encryption of the block (upper half of s, lower half of s).
// wide      The 64 bits of element i of n: both words of the block (i, n + i), or of the block (0, i) with `?`.
// uniform   max(a, u (b - a) + a), where the fraction u is the upper 23 bits, or the upper 52 of 64. f64 has the same
//           fraction as f32 unless it is wide, because `--dtype f64` must not change the numbers of a program.
// bernoulli u < p, where u is the fraction of the encrypted block (row, place in the row).
// normal    sqrt(2) erfinv(2 u + l) deviation + mean, where l is the float after -1, with Giles' single-precision
//           polynomial. Wide: l is the double after -1, with Giles' double-precision polynomials.
#include "ir/ops/math/Random.h"
#include "ir/Dialect.h"
#include "ir/build/Lane.h"
#include "ir/ops/Inference.h"
#include "ir/ops/math/ErfInv.h"
#include "ir/ops/model/Init.h"
#include <array>
#include <cmath>

using namespace mlir;

namespace sluice::ir {

constexpr uint32_t kParity = 0x1BD11BDA;
constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
constexpr double kFraction = 0x1p-23; // one unit of the fraction
constexpr double kWideFraction = 0x1p-52;
constexpr double kAboveMinusOne = -1.0 + 0x1p-24; // the float after -1
constexpr double kWideAboveMinusOne = -1.0 + 0x1p-53;
constexpr double kSqrt2 = 1.4142135623730951;

//===- The reference ---------------------------------------------------------------------------------------------===//

using RandomBlock = std::array<uint32_t, 2>;

static uint32_t rotate(uint32_t value, int by) { return value << by | value >> (32 - by); }

static RandomBlock encrypt(RandomBlock key, RandomBlock block) {
  uint32_t keys[] = {key[0], key[1], key[0] ^ key[1] ^ kParity};
  block = {block[0] + keys[0], block[1] + keys[1]};
  for (uint32_t group = 0; group < 5; ++group) {
    for (int rotation : kRotations[group % 2]) {
      block[0] += block[1];
      block[1] = rotate(block[1], rotation) ^ block[0];
    }
    block[0] += keys[(group + 1) % 3];
    block[1] += keys[(group + 2) % 3] + group + 1;
  }
  return block;
}

static RandomBlock getStreamKey(const HostTensor &key, uint64_t stream) {
  RandomBlock words = {uint32_t(int64_t(key.data[0])), uint32_t(int64_t(key.data[1]))};
  return stream == 0 ? words : encrypt(words, {uint32_t(stream >> 32), uint32_t(stream)});
}

static uint32_t drawBits(RandomBlock key, uint64_t element, uint64_t count, bool partitionable) {
  if (partitionable) {
    RandomBlock block = encrypt(key, {uint32_t(element >> 32), uint32_t(element)});
    return block[0] ^ block[1];
  }
  uint64_t half = (count + 1) / 2, first = element % half, second = half + first;
  return encrypt(key, {uint32_t(first), uint32_t(second < count ? second : 0)})[element / half];
}

/// Maps the first word of a key to that of stream `stream`: the factor is odd, so streams have distinct keys.
static uint32_t moveToStream(uint64_t stream) { return 0x85EBCA77 * uint32_t(stream); }

/// `p` in units of the fraction, rounded up: draws below are true.
static double unitsBelow(const APFloat &p) { return std::ceil(p.convertToDouble() / kFraction); }

/// The 64 bits of an element.
static uint64_t drawWideBits(RandomBlock key, uint64_t element, uint64_t count, bool partitionable) {
  RandomBlock block = partitionable ? RandomBlock{uint32_t(element >> 32), uint32_t(element)}
                                    : RandomBlock{uint32_t(element), uint32_t(count + element)};
  block = encrypt(key, block);
  return uint64_t(block[0]) << 32 | block[1];
}

/// Fills a tensor with `convert(fraction)` of each element's bits.
template <typename Op>
static HostTensor draw(Op op, const HostTensor &key, int64_t rows, llvm::function_ref<double(double)> convert) {
  HostTensor y(runtimeShape(op.getY().getType(), rows));
  RandomBlock words = getStreamKey(key, op.getStream());
  bool partitionable = !tensorOf(op.getY()).hasStaticShape();
  for (size_t i = 0, count = y.data.size(); i < count; ++i)
    y.data[i] = convert(op.getWide() ? double(drawWideBits(words, i, count, partitionable) >> 12) * kWideFraction
                                     : double(drawBits(words, i, count, partitionable) >> 9) * kFraction);
  return y;
}

//===- The body --------------------------------------------------------------------------------------------------===//

namespace {

struct LaneBlock {
  Lane first, second;
};

/// A key in lanes: its two words and their parity.
struct LaneKey {
  Lane words[3];
  LaneKey(Lane first, Lane second) : words{first, second, first ^ second ^ first.like(kParity)} {}
};

} // namespace

static Lane rotate(Lane value, int by) { return shiftLeft(value, by) | shiftRightUnsigned(value, 32 - by); }

static LaneBlock encrypt(const LaneKey &key, LaneBlock block) {
  Lane x = block.first + key.words[0], y = block.second + key.words[1];
  for (int group = 0; group < 5; ++group) {
    for (int rotation : kRotations[group % 2]) {
      x = x + y;
      y = rotate(y, rotation) ^ x;
    }
    x = x + key.words[(group + 1) % 3];
    y = y + (key.words[(group + 2) % 3] + double(group + 1));
  }
  return {x, y};
}

static Lane laneOf(ElementBuilder &builder, Value value) { return Lane(builder.builder(), builder.loc(), value); }

/// Encrypts in a function, because every weight of a model is drawn with it.
static LaneBlock callEncrypt(ElementBuilder &builder, LaneBlock key, LaneBlock block) {
  const Value operands[] = {key.first, key.second, block.first, block.second};
  SmallVector<Value> made = builder.call("threefry", operands, [&](ValueRange words) -> SmallVector<Value> {
    auto lane = [&](unsigned number) { return laneOf(builder, words[number]); };
    LaneBlock encrypted = encrypt(LaneKey(lane(0), lane(1)), {lane(2), lane(3)});
    return {encrypted.first, encrypted.second};
  });
  return {laneOf(builder, made[0]), laneOf(builder, made[1])};
}

/// Word number `word` of the key, which is the first operand.
static Lane loadKey(ElementBuilder &builder, int64_t word) {
  return laneOf(builder, builder.operand(0, builder.constantIndex(word)));
}

/// The key of the op's stream.
template <typename Op> static LaneBlock loadStreamKey(Op op, ElementBuilder &builder) {
  LaneBlock key{loadKey(builder, 0), loadKey(builder, 1)};
  uint64_t stream = op.getStream();
  if (stream == 0)
    return key;
  return callEncrypt(builder, key,
                     {key.first.like(double(int32_t(stream >> 32))), key.first.like(double(int32_t(stream)))});
}

/// The number of the element at `index`, an i32.
template <typename Op> static Lane numberElement(Op op, ElementBuilder &builder, ArrayRef<AffineExpr> index) {
  auto type = tensorOf(op.getY());
  AffineExpr linear = builder.constantIndex(0);
  for (auto [dim, i] : llvm::enumerate(index))
    linear = type.isDynamicDim(dim) || dim == 0 ? i : linear * type.getDimSize(dim) + i;
  return laneOf(builder, builder.materialize(linear, builder.builder().getI32Type()));
}

/// The 32 bits of the element at `index`.
template <typename Op> static Lane buildBits(Op op, ElementBuilder &builder, ArrayRef<AffineExpr> index) {
  auto type = tensorOf(op.getY());
  LaneBlock key = loadStreamKey(op, builder);
  Lane element = numberElement(op, builder, index);
  if (!type.hasStaticShape()) {
    LaneBlock block = callEncrypt(builder, key, {element.like(0), element});
    return block.first ^ block.second;
  }
  int64_t count = type.getNumElements(), half = (count + 1) / 2;
  Lane isSecond = element >= double(half);
  Lane first = where(isSecond, element - double(half), element), second = first + double(half);
  LaneBlock block = callEncrypt(builder, key, {first, where(second < double(count), second, 0.0)});
  return where(isSecond, block.second, block.first);
}

/// The 64 bits of the element at `index`.
template <typename Op> static Lane buildWideBits(Op op, ElementBuilder &builder, ArrayRef<AffineExpr> index) {
  auto type = tensorOf(op.getY());
  LaneBlock key = loadStreamKey(op, builder);
  Lane element = numberElement(op, builder, index);
  LaneBlock block = callEncrypt(builder, key,
                                type.hasStaticShape() ? LaneBlock{element, element + double(type.getNumElements())}
                                                      : LaneBlock{element.like(0), element});
  Type i64 = builder.builder().getI64Type();
  auto widen = [&](Lane word) { return castTo(word, i64, true, true); };
  return shiftLeft(widen(block.first), 32) | widen(block.second);
}

/// The fraction of the element at `index`: f64 if the op is wide, and of the op's element type otherwise.
template <typename Op> static Lane buildFraction(Op op, ElementBuilder &builder, ArrayRef<AffineExpr> index) {
  if (!op.getWide())
    return castTo(shiftRightUnsigned(buildBits(op, builder, index), 9), elementOf(op.getY()), false, false) * kFraction;
  Lane bits = shiftRightUnsigned(buildWideBits(op, builder, index), 12);
  return castTo(bits, builder.builder().getF64Type(), false, false) * kWideFraction;
}

static Lane callErfinv(ElementBuilder &builder, Lane x, ErfInv precision) {
  auto body = [&](ValueRange operand) -> SmallVector<Value> {
    return {erfinv(laneOf(builder, operand[0]), precision)};
  };
  return laneOf(builder, builder.call(precision == ErfInv::Single ? "erfinv" : "erfinv_double", x.value, body)[0]);
}

//===- random_bits -----------------------------------------------------------------------------------------------===//

/// Adds the result type, in which only dimension 0 may be `?`.
static LogicalResult addDrawn(MaybeLocation loc, RankedTensorType type, SmallVectorImpl<Type> &types) {
  ArrayRef<int64_t> shape = type.getShape();
  if (failed(addResult(loc, shape, type.getElementType(), types)))
    return failure();
  if (llvm::is_contained(shape.drop_front(std::min<size_t>(1, shape.size())), ShapedType::kDynamic))
    return inferenceFailure(loc, "random numbers need ? outermost: ", printShape(shape));
  return success();
}

LogicalResult RandomBitsOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                             DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                             SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  auto type = cast<RankedTensorType>(op.getType());
  if (failed(checkKey(loc, op.getKey())))
    return failure();
  if (!type.getElementType().isSignlessInteger(32))
    return inferenceFailure(loc, "random bits are i32; got ", type.getElementType());
  if (std::string problem = problemOfDrawn(type.getShape()); !problem.empty())
    return inferenceError(loc, problem);
  return addDrawn(loc, type, types);
}

SmallVector<HostTensor> RandomBitsOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  HostTensor y(runtimeShape(getY().getType(), rows));
  RandomBlock key = getStreamKey(operands[0], getStream());
  for (size_t i = 0; i < y.data.size(); ++i)
    y.data[i] = int32_t(drawBits(key, i, y.data.size(), !tensorOf(getY()).hasStaticShape()));
  return {y};
}

/// An element is drawn by its index among the elements of all rows.
RowFlow RandomBitsOp::getRowFlow() { return RowFlow::Whole; }
RowFlow UniformOp::getRowFlow() { return RowFlow::Whole; }
RowFlow NormalOp::getRowFlow() { return RowFlow::Whole; }

Value RandomBitsOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  return buildBits(*this, builder, index);
}

//===- uniform, normal -------------------------------------------------------------------------------------------===//

static LogicalResult inferRandom(MaybeLocation loc, StringRef kind, Value key, const APFloat &a, const APFloat &b,
                                 RankedTensorType type, SmallVectorImpl<Type> &types) {
  if (failed(checkKey(loc, key)))
    return failure();
  if (std::string problem = problemOfInit(kind, a.convertToDouble(), b.convertToDouble(), type); !problem.empty())
    return inferenceError(loc, problem);
  return addDrawn(loc, type, types);
}

LogicalResult UniformOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                          DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                          SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  return inferRandom(loc, "uniform", op.getKey(), op.getA(), op.getB(), cast<RankedTensorType>(op.getType()), types);
}

/// a and b - a, each rounded as the type in which the number is computed rounds it.
static std::pair<double, double> boundsOf(UniformOp op) {
  Type element = op.getWide() ? Float64Type::get(op.getContext()) : getAccumulator(elementOf(op.getY()));
  double a = roundTo(element, op.getA().convertToDouble()), b = roundTo(element, op.getB().convertToDouble());
  return {a, roundTo(element, b - a)};
}

SmallVector<HostTensor> UniformOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  auto [low, span] = boundsOf(*this);
  return {
      draw(*this, operands[0], rows, [low, span](double fraction) { return std::fmax(low, fraction * span + low); })};
}

/// Converts a wide number, which is f64, to the element type.
template <typename Op> static Value rounded(Op op, Lane number) {
  return castTo(number, elementOf(op.getY()), false, false);
}

Value UniformOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  auto [low, span] = boundsOf(*this);
  return rounded(*this, max(buildFraction(*this, builder, index) * span + low, low));
}

LogicalResult NormalOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                         DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                         SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  return inferRandom(loc, "normal", op.getKey(), op.getA(), op.getB(), cast<RankedTensorType>(op.getType()), types);
}

SmallVector<HostTensor> NormalOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  double mean = getA().convertToDouble(), deviation = getB().convertToDouble();
  return {draw(*this, operands[0], rows, [&, isWide = getWide()](double fraction) {
    double uniform = fraction * 2 + (isWide ? kWideAboveMinusOne : kAboveMinusOne);
    return kSqrt2 * erfinv(uniform, isWide ? ErfInv::Double : ErfInv::Single) * deviation + mean;
  })};
}

Value NormalOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  Lane uniform = buildFraction(*this, builder, index) * 2.0 + (getWide() ? kWideAboveMinusOne : kAboveMinusOne);
  Lane standard = kSqrt2 * callErfinv(builder, uniform, getWide() ? ErfInv::Double : ErfInv::Single);
  return rounded(*this, standard * getB().convertToDouble() + getA().convertToDouble());
}

//===- bernoulli -------------------------------------------------------------------------------------------------===//

LogicalResult BernoulliOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                            DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                            SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  auto type = cast<RankedTensorType>(op.getType());
  if (failed(checkKey(loc, op.getKey())) || failed(checkProbability(loc, op.getP())))
    return failure();
  if (op.getFirst() && tensorOf(op.getFirst()).getRank() != 0)
    return inferenceFailure(loc, "the number of the first row is a scalar; got ", printShape(shapeOf(op.getFirst())));
  if (!type.getElementType().isInteger(1))
    return inferenceFailure(loc, "what is true or not is i1; got ", type.getElementType());
  return addResult(loc, type.getShape(), type.getElementType(), types);
}

/// The index in the dimension `?`, and the element's number within its row, for an index of numbers or expressions.
template <typename Index>
static std::pair<Index, Index> splitIndex(RankedTensorType type, ArrayRef<Index> index, Index zero) {
  Index row = zero, place = zero;
  for (auto [dim, i] : llvm::enumerate(index)) {
    if (type.isDynamicDim(dim))
      row = i;
    else
      place = place * type.getDimSize(dim) + i;
  }
  return {row, place};
}

HostTensor drawBernoulli(const HostTensor &key, int64_t first, uint64_t stream, const APFloat &p, RankedTensorType type,
                         int64_t rows) {
  HostTensor y(runtimeShape(type, rows));
  RandomBlock words = getStreamKey(key, 0);
  words[0] += moveToStream(stream);
  forEachIndex(y.shape, [&](ArrayRef<int64_t> index) {
    auto [row, place] = splitIndex<int64_t>(type, index, 0);
    RandomBlock block = encrypt(words, {uint32_t(first + row), uint32_t(place)});
    y.at(index) = ((block[0] ^ block[1]) >> 9) < unitsBelow(p);
  });
  return y;
}

SmallVector<HostTensor> BernoulliOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  int64_t first = getFirst() ? int64_t(operands[1].data[0]) : 0;
  return {drawBernoulli(operands[0], first, getStream(), getP(), tensorOf(getY()), rows)};
}

Value BernoulliOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  Type i32 = builder.builder().getI32Type();
  auto lane = [&](Value value) { return Lane(builder.builder(), builder.loc(), value); };
  auto [row, place] = splitIndex(tensorOf(getY()), index, builder.constantIndex(0));
  LaneBlock block{lane(builder.materialize(row, i32)), lane(builder.materialize(place, i32))};
  if (getFirst())
    block.first = block.first + castTo(lane(builder.operand(1, {})), i32, false, false);
  LaneKey key(loadKey(builder, 0) + double(int32_t(moveToStream(getStream()))), loadKey(builder, 1));
  block = encrypt(key, block);
  return shiftRightUnsigned(block.first ^ block.second, 9) < unitsBelow(getP());
}

SmallVector<Value> BernoulliOp::expandForReplicas(OpBuilder &builder, const RowNumbers &rows) {
  if (getFirst() || tensorOf(getY()).hasStaticShape())
    return {};
  return {builder.create<BernoulliOp>(getLoc(), getKey(), rows.first(), getStream(), getP(), getType())};
}

} // namespace sluice::ir
