// The weight matrices that passes store in fewer bits, with their reads and writes.
#pragma once

#include "ir/Module.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace sluice::passes {

class StoredWeights {
public:
  explicit StoredWeights(mlir::ModuleOp module);

  /// The parameters that are matrices of f32 and operands of products. States that begin as a copy, and their sources,
  /// are none.
  llvm::SmallVector<ir::StateOp> find() const;
  llvm::ArrayRef<ir::GetOp> readsOf(ir::StateOp state) const;
  llvm::ArrayRef<ir::SetOp> writesOf(ir::StateOp state) const;
  /// Fails if an entry point other than `init` writes the weight. `format` is that of the stored weights.
  mlir::LogicalResult checkUnchanged(ir::StateOp state, const llvm::Twine &format) const;

private:
  bool isWeight(ir::StateOp state) const;

  mlir::ModuleOp module;
  llvm::StringMap<llvm::SmallVector<ir::GetOp>> gets; // by the name of the state
  llvm::StringMap<llvm::SmallVector<ir::SetOp>> sets;
  llvm::StringSet<> copies; // states that begin as a copy, and their sources
};

} // namespace sluice::passes
