// Loops over all elements of some results, in memory order: the input of the generators of loop kernels, which map them
// to lanes, tasks or threads. Values depend on the number of lanes alone.
#pragma once

#include "backends/loops/Elements.h"
#include <functional>
#include <optional>

namespace sluice::loops {

struct LoopNest {
  struct Output {
    /// One value per memory, at an index of `space` (and in a chunk, if there are chunks).
    std::function<llvm::SmallVector<Element>(Elements &, mlir::AffineExpr chunk,
                                             llvm::ArrayRef<mlir::AffineExpr> index)>
        elements;
    llvm::SmallVector<Memory> memories;
    /// Maps an index of `space` to the memories' index; null: identity.
    std::function<mlir::AffineExpr(Elements &, llvm::ArrayRef<mlir::AffineExpr> index)> offset = nullptr;
  };

  std::string name; ///< unique in the kernel
  mlir::Location loc;
  Formulas &formulas;
  mlir::RankedTensorType space;    ///< the results' shape and layout
  std::optional<SplitFold> chunks; ///< a dimension outside of all others
  llvm::SmallVector<Output> outputs;
  double bytesPerElement = 8; ///< per index of `space`: bytes read and written
  bool folds = false;         ///< whether there is a reduction
  std::function<void(Elements &)> prepare;
  /// Additional work in vectors that the code does not show, queried after generation.
  std::function<double(Elements &)> penalty;
  /// Called for the mapping that was kept.
  std::function<void(Elements &)> chosen;

  /// Replaces outputs: called at each index, in each of `parts`. The number of the part is a dimension outside of all
  /// others (null if there is only one).
  std::function<void(Emitter &, Elements &, mlir::AffineExpr part, llvm::ArrayRef<mlir::AffineExpr> index)> body =
      nullptr;
  int64_t parts = 1;
};

/// Emits the nests of a kernel, in execution order.
class NestWriter {
public:
  virtual ~NestWriter() = default;
  virtual int64_t lanes() const = 0;
  /// Elements folded by one task of a nest with chunks. Part of the order of sums.
  virtual int64_t elementsPerChunk() const = 0;
  /// The maximum number of chunks of a fold: rows are split if there are fewer. 0: rows stay whole.
  virtual int64_t mostChunks() const { return 0; }
  /// A result with more elements has enough tasks without chunks. Part of the order of sums, like the constants before
  /// and after it.
  virtual int64_t mostElementsOfSplit() const { return 2048; }
  /// Minimum size of a part of a row, and minimum terms of each of its sums.
  virtual int64_t elementsPerPart() const { return elementsPerChunk(); }
  virtual int64_t termsPerPart() const { return 1; }
  /// For a nest with a body, which could be split into more parts without changing values: this many tasks are enough,
  /// and a task has this many adjacent elements.
  virtual int64_t wantedTasks() const = 0;
  virtual int64_t elementsAtOnce() const = 0;
  /// Fails with a diagnostic.
  virtual mlir::LogicalResult write(const LoopNest &nest) = 0;
};

} // namespace sluice::loops
