// Compares the formulas for code generation with the reference functions. Element formulas of ElementOps and bodies of
// ElementwiseOps are built for one concrete index at a time, and the result is folded to a number.
#include "ir/build/Lane.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "op_instance.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace sluice::ir;
using namespace sluice::test;

static Value makeConstant(OpBuilder &builder, Type element, double value) {
  Location loc = builder.getUnknownLoc();
  if (isa<FloatType>(element))
    return builder.create<arith::ConstantOp>(loc, FloatAttr::get(element, value));
  return builder.create<arith::ConstantOp>(
      loc, IntegerAttr::get(element, APInt(element.getIntOrFloatBitWidth(), uint64_t(int64_t(value)), true)));
}

/// MLIR does not fold multiply-adds.
static FloatAttr foldMultiplyAdd(Type type, ArrayRef<Attribute> operands) {
  auto number = [&](size_t i) { return cast<FloatAttr>(operands[i]).getValue(); };
  APFloat sum = number(0);
  sum.fusedMultiplyAdd(number(1), number(2), APFloat::rmNearestTiesToEven);
  return FloatAttr::get(type, sum);
}

/// Folds a value's expression, each part once.
static Attribute foldValue(Value value, DenseMap<Value, Attribute> &known) {
  if (Attribute before = known.lookup(value))
    return before;
  Operation *op = value.getDefiningOp();
  SmallVector<Attribute> operands =
      llvm::map_to_vector(op->getOperands(), [&](Value operand) { return foldValue(operand, known); });
  auto number = operands.size() == 1 ? dyn_cast_or_null<FloatAttr>(operands[0]) : FloatAttr();
  if (number && number.getValue().isNaN() && isa<FloatType>(value.getType()))
    return known[value] = number; // some functions do not fold NaN
  if (isa<math::FmaOp>(op) && llvm::all_of(operands, llvm::IsaPred<FloatAttr>))
    return known[value] = foldMultiplyAdd(value.getType(), operands);
  SmallVector<OpFoldResult> folded;
  if (failed(op->fold(operands, folded)) || folded.empty()) {
    ADD_FAILURE() << op->getName().getStringRef().str() << " does not fold";
    return Attribute();
  }
  auto attribute = dyn_cast<Attribute>(folded[0]);
  return known[value] = attribute ? attribute : foldValue(cast<Value>(folded[0]), known);
}

/// The number of a value, in an element type of the dialect.
static double readValue(Value value, Type element) {
  DenseMap<Value, Attribute> known;
  Attribute attribute = foldValue(value, known);
  if (auto number = dyn_cast_or_null<FloatAttr>(attribute))
    return number.getValueAsDouble();
  auto number = dyn_cast_or_null<IntegerAttr>(attribute);
  return number ? number.getValue().roundToDouble(!element.isUnsignedInteger() && !element.isInteger(1)) : NAN;
}

namespace {

/// Builds elements at constant indices. Folds handle even and odd indices separately and combine the two, like vector
/// code.
class PointBuilder : public ElementBuilder {
public:
  PointBuilder(OpBuilder &builder, Operation *op, ArrayRef<HostTensor> operands)
      : ElementBuilder(builder, op->getLoc()), op(op), operands(operands) {}

  Value operand(unsigned number, ArrayRef<AffineExpr> index) final {
    Type element = cast<RankedTensorType>(op->getOperand(number).getType()).getElementType();
    SmallVector<int64_t> place = llvm::map_to_vector(index, read);
    for (auto [at, size] : llvm::zip_equal(place, operands[number].shape))
      if (at < 0 || at >= size) {
        ADD_FAILURE() << "an element outside of its operand is read: " << at << " of " << size;
        return makeConstant(builder(), getLaneElement(element), 0);
      }
    return makeConstant(builder(), getLaneElement(element), operands[number].at(place));
  }
  Value constant(double value, Type element) final { return makeConstant(builder(), element, value); }
  Value materialize(AffineExpr index, Type element) final {
    return makeConstant(builder(), element, double(read(index)));
  }
  AffineExpr dataIndex(unsigned number, ArrayRef<AffineExpr> index, int64_t size) final {
    return constantIndex(
        std::clamp<int64_t>(int64_t(operands[number].at(llvm::map_to_vector(index, read))), 0, size - 1));
  }
  Value guarded(ArrayRef<AffineExpr> nonNegative, const std::function<Value()> &then, Value otherwise) final {
    return llvm::all_of(nonNegative, [](AffineExpr expr) { return read(expr) >= 0; }) ? then() : otherwise;
  }
  SmallVector<Value> reduce(ArrayRef<int64_t> extents, ValueRange initial,
                            const std::function<SmallVector<Value>(ArrayRef<AffineExpr>, ValueRange)> &step,
                            const std::function<SmallVector<Value>(ValueRange, ValueRange)> &combine) final {
    SmallVector<int64_t> shape(extents);
    std::replace(shape.begin(), shape.end(), ElementBuilder::kRows, sluice::test::kRows);
    SmallVector<Value> partial[2] = {SmallVector<Value>(initial), SmallVector<Value>(initial)};
    size_t count = 0;
    forEachIndex(shape, [&](ArrayRef<int64_t> index) {
      SmallVector<Value> &sofar = partial[count++ % 2];
      sofar = step(llvm::map_to_vector(index, [&](int64_t at) { return constantIndex(at); }), sofar);
    });
    return combine(partial[1], partial[0]);
  }
  SmallVector<Value> call(StringRef, ValueRange operands,
                          const std::function<SmallVector<Value>(ValueRange)> &body) final {
    return body(operands);
  }
  Value rows(Type element) final { return makeConstant(builder(), element, double(sluice::test::kRows)); }

private:
  static int64_t read(AffineExpr index) { return cast<AffineConstantExpr>(index).getValue(); }
  Operation *op;
  ArrayRef<HostTensor> operands;
};

} // namespace

