#include "backends/loops/Formula.h"

#include "ir/build/Lane.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace sluice::loops {

using namespace mlir;

Steps::Steps() = default;
Steps::Steps(Steps &&) = default;
Steps &Steps::operator=(Steps &&) = default;
Steps::~Steps() = default;

namespace {

/// Records the elements that an op requests.
class Recorder : public ir::ElementBuilder {
public:
  Recorder(OpBuilder &builder, Formula &formula)
      : ElementBuilder(builder, formula.op->getLoc()), formula(formula), block(*builder.getInsertionBlock()) {}

  /// Fails if the op has no formula for the result.
  LogicalResult record(unsigned result);

  Value operand(unsigned number, ArrayRef<AffineExpr> index) final {
    Type type = cast<RankedTensorType>(formula.op->getOperand(number).getType()).getElementType();
    Value value = add(Read{number, SmallVector<AffineExpr>(index)}, ir::getLaneElement(type));
    if (ir::isHalf(type))
      halves[value] = type;
    return value;
  }
  Value constant(double value, Type element) final {
    Type type = ir::getLaneElement(element);
    if (isa<FloatType>(type))
      return builder_->create<arith::ConstantOp>(loc_, FloatAttr::get(type, value));
    uint64_t bits = type.isInteger(1) ? value != 0 : uint64_t(int64_t(value));
    return builder_->create<arith::ConstantOp>(
        loc_, IntegerAttr::get(type, APInt(type.getIntOrFloatBitWidth(), bits, /*isSigned=*/true)));
  }
  Value materialize(AffineExpr index, Type element) final {
    Type type = ir::getLaneElement(element);
    return add(IndexValue{index, type}, type);
  }
  AffineExpr dataIndex(unsigned number, ArrayRef<AffineExpr> index, int64_t size) final {
    noteArithmetic();
    DataIndex data{formula.numDims++, number, SmallVector<AffineExpr>(index), size};
    AffineExpr dim = getAffineDimExpr(data.dim, builder_->getContext());
    steps->push_back({formula.numValues, std::move(data)});
    return dim;
  }
  SmallVector<Value> call(StringRef name, ValueRange operands,
                          const std::function<SmallVector<Value>(ValueRange)> &body) final;
  Value rows(Type element) final {
    Type type = ir::getLaneElement(element);
    return add(RowCount{type}, type);
  }
  Value guarded(ArrayRef<AffineExpr> nonNegative, const std::function<Value()> &then, Value otherwise) final;
  using StepFunction = std::function<SmallVector<Value>(ArrayRef<AffineExpr>, ValueRange)>;
  using CombineFunction = std::function<SmallVector<Value>(ValueRange, ValueRange)>;
  SmallVector<Value> reduce(ArrayRef<int64_t> extents, ValueRange initial, const StepFunction &step,
                            const CombineFunction &combine) final;

private:
  ValueNumber newValue(Value value) { return numbers[value] = formula.numValues++; }
  Value addArgument(Type type) { return block.addArgument(type, loc_); }
  SmallVector<ValueNumber, 2> newArguments(TypeRange types, SmallVectorImpl<Value> &values);
  SmallVector<ValueNumber, 2> numbersOf(ValueRange values);
  template <typename What> Value add(What what, Type type);
  Steps record(llvm::function_ref<SmallVector<Value>()> body);
  Value rounded(Value value, Type element);
  bool isExactIn(Value value, Type element) const;
  void noteArithmetic();

  Formula &formula;
  Block &block;
  Operation *last = nullptr; // last op of the block that is a step already
  std::vector<Step> *steps = nullptr;
  DenseMap<Value, ValueNumber> numbers;
  DenseMap<Value, Type> halves; // values known to be representable in f16 or bf16, and that type
};

} // namespace

// Converts the ops built since the last step to steps.
void Recorder::noteArithmetic() {
  for (Operation *op = last            ? last->getNextNode()
                       : block.empty() ? nullptr
                                       : &block.front();
       op; op = op->getNextNode()) {
    last = op;
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      steps->push_back({newValue(constant), Number{constant.getValue()}});
      continue;
    }
    Arithmetic arithmetic{op, {}};
    for (Value operand : op->getOperands())
      arithmetic.operands.push_back(numbers.at(operand));
    steps->push_back({newValue(op->getResult(0)), std::move(arithmetic)});
  }
}

