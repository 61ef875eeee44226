// placed -> copied. Leaves only the required copies, as early as possible, with their sizes.
//
//   %b = sluice.copy %a pin (cpu to acc0)
//   %c = sluice.copy %a to (cpu to acc0)
//   %d = sluice.copy %b pin (acc0 to cpu)
//     ==>  %b = sluice.copy %a to {bytes = 8}, right after %a; %b for %c; %a for %d
//
// 1. A copy to its source's device, or to a device that already has the value, is removed.
// 2. There is one copy per value and destination, right after the value.
// 3. A state is copied into a mirror when the mirror is stale. A value that only the host reads, such as an output, is
//    copied on request. A `copy_to` is a separate buffer requested by the user and stays unchanged.
#include "ir/Layout.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static bool isWanted(CopyOp copy) { return copy.getReason() == CopyReason::CopyTo; }

/// The user's reasons take precedence over the compiler's; a copy in the step takes precedence over one for fetching.
static unsigned rankOf(CopyReason reason) {
  return reason == CopyReason::To ? 2 : reason == CopyReason::Output ? 0 : 1;
}

namespace {

class EntrySettling {
public:
  explicit EntrySettling(EntryOp entry) : entry(entry) {}

  void run() {
    for (GetOp get : inOrder<GetOp>())
      mergeGet(get);
    for (CopyOp copy : inOrder<CopyOp>())
      if (!isWanted(copy))
        settle(copy);
    for (CopyOp copy : inOrder<CopyOp>()) {
      if (copy.use_empty())
        copy.erase();
      else
        describe(copy);
    }
  }

private:
  template <typename Op> SmallVector<Op> inOrder() {
    SmallVector<Op> ops;
    entry.walk<WalkOrder::PreOrder>([&](Op op) { ops.push_back(op); });
    return ops;
  }

  /// All reads of a state give the value before the call.
  void mergeGet(GetOp get) {
    auto [first, isNew] = gets.try_emplace(get.getStateAttr().getAttr(), get);
    if (isNew)
      return;
    get->replaceAllUsesWith(first->second);
    get.erase();
  }

  /// The value before any copies.
  Value originOf(Value value) const {
    auto it = origins.find(value);
    return it == origins.end() ? value : it->second;
  }

  void settle(CopyOp copy) {
    Value origin = originOf(copy.getX());
    StringAttr device = getDevice(copy.getY().getType());
    Value there = getDevice(copy.getX().getType()) == device ? copy.getX()
                  : getDevice(origin.getType()) == device    ? origin
                                                             : copies.lookup({origin, device});
    if (!there) {
      moveBehind(copy, copy.getX());
      origins[copy] = origin;
      copies[{origin, device}] = copy;
      return;
    }
    if (auto other = there.getDefiningOp<CopyOp>(); other && rankOf(copy.getReason()) > rankOf(other.getReason())) {
      other.setReason(copy.getReason());
      other->setLoc(copy.getLoc());
    }
    copy->replaceAllUsesWith(ValueRange(there));
    copy.erase();
  }

  void moveBehind(CopyOp copy, Value value) {
    if (Operation *def = value.getDefiningOp())
      copy->moveAfter(def);
    else
      copy->moveBefore(value.getParentBlock(), value.getParentBlock()->begin());
  }

  static CopyTime timeOf(CopyOp copy) {
    if (llvm::all_of(copy->getUsers(), llvm::IsaPred<ReturnOp>))
      return CopyTime::Asked;
    return !isWanted(copy) && copy.getX().getDefiningOp<GetOp>() ? CopyTime::Stale : CopyTime::Step;
  }

  static void describe(CopyOp copy) {
    if (!copy.isCrossing())
      return;
    Builder builder(copy.getContext());
    LogicalBytes bytes = getLogicalBytes(cast<RankedTensorType>(copy.getX().getType()));
    copy.setBytesAttr(builder.getI64IntegerAttr(bytes.fixed));
    copy.setBytesPerRowAttr(builder.getI64IntegerAttr(bytes.perRow));
    copy.setWhen(timeOf(copy));
  }

  EntryOp entry;
  DenseMap<StringAttr, GetOp> gets;
  DenseMap<Value, Value> origins;                       // of copies
  DenseMap<std::pair<Value, StringAttr>, Value> copies; // of an origin, by destination
};

} // namespace

void deduplicateCopies(ModuleOp module) {
  for (auto entry : module.getOps<EntryOp>())
    EntrySettling(entry).run();
}

} // namespace sluice::passes
