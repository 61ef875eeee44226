// What entry points are made of.
#pragma once

#include "ir/Dialect.h"

#include <string>

namespace sluice::passes {

/// A value of the graph that an entry point returns, and its name there.
struct Report {
  std::string name;
  mlir::Value value;
};

/// An entry point without ops, whose block has the inputs as arguments.
ir::EntryOp createEntry(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name,
                        llvm::ArrayRef<llvm::StringRef> inputs, mlir::TypeRange inputTypes,
                        llvm::ArrayRef<llvm::StringRef> outputs);

} // namespace sluice::passes
