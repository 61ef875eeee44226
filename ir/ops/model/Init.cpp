#include "ir/ops/model/Init.h"

#include "ir/Dialect.h"
#include "ir/build/Node.h"
#include "ir/ops/Inference.h"
#include "ir/reference/HostTensor.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <cfloat>
#include <cmath>

using namespace mlir;

namespace sluice::ir {

/// Counters are positive 32-bit integers, so this many elements can be drawn at once.
static constexpr int64_t kMostDrawn = int64_t(1) << 30;

/// 2^32 divided by the golden ratio, as a signed word. Keys of any number of steps are far apart, so keys of close
/// seeds do not collide.
static constexpr double kKeyOfStep = double(int32_t(0x9E3779B9));

bool holds(Type element, double value) {
  bool isWhole = value == std::trunc(value);
  switch (*dtypeOf(element)) {
  case SLUICE_DTYPE_f32:
    return !std::isfinite(value) || std::fabs(value) <= FLT_MAX;
  case SLUICE_DTYPE_f64:
    return true;
  case SLUICE_DTYPE_i32:
    return isWhole && value >= -0x1p31 && value < 0x1p31;
  case SLUICE_DTYPE_i64:
    return isWhole && std::fabs(value) <= 0x1p53;
  case SLUICE_DTYPE_u8:
    return isWhole && value >= 0 && value <= 255;
  case SLUICE_DTYPE_boolean:
    return value == 0 || value == 1;
  case SLUICE_DTYPE_f16:
  case SLUICE_DTYPE_bf16:
    return !std::isfinite(value) || std::isfinite(roundTo(element, value));
  }
  llvm_unreachable("a dtype beyond the table");
}

static std::string printNumber(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.6g", value);
  return text;
}

static std::string printType(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

std::string problemOfDrawn(ArrayRef<int64_t> shape) {
  if (countElements(shape).known <= kMostDrawn)
    return "";
  return "at most 2^30 random numbers can be drawn at once: " + printShape(shape);
}

static std::string problemOfRandom(StringRef kind, double a, double b, RankedTensorType type) {
  std::string both = printNumber(a) + " and " + printNumber(b);
  if (!isa<FloatType>(type.getElementType()))
    return "random numbers are floats; got " + printType(type.getElementType());
  if (!std::isfinite(a) || !std::isfinite(b))
    return "a random distribution needs finite numbers; got " + both;
  if (kind == "uniform" && a > b)
    return "the bounds of uniform numbers are reversed: " + both;
  if (kind == "normal" && b < 0)
    return "a deviation cannot be negative: " + printNumber(b);
  for (double number : {a, b, kind == "uniform" ? b - a : b}) // b - a is the factor of a uniform fraction
    if (!std::isfinite(number) || !holds(type.getElementType(), number))
      return "numbers out of the range of " + printType(type.getElementType()) + ": " + both;
  return problemOfDrawn(type.getShape());
}

bool isKey(RankedTensorType type) {
  return type.getShape() == ArrayRef<int64_t>{2} && type.getElementType().isSignlessInteger(32);
}

Value nextKey(Node key) { return key + kKeyOfStep; }

std::string problemOfInit(StringRef kind, double a, double b, RankedTensorType type) {
  Type element = type.getElementType();
  if (kind == "uniform" || kind == "normal")
    return problemOfRandom(kind, a, b, type);
  if (kind == "key")
    return isKey(type) && a == 0
               ? ""
               : "a key is [2] i32, with no number; got " + printNumber(a) + " and " + printType(type);
  if (kind == "data")
    return a == 0 ? "" : "data has its numbers elsewhere; got " + printNumber(a);
  if (kind != "constant")
    return ("'" + kind + "' is none of constant, uniform, normal, key and data").str();
  if (!std::isfinite(a))
    return "a state cannot begin with " + printNumber(a);
  return holds(element, a) ? "" : printNumber(a) + " is not a value of " + printType(element);
}

/// The value with zeros in one row of the first dimension.
static Value withoutRow(Node value, int64_t row) {
  OpBuilder &builder = *value.builder;
  RankedTensorType type = value.type();
  auto scalar = RankedTensorType::get({}, builder.getI32Type());
  Value number = builder.create<FullOp>(value.loc, APFloat(double(row)), scalar);
  Value isRow = builder.create<OneHotOp>(value.loc, number, type.getDimSize(0), builder.getI1Type());
  const int64_t first[] = {0};
  Node inRow = expand(Node(builder, value.loc, isRow), first, type);
  return where(inRow, 0.0, value);
}

static Value buildAll(InitAttr init, OpBuilder &builder, Location loc, Value key, int64_t stream,
                      RankedTensorType type) {
  FloatAttr a = init.getA(), b = init.getB() ? init.getB() : builder.getF64FloatAttr(0);
  IntegerAttr number = builder.getI64IntegerAttr(stream);
  if (init.getKind() == "uniform")
    return builder.create<UniformOp>(loc, key, number, a, b, TypeAttr::get(type), /*wide=*/UnitAttr());
  if (init.getKind() == "normal")
    return builder.create<NormalOp>(loc, key, number, a, b, TypeAttr::get(type), /*wide=*/UnitAttr());
  if (init.getKind() == "key")
    return nextKey(Node(builder, loc, key));
  return builder.create<FullOp>(loc, a, TypeAttr::get(type));
}

Value InitAttr::build(OpBuilder &builder, Location loc, Value key, int64_t stream, RankedTensorType type) const {
  Value value = buildAll(*this, builder, loc, key, stream, type);
  return getZeroRow() ? withoutRow(Node(builder, loc, value), getZeroRow().getInt()) : value;
}

} // namespace sluice::ir
