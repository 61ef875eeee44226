// Puts every op into a `sluice.kernel`, one per launch.
//
//   %0 = sluice.add %x, %y; %1 = sluice.relu %0
//     ==>  %1 = sluice.kernel "add_relu" (%a = %x, %b = %y) {add; relu; yield}
//
// Afterwards an entry point holds only get, kernels, copies between devices, loops of these, set and return. Every set
// or returned value is a kernel result that can be computed in its destination, or a copy of one. Where it cannot be
// computed there, a copying kernel is added.
#include "ir/Layout.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/analysis/FusionGroups.h"
#include "passes/backend/DeviceBackends.h"
#include "passes/backend/KernelView.h"
#include "passes/kernel/CopyKernel.h"
#include "passes/kernel/KnownFusions.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

/// Builds a group's kernel, which yields its results. `produced` maps values to the results of earlier kernels.
static KernelOp buildKernel(OpBuilder &builder, StringRef name, const FusionGroup &group,
                            const llvm::MapVector<Value, Value> &produced) {
  LaunchContents contents = contentsOf(group);
  OperationState state(group.ops.back()->getLoc(), KernelOp::getOperationName());
  state.addAttribute("name", builder.getStringAttr(name));
  Block *block = new Block;
  state.addRegion()->push_back(block);
  IRMapping mapping;
  for (Value input : contents.inputs) {
    state.operands.push_back(produced.count(input) ? produced.lookup(input) : input);
    mapping.map(input, block->addArgument(input.getType(), input.getLoc()));
  }
  for (Value output : group.results)
    state.types.push_back(output.getType());
  auto kernel = cast<KernelOp>(builder.create(state));
  OpBuilder inner = OpBuilder::atBlockEnd(block);
  for (Operation *op : contents.ops)
    inner.clone(*op, mapping)->removeAttr(kPinAttr);
  inner.create<YieldOp>(kernel.getLoc(),
                        llvm::map_to_vector(group.results, [&](Value output) { return mapping.lookup(output); }));
  return kernel;
}

//===- updates in place -------------------------------------------------------------------------------------------===//

/// Whether an action computes the value directly in its destination.
static bool isMadeInPlace(Value value) { return isa_and_nonnull<KernelOp, CollectiveOp>(value.getDefiningOp()); }

/// `reads`: the reads of the set's state. `keepers`: the number of sets and outputs with the set's value.
static bool canUpdateInPlace(SetOp set, ArrayRef<GetOp> reads, unsigned keepers, Operation *terminator) {
  return keepers == 1 && isMadeInPlace(set.getValue()) &&
         llvm::all_of(reads, [&](GetOp get) { return canReplace(get.getValue(), set.getValue(), terminator); });
}

/// Whether a host output may use the value's own buffer: the result of a kernel or collective, or a copy from another
/// device.
static bool isOwnBuffer(Value value) {
  auto copy = value.getDefiningOp<CopyOp>();
  return isMadeInPlace(value) || (copy && copy.getWhen() != CopyTime::Stale);
}

/// Gives each output a buffer that no action overwrites until the host reads it. The buffer is on the value's own
/// device if it is fetched from there and can be copied there.
static void addOutputCopies(Operation *results, const DeviceBackends &backends) {
  for (OpOperand &operand : results->getOpOperands()) {
    auto asked = operand.get().getDefiningOp<CopyOp>();
    bool isRepeated = llvm::count(results->getOperands(), operand.get()) > 1;
    if (!asked || asked.getWhen() != CopyTime::Asked) {
      if (isRepeated || !isOwnBuffer(operand.get()))
        operand.set(copyInKernel(operand.get(), results, "copy_output"));
      continue;
    }
    if (isRepeated)
      operand.set(cast<CopyOp>(OpBuilder(results).clone(*asked)));
    asked = operand.get().getDefiningOp<CopyOp>();
    if (isMadeInPlace(asked.getX()))
      continue;
    if (backends.reasonAgainstRelayout(asked.getX(), asked.getX().getType()).empty())
      asked.getXMutable().set(copyInKernel(asked.getX(), asked, "copy_output"));
    else
      asked.setWhen(CopyTime::Step);
  }
}

