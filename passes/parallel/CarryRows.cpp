// train -> parallel, first. A value that rows carry from one training step to the next becomes a state with the maximum
// number of rows. Each step reads and writes the rows of its call.
//
//   %h = sluice.get @h : ?x64     ==>   %s = sluice.get @h : 128x64                        (%i = 0, 1, ... : ?)
//                                       %h = sluice.gather %s, %i
//   sluice.set @h, %n : ?x64      ==>   %t = sluice.scatter_add %n, %i {size = 128}
//                                       %w = sluice.where %isOfCall, %t, %s;  sluice.set @h, %w
//
// A row keeps its global number, whichever replica computes it. A sum over rows is a sum over replicas, each of which
// contributes zeros outside its own rows. So each replica has the values of all rows, rows may be sharded differently
// in every call, and a checkpoint can resume with any number of replicas.
#include "ir/Module.h"
#include "ir/build/Node.h"
#include "passes/Passes.h"
#include "passes/place/InheritDevice.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static RankedTensorType withAllRows(Type type, int64_t rows) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.clone(runtimeShape(tensor, rows));
}

static bool carriesRows(Value value) { return !cast<RankedTensorType>(value.getType()).hasStaticShape(); }

/// 0, 1, ... along dimension 0.
static Node rowNumbers(OpBuilder &builder, Location loc, int64_t rows) {
  return iota(builder, loc, RankedTensorType::get({rows}, builder.getI64Type()));
}

namespace {

class EntryCarrying {
public:
  EntryCarrying(EntryOp entry, bool sharesRows) : entry(entry), sharesRows(sharesRows), builder(entry.getContext()) {}

  void run() {
    for (Operation &op : llvm::make_early_inc_range(entry.getActions())) {
      auto get = dyn_cast<GetOp>(op);
      auto set = dyn_cast<SetOp>(op);
      if (get && carriesRows(get.getValue()))
        read(get);
      if (set && carriesRows(set.getValue()))
        write(set);
    }
  }

private:
  /// The global numbers of the call's rows.
  Node index(Location loc) {
    Node own = rowNumbers(builder, loc, ShapedType::kDynamic);
    if (!sharesRows)
      return own;
    Value first = builder.create<GetOp>(loc, RankedTensorType::get({}, builder.getI64Type()), kFirstRow);
    return own + expand(Node(builder, loc, first), {}, own.type());
  }

  Value getAll(Location loc, FlatSymbolRefAttr name) {
    auto state = SymbolTable::lookupNearestSymbolFrom<StateOp>(entry, name);
    return builder.create<GetOp>(loc, state.getStoredType(), name);
  }

  void read(GetOp get) {
    builder.setInsertionPoint(get);
    Value all = getAll(get.getLoc(), get.getStateAttr());
    InheritDevice devices(builder, get);
    get.getValue().replaceAllUsesWith(at(Node(builder, get.getLoc(), all), index(get.getLoc())));
    get.erase();
  }

  void write(SetOp set) {
    builder.setInsertionPoint(set);
    Location loc = set.getLoc();
    Node before(builder, loc, getAll(loc, set.getStateAttr()));
    int64_t rows = before.type().getDimSize(0);
    InheritDevice devices(builder, getDevice(before.type()), pinOf(before));
    Node after = addedAt(Node(builder, loc, set.getValue()), index(loc), rows);
    Node number = rowNumbers(builder, loc, rows);
    Node count = rowCount(builder, loc, builder.getI64Type());
    Node isOfCall = expand(number < expand(count, {}, number.type()), {0}, after.type());
    set.getValueMutable().set(where(isOfCall, after, before));
  }

  EntryOp entry;
  bool sharesRows;
  OpBuilder builder;
};

} // namespace

bool carryRows(ModuleOp module) {
  if (llvm::all_of(module.getOps<StateOp>(), [](StateOp state) { return state.getTensorType().hasStaticShape(); }))
    return false;
  int64_t rows = getCapacity(module);
  for (StateOp state : module.getOps<StateOp>()) {
    state.setTypeAttr(TypeAttr::get(withAllRows(state.getTensorType(), rows)));
    if (auto physical = state.getPhysicalAttr())
      state.setPhysicalAttr(TypeAttr::get(withAllRows(physical.getValue(), rows)));
  }
  for (EntryOp entry : module.getOps<EntryOp>())
    EntryCarrying(entry, sharesRows(module)).run();
  return true;
}

} // namespace sluice::passes
