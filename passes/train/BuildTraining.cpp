// Gradients, what bounds them, and updates, as plain ops:
//
//   minimize %loss, #sluice.sgd<...> lr @lr [@w, @b] clip [#sluice.clip_grad_norm<...>]
//     ==>  %dw = ...;  %db = ...                                   gradients
//          %s = sum(%dw * %dw) + sum(%db * %db)                    what a clip needs to know of all of them
//          %gw = %dw * min(1, max_norm / (sqrt(%s) + 1e-6)); ...   clipped
//          set @w, %w - %rate * %gw; ...                           updates, each at the rate of its group
//
// An update works where its parameter is, the rate's schedule too; a term of a clip where its gradient is. Where
// gradients are on several devices, terms and their sum are copied as if the user had written it with the clip: `to`.
#include "passes/train/BuildTraining.h"
#include "ir/build/Node.h"
#include "ir/ops/Init.h"
#include "passes/place/InheritDevice.h"
#include "passes/train/Differentiate.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

/// A parameter, how it is updated and from what.
struct Trained {
  StateOp state;
  OptimizerAttr optimizer;
  double lrFactor = 1;
  Value value, gradient;
};

} // namespace

/// The value of a state at the beginning of the entry point, of this type; one get per state.
static Value readState(OpBuilder &builder, StateOp state, RankedTensorType type) {
  Block &body = *builder.getInsertionBlock();
  for (auto get : body.getOps<GetOp>())
    if (get.getState() == state.getSymName())
      return get.getValue();
  OpBuilder first = OpBuilder::atBlockBegin(&body);
  return first.create<GetOp>(state.getLoc(), type, FlatSymbolRefAttr::get(state.getSymNameAttr()));
}

namespace {

class Training {
public:
  Training(OpBuilder &builder, MinimizeOp minimize, ModuleOp module)
      : builder(builder), states(minimize->getParentOp()), minimize(minimize), module(module) {}

  LogicalResult run(Value loss) {
    if (failed(listParameters()) || failed(findRate()))
      return failure();
    SmallVector<Value> values;
    for (Trained &each : trained)
      values.push_back(each.value = read(each.state, each.state.getTensorType()));
    FailureOr<SmallVector<Value>> gradients = differentiate(builder, loss, values);
    if (failed(gradients))
      return failure();
    for (auto [each, gradient] : llvm::zip_equal(trained, *gradients))
      each.gradient = gradient ? gradient : Value(Node(builder, each.value.getLoc(), each.value).like(0.0));
    if (failed(clipAll()))
      return failure();
    takeStep();
    llvm::for_each(trained, [this](const Trained &each) { update(each); });
    return success();
  }

private:
  //===- what minimize says ---------------------------------------------------------------------------------------===//

  LogicalResult listParameters() {
    if (failed(list(minimize.getParameters(), minimize.getOptimizer(), 1)))
      return failure();
    for (Attribute other : minimize.getGroupsAttr() ? minimize.getGroupsAttr() : builder.getArrayAttr({})) {
      auto group = dyn_cast<ParameterGroupAttr>(other);
      if (!group)
        return minimize.emitOpError("has what is no group of parameters: ") << other;
      if (failed(list(group.getParameters(), group.getOptimizer(), group.getLrFactor().getValueAsDouble())))
        return failure();
    }
    return success();
  }

  LogicalResult list(ArrayAttr names, Attribute rule, double lrFactor) {
    auto optimizer = dyn_cast<OptimizerAttr>(rule);
    if (!optimizer)
      return minimize.emitOpError("names no optimizer: ") << rule;
    for (Attribute name : names) {
      auto symbol = dyn_cast<FlatSymbolRefAttr>(name);
      auto state = symbol ? module.lookupSymbol<StateOp>(symbol.getAttr()) : StateOp();
      if (!state || state.getKind() != StateKind::Parameter)
        return minimize.emitOpError("trains what is no parameter: ") << name;
      if (llvm::any_of(trained, [&](const Trained &each) { return each.state == state; }))
        return minimize.emitOpError("trains a parameter twice: ") << name;
      trained.push_back({state, optimizer, lrFactor, {}, {}});
    }
    return success();
  }

  LogicalResult findRate() {
    auto lr = module.lookupSymbol<StateOp>(minimize.getLrAttr().getAttr());
    if (!lr)
      return minimize.emitOpError("names no learning rate: ") << minimize.getLrAttr();
    Attribute named = minimize.getScheduleAttr();
    schedule = dyn_cast_or_null<LrScheduleAttr>(named);
    if (named && !schedule)
      return minimize.emitOpError("names no schedule: ") << named;
    rate = read(lr, lr.getTensorType());
    return success();
  }

  //===- states ---------------------------------------------------------------------------------------------------===//

  StateOp createState(Location loc, const Twine &name, StateKind kind, RankedTensorType type, FlatSymbolRefAttr of,
                      TypeAttr physical) {
    auto zero = InitAttr::get(builder.getContext(), "constant", builder.getF64FloatAttr(0.0), FloatAttr());
    return states.create<StateOp>(loc, builder.getStringAttr(name), kind, type, zero, of, physical);
  }

  Value read(StateOp state, RankedTensorType type) { return readState(builder, state, type); }