static void addCopies(EntryOp entry, const DeviceBackends &backends) {
  addOutputCopies(entry.getReturn(), backends);
  DenseMap<StringAttr, SmallVector<GetOp, 1>> reads; // by state
  for (auto get : entry.getBody().getOps<GetOp>())
    reads[get.getStateAttr().getAttr()].push_back(get);
  // Counted once, because most states of a deep model may share one initial value.
  DenseMap<Value, unsigned> keepers;
  for (Value output : entry.getReturn()->getOperands())
    ++keepers[output];
  for (auto set : entry.getActions().getOps<SetOp>())
    ++keepers[set.getValue()];
  // Copies come last, after all readers of the old value. The set is cloned there, because moving it invalidates the
  // block's op order and `canReplace` would renumber all ops.
  OpBuilder builder(entry.getReturn());
  for (SetOp set : llvm::to_vector(entry.getActions().getOps<SetOp>())) {
    unsigned &itsKeepers = keepers[set.getValue()];
    if (canUpdateInPlace(set, reads.lookup(set.getStateAttr().getAttr()), itsKeepers, entry.getReturn()))
      continue;
    --itsKeepers;
    auto last = cast<SetOp>(builder.clone(*set));
    set.erase();
    last.getValueMutable().set(copyInKernel(last.getValue(), last, "copy_state"));
  }
}

//===- the pass ---------------------------------------------------------------------------------------------------===//

/// Dead ops would become kernels without results.
static void removeDead(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

static SmallVector<FusionGroup> groupsOf(ActionListOp list, FusionRules &rules, KnownFusions *known) {
  auto form = [&] { return formFusionGroups(list, rules); };
  auto entry = dyn_cast<EntryOp>(list.getOperation());
  return known && entry ? known->groupsOf(entry, form) : form();
}

static void fuseList(ActionListOp list, FusionRules &rules, KnownFusions *known, llvm::StringMap<unsigned> &names) {
  Block &block = list.getActions();
  SmallVector<FusionGroup> groups = groupsOf(list, rules, known);
  SmallVector<Operation *> old;
  for (Operation &op : block)
    if (isCompute(&op) && !isCrossing(&op))
      old.push_back(&op);
  // Sets and the terminator follow the kernels.
  SmallVector<SetOp> sets(block.getOps<SetOp>());
  for (SetOp set : sets)
    set->moveBefore(block.getTerminator());
  OpBuilder builder(sets.empty() ? block.getTerminator() : sets.front().getOperation());
  llvm::MapVector<Value, Value> produced;
  for (const FusionGroup &group : groups) {
    if (group.kind == FusionGroup::Alone) {
      group.ops.front()->moveBefore(builder.getInsertionBlock(), builder.getInsertionPoint());
      continue;
    }
    std::string name = prefixOf(group.ops.front()->getResult(0).getType()) + nameOf(group);
    unsigned number = names[name]++;
    KernelOp kernel = buildKernel(builder, number ? name + "_" + std::to_string(number) : name, group, produced);
    for (auto [value, result] : llvm::zip_equal(group.results, kernel.getResults()))
      produced[value] = result;
  }
  for (auto [value, result] : produced)
    value.replaceAllUsesWith(result);
  for (Operation *op : llvm::reverse(old))
    op->erase();
}

void fuseKernels(ModuleOp module, const DeviceBackends &backends, bool fuse, KnownFusions *known) {
  llvm::StringMap<unsigned> names;
  // Inner loops first.
  module.walk([&](ActionListOp list) {
    removeDead(list.getActions());
    OpViews views;
    FusionRules rules(fuse, [&](ArrayRef<Operation *> ops, ValueRange results) {
      return backends.of(ops.back()).canFuse(KernelView(ops, results, views));
    });
    fuseList(list, rules, known, names);
  });
  for (auto entry : module.getOps<EntryOp>())
    addCopies(entry, backends);
}

} // namespace sluice::passes
