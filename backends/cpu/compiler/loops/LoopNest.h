// Stages that walk over the elements of results in the order of their memory, lanes over the innermost.
//
// There are several ways to vectorise a nest: lanes over the innermost dimension, over several that are contiguous
// taken together, or none (where what is contiguous is folded). Each is generated, its cost counted on the code, and
// the cheapest kept; values do not depend on the choice.
#pragma once

#include "backends/cpu/compiler/StageFunction.h"
#include "backends/cpu/compiler/Target.h"
#include "backends/loops/Elements.h"
#include <functional>
#include <optional>

namespace sluice::cpu {

struct LoopNest {
  struct Output {
    /// One value per memory, at an index of `space` (and in a chunk, where there are chunks).
    std::function<llvm::SmallVector<loops::Element>(loops::Elements &, mlir::AffineExpr chunk,
                                                    llvm::ArrayRef<mlir::AffineExpr> index)>
        elements;
    llvm::SmallVector<loops::Memory> memories;
  };

  std::string name;
  mlir::Location loc;
  loops::Formulas &formulas;
  mlir::RankedTensorType space;           // the results' shape and layout
  std::optional<loops::SplitFold> chunks; // a dimension outside of all others
  llvm::SmallVector<Output> outputs;
  double bytesPerElement = 8; // of `space`: what one element reads and writes
  bool folds = false;         // whether there is anything to reduce
  std::function<void(loops::Elements &)> prepare;
  /// Cost to add to what the code shows, asked after generation.
  std::function<double(loops::Elements &)> penalty;
  /// Called for the way that was kept.
  std::function<void(loops::Elements &)> chosen;
};

struct EmittedNest {
  Stage stage;
  double lanes = 1; // the share of vector lanes that do work
};

mlir::FailureOr<EmittedNest> emitLoopNest(const LoopNest &nest, mlir::ModuleOp module, const Target &target,
                                          int64_t capacity);

/// Lanes of every element type: fixed, so that the same elements share a vector whatever they are fused with.
inline int64_t lanesOf(const Target &target) { return target.lanes(32); }

} // namespace sluice::cpu
