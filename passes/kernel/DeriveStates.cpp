// Computes values that depend only on weights once, not in every call.
//
//   sluice.entry @predict (%x) {
//     %var = sluice.get @var; %0 = sluice.add %var, %eps; %1 = sluice.rsqrt %0; %y = sluice.mul %x, %1 }
//     ==>  sluice.state derived @var.rsqrt from [@var]
//          sluice.entry @predict (%x) { %1 = sluice.get @var.rsqrt; %y = sluice.mul %x, %1 }
//          sluice.entry @predict.derive () { %var = sluice.get @var; ...; sluice.set @var.rsqrt, %1 }
//
// The runtime calls the derivation before a call of @predict if @var was written since the last time. So the launches
// and the bytes of the derivation recur only when weights change.
//
// 1. A value depends only on weights if its op and all ops before it read parameters, statistics, constants and their
//    mirrors on other devices, and nothing else. The entry point, or the parts of its calls, must not set these states:
//    a training step computes the value in place.
// 2. Of such values, those that other ops read become derived states. Data movement, which consumers absorb in their
//    index maps, stays in the consumer; a relayout is a launch, and does not. A value with more bytes than its sources
//    also stays, and its operands are considered instead.
// 3. Equal values of several entry points are one derived state. Derived states that the same entry points read have
//    one derivation, so that an entry point never waits for derived states that it does not read.
//
// Ops and types are unchanged, so no bit changes. Needs layouts, because a relayout may be derived, and devices: a
// derived state is on the device of its value.
#include "ir/Layout.h"
#include "ir/Module.h"
#include "ir/Work.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <map>

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

/// Values of at most this size are always derived.
static constexpr int64_t kSmallBytes = 64 << 10;
/// Other derived states together have at most this share of the bytes of all states.
static constexpr int64_t kStatesPerDerived = 4;

/// Whether training or the user rarely changes the state, so that values computed from it can be kept.
static bool isWeight(StateOp state) {
  return (state.getKind() == StateKind::Parameter || state.getKind() == StateKind::Statistic ||
          state.getKind() == StateKind::Constant) &&
         state.getShards() == 1;
}

/// Whether consumers absorb the op in their index maps.
static bool isMovement(Operation *op) { return isInjective(op) && !isa<ElementwiseOp, RelayoutOp>(op); }

static int64_t bytesOf(Value value) { return getBufferBytes(cast<RankedTensorType>(value.getType()), /*capacity=*/1); }

static bool hasStaticShapes(TypeRange types) {
  return llvm::all_of(types, [](Type type) { return cast<RankedTensorType>(type).hasStaticShape(); });
}

namespace {

/// Numbers values so that values of equal expressions have equal numbers, also in different entry points.
class ExpressionNumbers {
public:
  /// The number of a result of an op whose operands have these numbers.
  unsigned of(OpResult result, ArrayRef<unsigned> operands) {
    Operation *op = result.getOwner();
    std::vector<uintptr_t> key{uintptr_t(op->getName().getAsOpaquePointer()),
                               uintptr_t(op->getAttrDictionary().getAsOpaquePointer()), result.getResultNumber()};
    for (Type type : op->getResultTypes())
      key.push_back(uintptr_t(type.getAsOpaquePointer()));
    llvm::append_range(key, operands);
    return numbers.try_emplace(std::move(key), unsigned(numbers.size())).first->second;
  }

private:
  std::map<std::vector<uintptr_t>, unsigned> numbers;
};

/// The values of an entry point that depend only on weights.
class WeightValues {
public:
  WeightValues(EntryOp entry, const SymbolTable &symbols, const llvm::DenseSet<StringAttr> &written,
               ExpressionNumbers &numbers)
      : entry(entry), symbols(symbols), written(written), numbers(numbers) {
    for (Operation &op : entry.getActions())
      if (dependsOnWeights(&op))
        add(&op);
  }

  /// The values to derive, in the order of their uses. `fits` decides whether a value may become a state.
  SmallVector<Value> chooseDerived(llvm::function_ref<bool(Value value, ArrayRef<StringAttr> sources)> fits) {
    llvm::SetVector<Value> chosen;
    for (Operation &op : entry.getActions()) {
      if (known.contains(&op))
        continue;
      op.walk([&](Operation *inner) { choose(inner->getOperands(), fits, chosen); });
    }
    return chosen.takeVector();
  }

  unsigned numberOf(Value value) const { return number.at(value); }
  ArrayRef<StringAttr> sourcesOf(Value value) const { return sources.find(value)->second.getArrayRef(); }

