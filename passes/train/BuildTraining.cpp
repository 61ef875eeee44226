// Gradients, clips and updates, as plain ops:
//
//   minimize %loss, #sluice.sgd<...> lr @lr [@w, @b] clip [#sluice.clip_grad_norm<...>]
//     ==>  %dw = ...;  %db = ...                                   gradients
//          %s = sum(%dw * %dw) + sum(%db * %db)                    the sum that a clip requires
//          %gw = %dw * min(1, max_norm / (sqrt(%s) + 1e-6)); ...   clipped
//          set @w, %w - %rate * %gw; ...                           updates, each at the rate of its group
//
// With a scaled loss, gradients are first divided by its scale (ScaledLoss.h).
//
// An update runs on its parameter's device, as does the schedule of the rate; a term of a clip runs on its gradient's
// device. If gradients are on several devices, terms and their sum are copied as by a `to` that the user wrote.
#include "passes/train/BuildTraining.h"
#include "ir/build/Node.h"
#include "ir/ops/model/Init.h"
#include "passes/place/InheritDevice.h"
#include "passes/train/Differentiate.h"
#include "passes/train/ScaledLoss.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

/// A parameter, its update rule and its gradient.
struct Trained {
  StateOp state;
  OptimizerAttr optimizer;
  double lrFactor = 1;
  Value value, gradient;
};

class Training {
public:
  Training(OpBuilder &builder, MinimizeOp minimize)
      : builder(builder), states(minimize), scaledLoss(builder, states, minimize), minimize(minimize) {}

