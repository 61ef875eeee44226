// Parts of entry points.
#pragma once

#include "ir/Dialect.h"

#include <string>

namespace sluice::passes {

/// A value of the graph that an entry point returns, and the name of that output.
struct Report {
  std::string name;
  mlir::Value value;
  mlir::StringAttr device = {}; ///< null: the host
};

/// Creates an entry point without ops. The arguments of its block are the inputs.
ir::EntryOp createEntry(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name,
                        llvm::ArrayRef<llvm::StringRef> inputs, mlir::TypeRange inputTypes,
                        llvm::ArrayRef<llvm::StringRef> outputs);

} // namespace sluice::passes