  StateOp createSlot(const Trained &of, StringRef name) {
    StateOp state = of.state;
    return createState(state.getLoc(), state.getSymName() + "." + name, StateKind::Slot, state.getTensorType(),
                       FlatSymbolRefAttr::get(state.getSymNameAttr()), state.getPhysicalAttr());
  }

  Value readSlot(const Trained &of, StateOp slot) { return read(slot, cast<RankedTensorType>(of.value.getType())); }

  //===- clips ----------------------------------------------------------------------------------------------------===//

  LogicalResult clipAll() {
    for (Attribute named : minimize.getClipsAttr() ? minimize.getClipsAttr() : builder.getArrayAttr({})) {
      auto clip = dyn_cast<GradientClipAttr>(named);
      if (!clip)
        return minimize.emitOpError("names no clip of gradients: ") << named;
      Value sum = sumOfTerms(clip);
      for (Trained &each : trained) {
        InheritDevice devices(builder, getDevice(each.gradient.getType()), pinOf(each.gradient));
        each.gradient = clip.buildClipped(builder, each.state.getLoc(), each.gradient, sum);
      }
    }
    return success();
  }

  /// In the order of the parameters, in the type of the learning rate; null if the clip needs none.
  Value sumOfTerms(GradientClipAttr clip) {
    Location loc = minimize.getLoc();
    auto placeOf = [](const Trained &each) {
      return std::pair(getDevice(each.gradient.getType()), pinOf(each.gradient));
    };
    bool isOnePlace = llvm::all_equal(llvm::map_range(trained, placeOf));
    std::optional<Node> sum;
    for (Trained &each : trained) {
      auto [device, pin] = placeOf(each);
      InheritDevice devices(builder, device, pin);
      Value term = clip.buildTerm(builder, each.state.getLoc(), each.gradient);
      if (!term)
        return {};
      term = castTo(Node(builder, loc, term), cast<RankedTensorType>(rate.getType()).getElementType());
      InheritDevice together(builder, isOnePlace ? device : StringAttr(), isOnePlace ? pin : StringAttr());
      Node added(builder, loc, isOnePlace ? term : copyAnywhere(term));
      sum = sum ? *sum + added : added;
    }
    if (!sum)
      return {};
    return isOnePlace ? Value(*sum) : copyAnywhere(*sum);
  }

  /// To where its readers work.
  Value copyAnywhere(Value value) {
    return builder.create<CopyOp>(value.getLoc(), withDevice(value.getType(), {}), value, CopyReason::To);
  }

  //===- updates --------------------------------------------------------------------------------------------------===//

  /// The number of steps taken before, if anything depends on it.
  void takeStep() {
    auto needsStep = [](const Trained &each) { return OptimizerAttr(each.optimizer).needsStep(); };
    if (!schedule && !minimize.getEmaAttr() && llvm::none_of(trained, needsStep))
      return;
    StateOp state = createState(minimize.getLoc(), "step", StateKind::Step,
                                RankedTensorType::get({}, builder.getI32Type()), {}, {});
    step = read(state, state.getTensorType());
    builder.create<SetOp>(state.getLoc(), "step", Node(builder, state.getLoc(), step) + 1.0);
  }

  /// Of a parameter's group in this step.
  Value rateOf(const Trained &of, Location loc) {
    Node scaled(builder, loc, rate);
    if (of.lrFactor != 1)
      scaled = scaled * of.lrFactor;
    return schedule ? schedule.buildRate(builder, loc, scaled, step) : Value(scaled);
  }

  void update(const Trained &of) {
    StateOp state = of.state;
    Location loc = state.getLoc();
    InheritDevice devices(builder, getDevice(of.value.getType()), getDevice(state.getStoredType()));
    SmallVector<StateOp> slots;
    for (StringRef slot : of.optimizer.getSlots())
      slots.push_back(createSlot(of, slot));
    SmallVector<Value> values = llvm::map_to_vector(slots, [&](StateOp slot) { return readSlot(of, slot); });
    SmallVector<Value> updated =
        of.optimizer.buildUpdate(builder, loc, of.value, of.gradient, rateOf(of, loc), step, values);
    builder.create<SetOp>(loc, state.getSymName(), updated[0]);
    for (auto [slot, value] : llvm::zip_equal(slots, ArrayRef(updated).drop_front()))
      builder.create<SetOp>(loc, slot.getSymName(), value);
    if (EmaAttr ema = minimize.getEmaAttr()) {
      StateOp average = createSlot(of, "ema");
      Value next = ema.buildAverage(builder, loc, readSlot(of, average), updated[0], step);
      builder.create<SetOp>(loc, average.getSymName(), next);
    }
  }

  OpBuilder &builder; // before the end of the entry point
  OpBuilder states;   // before the graph
  MinimizeOp minimize;
  ModuleOp module;
  SmallVector<Trained> trained;
  LrScheduleAttr schedule;
  Value rate, step; // the state's; null unless something needs it
};

} // namespace

LogicalResult buildTraining(OpBuilder &builder, Value loss, MinimizeOp minimize, ModuleOp module) {
  return Training(builder, minimize, module).run(loss);
}

void advanceKeys(OpBuilder &builder, ModuleOp module) {
  for (auto state : module.getOps<StateOp>())
    if (state.getKind() == StateKind::Key)
      builder.create<SetOp>(state.getLoc(), state.getSymName(),
                            nextKey(Node(builder, state.getLoc(), readState(builder, state, state.getTensorType()))));
}

} // namespace sluice::passes
