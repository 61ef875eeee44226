// Puts every op into a `sluice.kernel`, one per launch.
//
//   %0 = sluice.add %x, %y; %1 = sluice.relu %0   ==>   %1 = sluice.kernel "add_relu" (%a = %x, %b = %y) {add; relu; yield}
//
// Afterwards an entry point holds only get, kernels, set and return; every set or returned value is a kernel's result that can
// be computed where it is wanted (a copying kernel is added where it cannot).
#include "ir/Layout.h"
#include "passes/Passes.h"
#include "passes/analysis/FusionGroups.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

/// Builds one kernel: collects what it reads, clones its ops and the recomputed ones, yields what others read.
class KernelBuilding {
public:
  KernelBuilding(const FusionGroup &group, OpBuilder &builder, const DenseMap<Value, Value> &produced, bool fuse) : group(group), builder(builder), produced(produced), fuse(fuse) {}

  KernelOp build(StringRef name) {
    llvm::SetVector<Operation *> body;
    for (Operation *op : group.ops)
      collect(op, body);
    SmallVector<Value> outputs;
    for (Operation *op : group.ops)
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !llvm::is_contained(group.ops, user); }))
          outputs.push_back(result);

    OperationState state(group.ops.back()->getLoc(), KernelOp::getOperationName());
    state.addAttribute("name", builder.getStringAttr(name));
    Block *block = new Block;
    state.addRegion()->push_back(block);
    IRMapping mapping;
    for (Value input : inputs) {
      state.operands.push_back(produced.count(input) ? produced.lookup(input) : input);
      mapping.map(input, block->addArgument(input.getType(), input.getLoc()));
    }
    for (Value output : outputs)
      state.types.push_back(output.getType());
    auto kernel = cast<KernelOp>(builder.create(state));
    OpBuilder inner = OpBuilder::atBlockEnd(block);
    for (Operation *op : body)
      inner.clone(*op, mapping);
    inner.create<YieldOp>(kernel.getLoc(), llvm::map_to_vector(outputs, [&](Value output) { return mapping.lookup(output); }));
    results.assign(outputs.begin(), outputs.end());
    return kernel;
  }

  /// The ops' results that the kernel yields, in order.
  SmallVector<Value> results;

private:
  bool isMember(Operation *op) {
    return llvm::is_contained(group.ops, op) || (fuse ? isRecomputed(op) : op->getNumOperands() == 0 && isRecomputed(op));
  }

  void collect(Operation *op, llvm::SetVector<Operation *> &body) {
    for (Value operand : op->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (def && isMember(def))
        collect(def, body);
      else
        inputs.insert(operand);
    }
    body.insert(op);
  }

  const FusionGroup &group;
  OpBuilder &builder;
  const DenseMap<Value, Value> &produced;
  bool fuse;
  llvm::SetVector<Value> inputs;
};

} // namespace

/// "conv2d_add_relu": what is computed, without what is only moved; long chains are cut.
static std::string nameOf(const FusionGroup &group) {
  std::string name;
  unsigned named = 0;
  for (Operation *op : group.ops) {
    StringRef mnemonic = op->getName().stripDialect();
    if (StringRef(name).ends_with(mnemonic))
      continue;
    if (++named > 4)
      return name + "_etc";
    name += (name.empty() ? "" : "_") + mnemonic.str();
  }
  return name;
}

//===- updates in place ----------------------------------------------------------------------------------------------===//

/// Whether every element of block argument `argument` is read only for the result element in its own place, so that the
/// result may overwrite it.
static bool isReadInPlace(BlockArgument argument) {
  SmallVector<Value> work{argument};
  DenseSet<Value> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    for (Operation *user : value.getUsers()) {
      if (isa<YieldOp>(user))
        continue;
      if (!isa<ElementwiseOp>(user) || user->getResult(0).getType() != argument.getType())
        return false;
      if (seen.insert(user->getResult(0)).second)
        work.push_back(user->getResult(0));
    }
  }
  return true;
}

