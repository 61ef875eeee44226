// Loops over all elements of some results, in memory order: the input of the generators of loop kernels, which map the
// loops to lanes, tasks or threads. Of the mapping, only the lanes can affect values: they determine the order of sums
// (Fold.h).
#pragma once

#include "backends/loops/Borders.h"
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
  double bytesPerElement = 8;              ///< per index of `space`: bytes read and written
  bool folds = false;                      ///< whether there is a reduction
  std::function<void(Elements &)> prepare; ///< called first: binds the body's values to memory
  /// The cost, in vectors, of work that other nests must do because of this mapping. Queried after generation; may be
  /// null.
  std::function<double(Elements &)> penalty;
  /// Called for the mapping that was kept; may be null.
  std::function<void(Elements &)> chosen;

  /// If set, replaces `outputs`: emits the work at each index, in each of `parts`. The number of the part is a
  /// dimension outside of all others (null if there is only one).
  std::function<void(Emitter &, Elements &, mlir::AffineExpr part, llvm::ArrayRef<mlir::AffineExpr> index)> body =
      nullptr;
  int64_t parts = 1;
  Borders borders = {}; ///< of `space`; loops are split there
};

/// Emits the nests of a kernel, in execution order.
class NestWriter {
public:
  virtual ~NestWriter() = default;
  virtual int64_t lanes() const = 0;
  // These constants determine the order of sums.
  /// Elements folded by one task of a nest with chunks.
  virtual int64_t elementsPerChunk() const = 0;
  /// If there are fewer chunks than this, rows are split into parts, up to this number of chunks. 0: rows stay whole.
  virtual int64_t mostChunks() const { return 0; }
  /// A fold to a larger result is not split into chunks: it has enough tasks.
  virtual int64_t mostElementsOfSplit() const { return 2048; }
  /// Minimum elements of a part of a row, and minimum terms of each of its sums.
  virtual int64_t elementsPerPart() const { return elementsPerChunk(); }
  virtual int64_t termsPerPart() const { return 1; }

  // For nests with a body, whose number of parts does not affect values: the number of tasks that is enough, and the
  // number of adjacent elements of a task.
  virtual int64_t wantedTasks() const = 0;
  virtual int64_t elementsAtOnce() const = 0;
  /// Whether loops over windows are split at the borders of images. This does not affect values.
  virtual bool splitsAtBorders() const { return false; }
  /// Fails with a diagnostic.
  virtual mlir::LogicalResult write(const LoopNest &nest) = 0;
};

} // namespace sluice::loops