  /// Clones the ops that compute `results`, and maps the results to the clones.
  void clone(ArrayRef<Value> results, OpBuilder &builder, IRMapping &mapping) {
    llvm::DenseSet<Operation *> needed;
    SmallVector<Value> left(results);
    while (!left.empty())
      if (Operation *op = left.pop_back_val().getDefiningOp(); needed.insert(op).second)
        llvm::append_range(left, op->getOperands());
    for (Operation &op : entry.getActions())
      if (needed.contains(&op))
        builder.clone(op, mapping);
  }

  /// Erases ops whose results have no uses any more.
  void eraseDead() {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(entry.getActions())))
      if (known.contains(&op) && op.use_empty())
        op.erase();
  }

private:
  bool dependsOnWeights(Operation *op) const {
    if (auto get = dyn_cast<GetOp>(op)) {
      StringAttr name = get.getStateAttr().getAttr();
      return isWeight(symbols.lookup<StateOp>(name)) && !written.contains(name);
    }
    bool isMirror = isCrossing(op) && cast<CopyOp>(op).getWhen() == CopyTime::Stale;
    if (!isMirror && (!isCompute(op) || isCrossing(op) || isa<CollectiveOp>(op)))
      return false;
    return op->getNumRegions() == 0 && hasStaticShapes(op->getResultTypes()) &&
           llvm::all_of(op->getOperands(), [&](Value operand) { return number.contains(operand); });
  }

  void add(Operation *op) {
    known.insert(op);
    llvm::SetVector<StringAttr> read;
    if (auto get = dyn_cast<GetOp>(op))
      read.insert(get.getStateAttr().getAttr());
    for (Value operand : op->getOperands())
      read.insert(sources[operand].begin(), sources[operand].end());
    SmallVector<unsigned> operands =
        llvm::map_to_vector(op->getOperands(), [&](Value operand) { return number.at(operand); });
    for (OpResult result : op->getResults()) {
      number[result] = numbers.of(result, operands);
      sources[result] = read;
    }
  }

  /// Adds the values to derive for an op that reads `operands`.
  void choose(ValueRange operands, llvm::function_ref<bool(Value, ArrayRef<StringAttr>)> fits,
              llvm::SetVector<Value> &chosen) const {
    SmallVector<Value> left(llvm::reverse(operands));
    while (!left.empty()) {
      Value value = left.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (!op || !known.contains(op) || isa<GetOp>(op) || isCrossing(op) || sourcesOf(value).empty())
        continue;
      if (!isMovement(op) && (chosen.contains(value) || fits(value, sourcesOf(value))))
        chosen.insert(value);
      else
        llvm::append_range(left, llvm::reverse(op->getOperands()));
    }
  }

  EntryOp entry;
  const SymbolTable &symbols;
  const llvm::DenseSet<StringAttr> &written;
  ExpressionNumbers &numbers;
  llvm::DenseSet<Operation *> known; // ops that depend only on weights
  DenseMap<Value, unsigned> number;
  DenseMap<Value, llvm::SetVector<StringAttr>> sources; // the states that a value depends on
};

/// A value that becomes a derived state, in all entry points that read it.
struct Derived {
  SmallVector<std::pair<unsigned, Value>> uses; // entry points, by number, and the value in each
  SmallVector<StringAttr> sources;
  FlatSymbolRefAttr state = {}; // once created

  Value value() const { return uses.front().second; }
};

class Derivations {
public:
  explicit Derivations(ModuleOp module, bool mayGrow) : module(module), symbols(module) {
    for (auto state : module.getOps<StateOp>())
      stateBytes += getBufferBytes(state.getStoredType(), getCapacity(module));
    budget = mayGrow ? stateBytes / kStatesPerDerived : 0;
  }