  LogicalResult run(Value loss) {
    if (failed(listParameters()) || failed(findRate()))
      return failure();
    SmallVector<Value> values;
    for (Trained &each : trained)
      values.push_back(each.value = read(each.state, each.state.getTensorType()));
    FailureOr<Value> scaled = scaledLoss.scale(loss, elementOfRate());
    if (failed(scaled))
      return failure();
    FailureOr<SmallVector<Value>> gradients = differentiate(builder, minimize.getLoc(), *scaled, values);
    if (failed(gradients))
      return failure();
    for (auto [each, gradient] : llvm::zip_equal(trained, *gradients))
      each.gradient = gradient ? gradient : Value(Node(builder, each.value.getLoc(), each.value).like(0.0));
    unscaleAll();
    if (failed(clipAll()))
      return failure();
    takeStep();
    llvm::for_each(trained, [this](const Trained &each) { update(each); });
    scaledLoss.advance();
    return success();
  }

private:
  //===- attributes of minimize -----------------------------------------------------------------------------------===//

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
      StateOp state = symbol ? states.find(symbol.getAttr()) : StateOp();
      if (!state || state.getKind() != StateKind::Parameter)
        return minimize.emitOpError("trains what is no parameter: ") << name;
      if (!isTrained.insert(state).second)
        return minimize.emitOpError("trains a parameter twice: ") << name;
      trained.push_back({state, optimizer, lrFactor, {}, {}});
    }
    return success();
  }

  LogicalResult findRate() {
    StateOp lr = states.find(minimize.getLrAttr().getAttr());
    if (!lr)
      return minimize.emitOpError("names no learning rate: ") << minimize.getLrAttr();
    Attribute named = minimize.getScheduleAttr();
    schedule = dyn_cast_or_null<LrScheduleAttr>(named);
    if (named && !schedule)
      return minimize.emitOpError("names no schedule: ") << named;
    rate = read(lr, lr.getTensorType());
    return success();
  }

  Type elementOfRate() const { return cast<RankedTensorType>(rate.getType()).getElementType(); }

  Value read(StateOp state, RankedTensorType type) { return states.read(builder, state, type); }

  /// Sets a state to its value after this step.
  void set(Location loc, StateOp state, Value next, Value before) {
    builder.create<SetOp>(loc, state.getSymName(), scaledLoss.kept(loc, next, before));
  }

  //===- gradients ------------------------------------------------------------------------------------------------===//

  /// Ops on a gradient run on the gradient's device.
  std::pair<StringAttr, StringAttr> placeOf(const Trained &each) const {
    return {getDevice(each.gradient.getType()), states.pinOf(each.gradient)};
  }

  void unscaleAll() {
    if (!scaledLoss.isScaled())
      return;
    scaledLoss.decide(sumOfTerms([&](Location loc, Value gradient) { return scaledLoss.buildTerm(loc, gradient); }));
    for (Trained &each : trained) {
      auto [device, pin] = placeOf(each);
      InheritDevice devices(builder, device, pin);
      each.gradient = scaledLoss.unscaled(each.state.getLoc(), each.gradient);
    }
  }

  LogicalResult clipAll() {
    for (Attribute named : minimize.getClipsAttr() ? minimize.getClipsAttr() : builder.getArrayAttr({})) {
      auto clip = dyn_cast<GradientClipAttr>(named);
      if (!clip)
        return minimize.emitOpError("names no clip of gradients: ") << named;
      Value sum = sumOfTerms([&](Location loc, Value gradient) { return clip.buildTerm(builder, loc, gradient); });
      for (Trained &each : trained) {
        auto [device, pin] = placeOf(each);
        InheritDevice devices(builder, device, pin);
        each.gradient = clip.buildClipped(builder, each.state.getLoc(), each.gradient, sum);
      }
    }
    return success();
  }

  /// The sum of terms over all gradients, in parameter order and in the type of the learning rate; null if there are
  /// none.
  Value sumOfTerms(function_ref<Value(Location, Value)> buildTerm) {
    Location loc = minimize.getLoc();
    bool isOnePlace = llvm::all_equal(llvm::map_range(trained, [this](const Trained &each) { return placeOf(each); }));
    std::optional<Node> sum;
    for (Trained &each : trained) {
      auto [device, pin] = placeOf(each);
      InheritDevice devices(builder, device, pin);
      Value term = buildTerm(each.state.getLoc(), each.gradient);
      if (!term)
        return {};
      term = castTo(Node(builder, loc, term), elementOfRate());
      InheritDevice together(builder, isOnePlace ? device : StringAttr(), isOnePlace ? pin : StringAttr());
      Node added(builder, loc, isOnePlace ? term : copyAnywhere(builder, term));
      sum = sum ? *sum + added : added;
    }
    if (!sum)
      return {};
    return isOnePlace ? Value(*sum) : copyAnywhere(builder, *sum);
  }

  //===- updates --------------------------------------------------------------------------------------------------===//

  /// Reads the number of earlier steps, if anything depends on it. It is where the model places the rate.
  void takeStep() {
    auto needsStep = [](const Trained &each) { return OptimizerAttr(each.optimizer).needsStep(); };
    if (!schedule && !minimize.getEmaAttr() && llvm::none_of(trained, needsStep))
      return;
    auto number = RankedTensorType::get({}, builder.getI32Type());
    StringAttr device = getDevice(states.find(minimize.getLrAttr().getAttr()).getStoredType());
    TypeAttr physical = device ? TypeAttr::get(withDevice(number, device)) : TypeAttr();
    StateOp state = states.create(minimize.getLoc(), "step", StateKind::Step, number, /*first=*/0, {}, physical);
    step = read(state, number);
    set(state.getLoc(), state, Node(builder, state.getLoc(), step) + 1.0, step);
  }

  /// The learning rate of a parameter's group in this step.
  Value rateOf(const Trained &of, Location loc) {
    Node scaled(builder, loc, rate);
    if (of.lrFactor != 1)
      scaled = scaled * of.lrFactor;
    return schedule ? schedule.buildRate(builder, loc, scaled, step) : Value(scaled);
  }

  Value readSlot(const Trained &of, StateOp slot) { return read(slot, cast<RankedTensorType>(of.value.getType())); }

  void update(const Trained &of) {
    StateOp state = of.state;
    Location loc = state.getLoc();
    InheritDevice devices(builder, getDevice(of.value.getType()), getDevice(state.getStoredType()));
    SmallVector<StateOp> slots;
    for (StringRef slot : of.optimizer.getSlots())
      slots.push_back(states.createSlot(state, slot));
    SmallVector<Value> values = llvm::map_to_vector(slots, [&](StateOp slot) { return readSlot(of, slot); });
    SmallVector<Value> updated =
        of.optimizer.buildUpdate(builder, loc, of.value, of.gradient, rateOf(of, loc), step, values);
    set(loc, state, updated[0], of.value);
    for (auto [slot, value, before] : llvm::zip_equal(slots, ArrayRef(updated).drop_front(), values))
      set(loc, slot, value, before);
    if (EmaAttr ema = minimize.getEmaAttr()) {
      StateOp average = states.createSlot(state, "ema");
      Value before = readSlot(of, average);
      set(loc, average, ema.buildAverage(builder, loc, before, updated[0], step), before);
    }
  }

  OpBuilder &builder; // before the end of the entry point
  TrainingStates states;
  ScaledLoss scaledLoss;
  MinimizeOp minimize;
  SmallVector<Trained> trained;
  llvm::DenseSet<Operation *> isTrained; // states
  LrScheduleAttr schedule;
  Value rate, step; // values of the states; null unless needed
};

} // namespace

LogicalResult buildTraining(OpBuilder &builder, Value loss, MinimizeOp minimize) {
  return Training(builder, minimize).run(loss);
}

void advanceKeys(OpBuilder &builder, ModuleOp module) {
  for (auto state : module.getOps<StateOp>())
    if (state.getKind() == StateKind::Key)
      builder.create<SetOp>(state.getLoc(), state.getSymName(),
                            nextKey(Node(builder, state.getLoc(), readState(builder, state, state.getTensorType()))));
}

} // namespace sluice::passes