template <typename What> Value Recorder::add(What what, Type type) {
  noteArithmetic();
  Value value = addArgument(type);
  steps->push_back({newValue(value), std::move(what)});
  return value;
}

SmallVector<ValueNumber, 2> Recorder::newArguments(TypeRange types, SmallVectorImpl<Value> &values) {
  SmallVector<ValueNumber, 2> added;
  for (Type type : types)
    added.push_back(newValue(values.emplace_back(addArgument(type))));
  return added;
}

SmallVector<ValueNumber, 2> Recorder::numbersOf(ValueRange values) {
  SmallVector<ValueNumber, 2> found;
  for (Value value : values)
    found.push_back(numbers.at(value));
  return found;
}

Steps Recorder::record(llvm::function_ref<SmallVector<Value>()> body) {
  Steps inside;
  std::vector<Step> *outside = std::exchange(steps, &inside.steps);
  SmallVector<Value> results = body();
  noteArithmetic();
  inside.results = numbersOf(results);
  steps = outside;
  return inside;
}

Value Recorder::guarded(ArrayRef<AffineExpr> nonNegative, const std::function<Value()> &then, Value otherwise) {
  noteArithmetic();
  Value inside;
  Guarded guarded{SmallVector<AffineExpr>(nonNegative), record([&] { return SmallVector<Value>{inside = then()}; }),
                  numbers.at(otherwise)};
  Value value = add(std::move(guarded), otherwise.getType());
  if (Type half = halves.lookup(inside); half && isExactIn(otherwise, half))
    halves[value] = half;
  return value;
}

SmallVector<Value> Recorder::call(StringRef name, ValueRange operands,
                                  const std::function<SmallVector<Value>(ValueRange)> &body) {
  noteArithmetic();
  SmallVector<Value> arguments, made, results;
  Call call{name.str(), numbersOf(operands), newArguments(operands.getTypes(), arguments), {}};
  call.body = record([&] { return made = body(arguments); });
  steps->push_back({formula.numValues, std::move(call)});
  newArguments(TypeRange(ValueRange(made)), results);
  return results;
}

/// The values numbered below `end` that `steps` use.
static void collectCaptured(const Steps &steps, ValueNumber end, SmallVectorImpl<ValueNumber> &captured) {
  auto use = [&](ArrayRef<ValueNumber> values) {
    llvm::copy_if(values, std::back_inserter(captured), [&](ValueNumber value) { return value < end; });
  };
  use(steps.results);
  for (const Step &step : steps.steps) {
    if (auto *arithmetic = std::get_if<Arithmetic>(&step.what))
      use(arithmetic->operands);
    if (auto *call = std::get_if<Call>(&step.what))
      use(call->operands);
    if (auto *guarded = std::get_if<Guarded>(&step.what)) {
      use(guarded->otherwise);
      collectCaptured(guarded->then, end, captured);
    }
    if (auto *reduction = std::get_if<Reduction>(&step.what)) {
      use(reduction->initial);
      collectCaptured(reduction->step, end, captured);
      collectCaptured(reduction->combine, end, captured);
    }
  }
}