  void run() {
    SmallVector<EntryOp> entries(module.getOps<EntryOp>());
    DenseMap<EntryOp, llvm::DenseSet<StringAttr>> written = writtenStates(entries);
    ExpressionNumbers numbers;
    std::vector<WeightValues> values;
    llvm::MapVector<unsigned, Derived> derived; // by number of the expression
    for (auto [i, entry] : llvm::enumerate(entries)) {
      WeightValues &its = values.emplace_back(entry, symbols, written[entry], numbers);
      auto fits = [&](Value value, ArrayRef<StringAttr> sources) {
        return derived.contains(its.numberOf(value)) || takeBytes(value, sources);
      };
      for (Value value : its.chooseDerived(fits)) {
        Derived &item = derived[its.numberOf(value)];
        item.uses.push_back({unsigned(i), value});
        llvm::append_range(item.sources, item.uses.size() == 1 ? its.sourcesOf(value) : ArrayRef<StringAttr>());
      }
    }
    llvm::MapVector<SmallVector<unsigned>, SmallVector<Derived *>, std::map<SmallVector<unsigned>, unsigned>> groups;
    for (auto &[number, item] : derived)
      groups[llvm::map_to_vector(item.uses, [](auto use) { return use.first; })].push_back(&item);
    EntryOp last = entries.empty() ? EntryOp() : entries.back();
    for (auto &[readers, group] : groups)
      last = derive(values[readers.front()], entries[readers.front()], last, group);
    // Last, because a derivation must not read the derived states of another one.
    for (auto &[number, item] : derived)
      for (auto [entry, value] : item.uses)
        value.replaceAllUsesWith(
            OpBuilder(value.getDefiningOp()).create<GetOp>(value.getLoc(), value.getType(), item.state));
    for (WeightValues &its : values)
      its.eraseDead();
  }

private:
  /// The states that a call of each entry point sets. The parts of a call count as one.
  static DenseMap<EntryOp, llvm::DenseSet<StringAttr>> writtenStates(ArrayRef<EntryOp> entries) {
    DenseMap<EntryOp, llvm::DenseSet<StringAttr>> written;
    auto add = [&](ArrayRef<EntryOp> parts) {
      llvm::DenseSet<StringAttr> all;
      for (EntryOp part : parts)
        part.walk([&](SetOp set) { all.insert(set.getStateAttr().getAttr()); });
      for (EntryOp part : parts)
        written[part] = all;
    };
    for (EntryOp entry : entries)
      add(entry);
    if (!entries.empty())
      for (auto whole : entries.front()->getParentOfType<ModuleOp>().getOps<PartsOp>())
        add(whole.getEntries());
    return written;
  }

  /// Whether the value is small, or is no larger than its sources and fits the budget, from which it is then taken.
  bool takeBytes(Value value, ArrayRef<StringAttr> sources) {
    int64_t bytes = bytesOf(value), read = 0;
    if (bytes <= kSmallBytes)
      return true;
    for (StringAttr source : sources)
      read += getBufferBytes(symbols.lookup<StateOp>(source).getStoredType(), /*capacity=*/1);
    if (bytes > read || bytes > budget)
      return false;
    budget -= bytes;
    return true;
  }

  /// Builds and returns the derivation of a group, after the entry point `last`, and the states. `values` are those of
  /// `first`, the first entry point that reads the states.
  EntryOp derive(WeightValues &values, EntryOp first, EntryOp last, ArrayRef<Derived *> group) {
    OpBuilder builder(module.getContext());
    builder.setInsertionPointAfter(last);
    auto derivation =
        builder.create<EntryOp>(first.getLoc(), (first.getSymName() + ".derive").str(), builder.getStrArrayAttr({}),
                                builder.getStrArrayAttr({}), DenseI64ArrayAttr());
    symbols.insert(derivation);
    OpBuilder inner = OpBuilder::atBlockEnd(&derivation.getBody().emplaceBlock());
    IRMapping mapping;
    values.clone(llvm::map_to_vector(group, [](Derived *item) { return item->value(); }), inner, mapping);
    for (Derived *item : group) {
      item->state = FlatSymbolRefAttr::get(createState(*item).getSymNameAttr());
      inner.create<SetOp>(item->value().getLoc(), item->state, mapping.lookup(item->value()));
    }
    inner.create<ReturnOp>(derivation.getLoc());
    return derivation;
  }

  /// The state is named after its first source and the op, "bn1.running_var.rsqrt", and follows this source.
  StateOp createState(const Derived &item) {
    Value value = item.value();
    auto physical = cast<RankedTensorType>(value.getType());
    auto type = RankedTensorType::get(physical.getShape(), physical.getElementType());
    OpBuilder builder(module.getContext());
    auto place = symbols.lookup<StateOp>(item.sources.front());
    while (auto next = dyn_cast_or_null<StateOp>(place->getNextNode())) {
      if (next.getKind() != StateKind::Derived)
        break;
      place = next;
    }
    builder.setInsertionPointAfter(place);
    std::string name = (item.sources.front().getValue() + "." + value.getDefiningOp()->getName().stripDialect()).str();
    auto state =
        builder.create<StateOp>(value.getLoc(), builder.getStringAttr(name), StateKind::Derived, type,
                                InitAttr::get(module.getContext(), "constant", builder.getF64FloatAttr(0), FloatAttr()),
                                /*of=*/FlatSymbolRefAttr(), TypeAttr::get(physical));
    state.setSourcesAttr(builder.getArrayAttr(llvm::map_to_vector(
        item.sources, [](StringAttr source) -> Attribute { return FlatSymbolRefAttr::get(source); })));
    symbols.insert(state);
    return state;
  }

  ModuleOp module;
  SymbolTable symbols;
  int64_t stateBytes = 0, budget = 0;
};

} // namespace

void deriveStates(ModuleOp module, bool mayGrow) {
  if (!getModel(module).getFunctional())
    Derivations(module, mayGrow).run();
}

} // namespace sluice::passes
