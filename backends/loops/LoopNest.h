// Loops over all elements of some results, in the order of their memory: what the generators of loop kernels are asked
// to write down, with lanes, tasks or threads as they see fit. Values depend on the number of lanes alone.
#pragma once

#include "backends/loops/Elements.h"
#include <functional>
#include <optional>

namespace sluice::loops {

struct LoopNest {
  struct Output {
    /// One value per memory, at an index of `space` (and in a chunk, where there are chunks).
    std::function<llvm::SmallVector<Element>(Elements &, mlir::AffineExpr chunk,
                                             llvm::ArrayRef<mlir::AffineExpr> index)>
        elements;
    llvm::SmallVector<Memory> memories;
    /// Where the memories have these values; null: where `space` has the index.
    std::function<mlir::AffineExpr(Elements &, llvm::ArrayRef<mlir::AffineExpr> index)> offset = nullptr;
  };

  std::string name; ///< unique in the kernel
  mlir::Location loc;
  Formulas &formulas;
  mlir::RankedTensorType space;    ///< the results' shape and layout
  std::optional<SplitFold> chunks; ///< a dimension outside of all others
  llvm::SmallVector<Output> outputs;
  double bytesPerElement = 8; ///< of `space`: what one element reads and writes
  bool folds = false;         ///< whether there is anything to reduce
  std::function<void(Elements &)> prepare;
  /// Vectors of work to add to what the code shows, asked after generation.
  std::function<double(Elements &)> penalty;
  /// Called for the way that was kept.
  std::function<void(Elements &)> chosen;

  /// What is done in place of outputs: at each index, in each of `parts`, whose number is a dimension outside of all others
  /// (null where there is one).
  std::function<void(Emitter &, Elements &, mlir::AffineExpr part, llvm::ArrayRef<mlir::AffineExpr> index)> body =
      nullptr;
  int64_t parts = 1;
};

/// Who writes the nests of a kernel down, in the order in which they run.
class NestWriter {
public:
  virtual ~NestWriter() = default;
  virtual int64_t lanes() const = 0;
  /// Elements folded by one task of a nest with chunks. It is part of the order of sums.
  virtual int64_t elementsPerChunk() const = 0;
  /// The most chunks of a fold: rows are cut where they are fewer. 0: rows stay whole.
  virtual int64_t mostChunks() const { return 0; }
  /// A result with more elements has enough tasks without chunks. It is part of the order of sums, as those before and the next.
  virtual int64_t mostElementsOfSplit() const { return 2048; }
  /// Of a part of a row, at least, and terms of each of its sums.
  virtual int64_t elementsPerPart() const { return elementsPerChunk(); }
  virtual int64_t termsPerPart() const { return 1; }
  /// Of a nest with a body, which could be cut into more parts without a change of values: so many tasks are enough, and one
  /// takes so many neighbouring elements at once.
  virtual int64_t wantedTasks() const = 0;
  virtual int64_t elementsAtOnce() const = 0;
  /// Fails with a diagnostic.
  virtual mlir::LogicalResult write(const LoopNest &nest) = 0;
};

} // namespace sluice::loops