SmallVector<Value> Recorder::reduce(ArrayRef<int64_t> extents, ValueRange initial, const StepFunction &step,
                                    const CombineFunction &combine) {
  noteArithmetic();
  Reduction reduction;
  reduction.extents.assign(extents.begin(), extents.end());
  reduction.firstDim = formula.numDims;
  reduction.initial = numbersOf(initial);
  reduction.types.assign(initial.getTypes().begin(), initial.getTypes().end());
  SmallVector<AffineExpr> index;
  for (size_t i = 0; i < extents.size(); ++i)
    index.push_back(getAffineDimExpr(formula.numDims++, builder_->getContext()));

  SmallVector<Value> carried, halves, results;
  ValueNumber firstInside = formula.numValues;
  reduction.carried = newArguments(initial.getTypes(), carried);
  reduction.step = record([&] { return step(index, carried); });
  reduction.captured.assign(reduction.initial.begin(), reduction.initial.end());
  collectCaptured(reduction.step, firstInside, reduction.captured);
  reduction.halves = newArguments(initial.getTypes(), halves);
  llvm::append_range(reduction.halves, newArguments(initial.getTypes(), halves));
  reduction.combine = record([&] {
    return combine(ValueRange(halves).take_front(carried.size()), ValueRange(halves).drop_front(carried.size()));
  });

  steps->push_back({formula.numValues, std::move(reduction)});
  newArguments(initial.getTypes(), results);
  return results;
}

static void collectReductions(const Steps &steps, std::vector<const Reduction *> &found) {
  for (const Step &step : steps.steps) {
    if (auto *guarded = std::get_if<Guarded>(&step.what))
      collectReductions(guarded->then, found);
    if (auto *reduction = std::get_if<Reduction>(&step.what)) {
      found.push_back(reduction);
      collectReductions(reduction->step, found);
    }
  }
}

/// Whether rounding to `element` is the identity: the value was read from such a tensor, or is selected among such
/// values.
bool Recorder::isExactIn(Value value, Type element) const {
  if (halves.lookup(value) == element)
    return true;
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op))
    if (auto number = dyn_cast<FloatAttr>(constant.getValue()))
      return FloatAttr::get(element, number.getValueAsDouble()).getValueAsDouble() == number.getValueAsDouble();
  bool chooses =
      isa_and_present<arith::SelectOp, arith::MaximumFOp, arith::MinimumFOp, arith::NegFOp, math::AbsFOp>(op);
  return chooses && llvm::all_of(op->getOperands(), [&](Value operand) {
           return operand.getType().isInteger(1) || isExactIn(operand, element);
         });
}

// Rounds to the stored type of a tensor of halves, and widens again, so that consumers in this kernel use the same
// value as consumers that read it from memory.
Value Recorder::rounded(Value value, Type element) {
  if (!ir::isHalf(element) || isExactIn(value, element))
    return value;
  Value narrow = builder_->create<arith::TruncFOp>(loc_, element, value);
  return builder_->create<arith::ExtFOp>(loc_, ir::getLaneElement(element), narrow);
}

LogicalResult Recorder::record(unsigned result) {
  auto type = cast<RankedTensorType>(formula.op->getResult(result).getType());
  SmallVector<AffineExpr> index;
  for (int64_t i = 0; i < type.getRank(); ++i)
    index.push_back(getAffineDimExpr(formula.numDims++, builder_->getContext()));
  bool isFormula = true;
  formula.body = record([&]() -> SmallVector<Value> {
    Value element;
    if (auto definition = dyn_cast<ir::ElementOp>(formula.op)) {
      element = definition.buildElement(*this, result, index);
    } else {
      SmallVector<Value> operands;
      for (unsigned number = 0; number < formula.op->getNumOperands(); ++number)
        operands.push_back(operand(number, index));
      element = cast<ir::ElementwiseOp>(formula.op).buildBody(*builder_, loc_, operands);
    }
    isFormula = bool(element);
    return isFormula ? SmallVector<Value>{rounded(element, type.getElementType())} : SmallVector<Value>{};
  });
  collectReductions(formula.body, formula.reductions);
  return success(isFormula);
}

const Formula *Formulas::of(Operation *op, unsigned result) {
  std::unique_ptr<Formula> &formula = known[op->getResult(result)];
  if (formula || !isa<ir::ElementOp, ir::ElementwiseOp>(op))
    return formula.get();
  op->getContext()->loadDialect<arith::ArithDialect, math::MathDialect>();
  formula = std::make_unique<Formula>();
  formula->op = op;
  OpBuilder builder(op->getContext());
  builder.setInsertionPointToEnd(&formula->arithmetic.emplaceBlock());
  if (failed(Recorder(builder, *formula).record(result)))
    formula.reset();
  return formula.get();
}

} // namespace sluice::loops
