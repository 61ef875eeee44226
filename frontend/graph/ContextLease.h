// The MLIR context of a graph.
//
// Loading the dialects of the compiler takes about an eighth of the time from a graph of one op to its result. Therefore
// graphs use the contexts of destroyed graphs. Graphs that exist at the same time have different contexts, so that threads can
// build and compile them without locks.
#pragma once

#include "mlir/IR/MLIRContext.h"
#include <memory>

namespace sluice::detail {

/// A context for the lifetime of this object.
class ContextLease {
public:
  ContextLease();
  ~ContextLease();
  ContextLease(const ContextLease &) = delete;

  mlir::MLIRContext &context() { return *leased.context; }

  struct Context {
    std::unique_ptr<mlir::MLIRContext> context;
    int graphs = 0; ///< that have used it
  };

private:
  Context leased;
};

} // namespace sluice::detail
