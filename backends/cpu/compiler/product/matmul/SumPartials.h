// A stage that adds the partial results of a chunked sum, in the chunks' order.
#pragma once

#include "backends/cpu/compiler/product/Contraction.h"

#include <functional>

namespace sluice::cpu {

// The partial results are matrices `[chunk][row][width]` in the workspace, with whole vectors in each row.
struct Partials {
  mlir::Type element;
  Place place;
  int64_t rows = 1, columns = 1, width = 1;
  int64_t rowsPerChunk = 1; // of the batch dimension: a call has ceil(rows / rowsPerChunk) chunks

  int64_t elementsPerChunk() const { return rows * width; }
};

// Receives the finished sums of row `row` from column `column` on.
using PartialsEpilogue = std::function<void(StageFunction &, mlir::OpBuilder &, mlir::Location, mlir::Value row,
                                            mlir::Value column, mlir::Value sums)>;

Stage emitSumPartials(const StageModule &module, llvm::StringRef name, mlir::Location loc, const Partials &partials,
                      const Target &target, const PartialsEpilogue &epilogue);

} // namespace sluice::cpu
