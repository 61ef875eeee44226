// train -> parallel. Names the subject of each collective by the user's names.
//
//   %r = sluice.all_reduce sum %d                  ==>   %r = sluice.all_reduce sum %d of <gradient, "fc1.weight">
//   sluice.set @momentum.fc1.weight, (of %r)
//
// The subject is the nearest transitive consumer: a parameter or slot that is set, a statistic that is set, or an
// output that is returned. Of several equally near, the first in the program counts. A collective without such
// consumers has no name.
#include "ir/Module.h"
#include "passes/Passes.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

/// The user's name for the state's new value; null if the state has none.
static SubjectAttr subjectOf(StateOp state) {
  StringAttr name = state.getSymNameAttr();
  switch (state.getKind()) {
  case StateKind::Parameter:
    return SubjectAttr::get(state.getContext(), SubjectKind::Gradient, name);
  case StateKind::Slot:
    if (FlatSymbolRefAttr of = state.getOfAttr())
      return SubjectAttr::get(state.getContext(), SubjectKind::Gradient, of.getAttr());
    return SubjectAttr::get(state.getContext(), SubjectKind::Statistic, name);
  case StateKind::Statistic:
    return SubjectAttr::get(state.getContext(), SubjectKind::Statistic, name);
  default:
    return {};
  }
}

/// The subject of an all_gather: the updated parameter rather than its gradient.
static SubjectAttr updated(SubjectAttr subject) {
  bool isGradient = subject.getKind() == SubjectKind::Gradient;
  return isGradient ? SubjectAttr::get(subject.getContext(), SubjectKind::Parameter, subject.getNames()) : subject;
}

namespace {

class Naming {
public:
  explicit Naming(EntryOp entry)
      : entry(entry), block(entry.getActions()), symbols(entry->getParentOfType<ModuleOp>()) {}

  void run() {
    for (CollectiveOp collective : block.getOps<CollectiveOp>())
      if (SubjectAttr subject = findNearest(collective))
        setSubject(collective, collective.getKind() == CollectiveKind::AllGather ? updated(subject) : subject);
  }

private:
  /// Breadth first over the consumers.
  SubjectAttr findNearest(Operation *collective) {
    llvm::SmallPtrSet<Operation *, 32> seen{collective};
    SmallVector<Operation *> level{collective};
    while (!level.empty()) {
      SmallVector<OpOperand *> uses;
      for (Operation *op : level)
        for (OpOperand &use : op->getUses())
          uses.push_back(&use);
      llvm::sort(uses, [&](OpOperand *a, OpOperand *b) {
        Operation *first = ownerOf(*a), *second = ownerOf(*b);
        return first == second ? a->getOperandNumber() < b->getOperandNumber() : first->isBeforeInBlock(second);
      });
      for (OpOperand *use : uses)
        if (SubjectAttr subject = subjectOf(*use))
          return subject;
      level.clear();
      for (OpOperand *use : uses)
        if (seen.insert(ownerOf(*use)).second)
          level.push_back(ownerOf(*use));
    }
    return {};
  }

  /// The op of the entry point's own list that is or contains the consumer.
  Operation *ownerOf(OpOperand &use) const { return block.findAncestorOpInBlock(*use.getOwner()); }

  SubjectAttr subjectOf(OpOperand &use) {
    if (auto set = dyn_cast<SetOp>(use.getOwner()))
      return passes::subjectOf(symbols.lookup<StateOp>(set.getState()));
    if (!isa<ReturnOp>(use.getOwner()))
      return {};
    auto name = cast<StringAttr>(entry.getOutputs()[use.getOperandNumber()]);
    return SubjectAttr::get(entry.getContext(), SubjectKind::Output, name);
  }

  EntryOp entry;
  Block &block;
  SymbolTable symbols;
};

} // namespace

void nameCollectives(ModuleOp module) {
  for (auto entry : module.getOps<EntryOp>())
    Naming(entry).run();
}

} // namespace sluice::passes