// std::erf and math.erf's folder are the same function; the formulas differ from the references only in the order of
// sums.
static void expectClose(double actual, double expected, const std::string &what) {
  if (std::isnan(expected) || std::isinf(expected) || expected == std::floor(expected))
    EXPECT_TRUE(actual == expected || (std::isnan(actual) && std::isnan(expected)) ||
                std::fabs(actual - expected) < 1e-12)
        << actual << " != " << expected << "\n"
        << what;
  else
    EXPECT_NEAR(actual, expected, 1e-12 * std::fmax(1, std::fabs(expected))) << what;
}

static void checkElements(const Sample &sample) {
  OpInstance instance(sample.op);
  ASSERT_TRUE(instance.op) << sample.op << "\n" << instance.error;
  std::vector<HostTensor> operands = drawOperands(instance, sample), results = instance.run(operands);
  for (auto [number, result] : llvm::enumerate(results))
    forEachIndex(result.shape, [&, number = unsigned(number)](ArrayRef<int64_t> index) {
      OwningOpRef<ModuleOp> scratch = ModuleOp::create(UnknownLoc::get(&getContext()));
      OpBuilder builder(scratch->getBodyRegion());
      PointBuilder elements(builder, instance.op, operands);
      Value value =
          cast<ElementOp>(instance.op).buildElement(elements, number, llvm::map_to_vector(index, [&](int64_t at) {
                                                      return elements.constantIndex(at);
                                                    }));
      Type element = cast<RankedTensorType>(instance.op->getResult(number).getType()).getElementType();
      ASSERT_EQ(value.getType(), getLaneElement(element)) << sample.op;
      expectClose(readValue(value, element), result.at(index), sample.op);
    });
}

static void checkBody(const Sample &sample) {
  OpInstance instance(sample.op);
  ASSERT_TRUE(instance.op) << sample.op << "\n" << instance.error;
  std::vector<HostTensor> operands = drawOperands(instance, sample);
  for (HostTensor &operand : operands) // special values come first
    if (sample.ranges[0].first < -1 &&
        isa<FloatType>(cast<RankedTensorType>(instance.op->getOperand(0).getType()).getElementType()))
      std::copy_n(std::initializer_list<double>{0.0, NAN, INFINITY}.begin(), 3, operand.data.begin());
  HostTensor result = instance.run(operands)[0];
  Type element = cast<RankedTensorType>(instance.op->getResult(0).getType()).getElementType();
  for (size_t i = 0; i < result.data.size(); ++i) {
    OwningOpRef<ModuleOp> scratch = ModuleOp::create(UnknownLoc::get(&getContext()));
    OpBuilder builder(scratch->getBodyRegion());
    SmallVector<Value> lanes;
    for (auto [operand, value] : llvm::zip_equal(operands, instance.op->getOperands()))
      lanes.push_back(makeConstant(builder, getLaneElement(cast<RankedTensorType>(value.getType()).getElementType()),
                                   operand.data[i]));
    Value body = cast<ElementwiseOp>(instance.op).buildBody(builder, instance.op->getLoc(), lanes);
    ASSERT_EQ(body.getType(), getLaneElement(element)) << sample.op;
    expectClose(readValue(body, element), result.data[i], sample.op + " of " + std::to_string(operands[0].data[i]));
  }
}

template <typename Interface> static void checkAll(void (*check)(const Sample &)) {
  std::vector<std::string> names = getOpsWith<Interface>();
  for (const std::string &name : names) {
    std::vector<Sample> samples = getSamples(name);
    EXPECT_FALSE(samples.empty()) << name << " has no samples";
    for (const Sample &sample : samples)
      check(sample);
  }
  printf("checked %zu ops\n", names.size());
}

TEST(Formula, OfEveryElementMatchesTheReference) { checkAll<ElementOp>(checkElements); }
TEST(Formula, OfEveryBodyMatchesTheReference) { checkAll<ElementwiseOp>(checkBody); }

// A body on vectors applies to each lane.
TEST(Formula, OfBodiesIsWellTypedOnVectors) {
  for (const std::string &name : getOpsWith<ElementwiseOp>())
    for (const Sample &sample : getSamples(name)) {
      OpInstance instance(sample.op);
      OwningOpRef<ModuleOp> scratch = ModuleOp::create(UnknownLoc::get(&getContext()));
      OpBuilder builder(scratch->getBodyRegion());
      SmallVector<Value> lanes;
      for (Value operand : instance.op->getOperands()) {
        auto type = VectorType::get({8}, getLaneElement(cast<RankedTensorType>(operand.getType()).getElementType()));
        lanes.push_back(
            builder.create<arith::ConstantOp>(builder.getUnknownLoc(), cast<TypedAttr>(builder.getZeroAttr(type))));
      }
      Value body = cast<ElementwiseOp>(instance.op).buildBody(builder, instance.op->getLoc(), lanes);
      Type element = getLaneElement(cast<RankedTensorType>(instance.op->getResult(0).getType()).getElementType());
      EXPECT_EQ(body.getType(), Type(VectorType::get({8}, element))) << sample.op;
      EXPECT_TRUE(succeeded(scratch->verify())) << sample.op;
    }
}