static bool canUpdateInPlace(SetOp set, EntryOp entry) {
  auto kernel = set.getValue().getDefiningOp<KernelOp>();
  if (!kernel || llvm::count_if(set.getValue().getUsers(), [](Operation *user) { return isa<SetOp, ReturnOp>(user); }) != 1)
    return false;
  for (auto get : entry.getBody().front().getOps<GetOp>()) {
    if (get.getState() != set.getState())
      continue;
    for (OpOperand &use : get.getValue().getUses()) {
      if (use.getOwner() == kernel && !isReadInPlace(kernel.getBody().getArgument(use.getOperandNumber())))
        return false;
      if (use.getOwner() != kernel && !use.getOwner()->isBeforeInBlock(kernel))
        return false;
    }
  }
  return true;
}

/// A kernel that copies `value`, before `op`.
static Value copyInKernel(Value value, Operation *op, StringRef name) {
  OpBuilder builder(op);
  OperationState state(op->getLoc(), KernelOp::getOperationName());
  state.addAttribute("name", builder.getStringAttr(name));
  state.addOperands(value);
  state.addTypes(value.getType());
  Block *block = new Block;
  state.addRegion()->push_back(block);
  OpBuilder inner(op->getContext());
  inner.setInsertionPointToEnd(block);
  Value argument = block->addArgument(value.getType(), op->getLoc());
  inner.create<YieldOp>(op->getLoc(), ValueRange(Value(inner.create<RelayoutOp>(op->getLoc(), value.getType(), argument))));
  return builder.create(state)->getResult(0);
}

static void addCopies(EntryOp entry) {
  Block &block = entry.getBody().front();
  for (OpOperand &operand : block.getTerminator()->getOpOperands()) {
    bool repeated = llvm::count(block.getTerminator()->getOperands(), operand.get()) > 1;
    if (!operand.get().getDefiningOp<KernelOp>() || repeated)
      operand.set(copyInKernel(operand.get(), block.getTerminator(), "copy_output"));
  }
  // Copies come last: whatever reads the old value has run.
  for (SetOp set : llvm::to_vector(block.getOps<SetOp>())) {
    if (canUpdateInPlace(set, entry))
      continue;
    set->moveBefore(block.getTerminator());
    set.getValueMutable().set(copyInKernel(set.getValue(), set, "copy_state"));
  }
}

//===- the pass ------------------------------------------------------------------------------------------------------===//

static void fuseEntry(EntryOp entry, bool fuse, llvm::StringMap<unsigned> &names) {
  Block &block = entry.getBody().front();
  SmallVector<FusionGroup> groups = formFusionGroups(entry, fuse);
  SmallVector<Operation *> old;
  for (Operation &op : block)
    if (isa<ElementwiseOp, ElementOp, ContractionOp>(op))
      old.push_back(&op);
  // Sets and the terminator go behind the kernels.
  SmallVector<SetOp> sets(block.getOps<SetOp>());
  for (SetOp set : sets)
    set->moveBefore(block.getTerminator());
  OpBuilder builder(sets.empty() ? block.getTerminator() : sets.front().getOperation());
  DenseMap<Value, Value> produced;
  for (const FusionGroup &group : groups) {
    std::string name = nameOf(group);
    unsigned number = names[name]++;
    KernelBuilding building(group, builder, produced, fuse);
    KernelOp kernel = building.build(number ? name + "_" + std::to_string(number) : name);
    for (auto [value, result] : llvm::zip_equal(building.results, kernel.getResults()))
      produced[value] = result;
  }
  for (Operation &op : block)
    if (isa<SetOp, ReturnOp>(op))
      for (OpOperand &operand : op.getOpOperands())
        if (Value result = produced.lookup(operand.get()))
          operand.set(result);
  for (Operation *op : llvm::reverse(old))
    op->erase();
  addCopies(entry);
}

LogicalResult fuseKernels(ModuleOp module, bool fuse) {
  llvm::StringMap<unsigned> names;
  for (auto entry : module.getOps<EntryOp>())
    fuseEntry(entry, fuse, names);
  return success();
}

} // namespace sluice::passes
