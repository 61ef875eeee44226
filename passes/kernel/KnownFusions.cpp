#include "passes/kernel/KnownFusions.h"

#include "passes/analysis/ContentKey.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

SmallVector<FusionGroup> KnownFusions::groupsOf(EntryOp entry, llvm::function_ref<SmallVector<FusionGroup>()> form) {
  Block &block = entry.getActions();
  SmallVector<Operation *> ops(llvm::make_pointer_range(block));
  auto [known, isNew] = this->known.try_emplace(contentKey(block, [](Type type) { return type; }));
  SmallVector<FusionGroup> groups;
  if (!isNew) {
    for (const Group &stored : known->second) {
      FusionGroup &group = groups.emplace_back();
      group.kind = stored.kind;
      for (unsigned op : stored.ops)
        group.ops.push_back(ops[op]);
      for (unsigned op : stored.contents)
        group.contents.insert(ops[op]);
      for (auto [op, number] : stored.results)
        group.results.push_back(ops[op]->getResult(number));
    }
    return groups;
  }
  DenseMap<Operation *, unsigned> numbers;
  for (auto [number, op] : llvm::enumerate(ops))
    numbers[op] = unsigned(number);
  groups = form();
  auto numberOf = [&](Operation *op) { return numbers.at(op); };
  for (const FusionGroup &group : groups) {
    Group &stored = known->second.emplace_back(Group{group.kind, {}, {}, {}});
    stored.ops = llvm::map_to_vector(group.ops, numberOf);
    stored.contents = llvm::map_to_vector(group.contents, numberOf);
    for (Value result : group.results)
      stored.results.push_back({numberOf(result.getDefiningOp()), cast<OpResult>(result).getResultNumber()});
  }
  return groups;
}

} // namespace sluice::passes
