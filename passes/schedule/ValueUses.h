// The uses of values by the actions of a list, in the form that findDependences takes.
#pragma once

#include "ir/Dialect.h"
#include "passes/schedule/Dependences.h"

namespace sluice::passes {

class ValueUses {
public:
  explicit ValueUses(ir::ActionListOp list) {
    for (auto [old, next] : list.getUpdates())
      replacedBy[next].push_back(numberOf(old));
  }

  /// Adds the next action of the list.
  void add(mlir::ValueRange reads, mlir::ValueRange makes, mlir::ValueRange reuses) {
    ActionUses &uses = list.emplace_back();
    for (mlir::Value value : reads)
      uses.reads.push_back(numberOf(value));
    for (mlir::Value value : reuses)
      uses.reuses.push_back(numberOf(value));
    for (mlir::Value value : makes) {
      uses.makes.push_back(numberOf(value));
      llvm::append_range(uses.replaces, replacedBy.lookup(value));
    }
  }

  llvm::ArrayRef<ActionUses> actions() const { return list; }

private:
  unsigned numberOf(mlir::Value value) { return numbers.try_emplace(value, unsigned(numbers.size())).first->second; }

  llvm::DenseMap<mlir::Value, unsigned> numbers;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<unsigned, 1>> replacedBy; ///< old values, by the new value of a state
  std::vector<ActionUses> list;
};

} // namespace sluice::passes
