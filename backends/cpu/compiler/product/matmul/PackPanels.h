// Copies a matrix into panels along its columns, transposed in registers if required. A stage copies a whole matrix; a
// task copies a part.
#pragma once

#include "backends/cpu/compiler/product/Contraction.h"

namespace sluice::cpu {

// to[n / panel][t][k][n mod panel] = from(t, k, n) for the matrices t, which have several dimensions, the last one
// fastest. Columns up to the next whole vector are zero, except in panels of a single column.
struct PackPanels {
  mlir::Type element;
  llvm::SmallVector<int64_t> counts, stridesT;
  int64_t k = 1, n = 1;
  // from(t, k, n) = t * stridesT + (k / panelK) * stridePanelK + (k mod panelK) * strideK + n * strideN
  Place from;
  int64_t strideK = 1, strideN = 1;
  int64_t panelK = 0, stridePanelK = 0; // 0: k is not cut
  Place to;
  int64_t panel = 0;
  bool reversed = false; // matrix t goes to place count() - 1 - t

  int64_t count() const;
  int64_t elements() const; // of the result
};

Stage emitPackPanels(const StageModule &module, llvm::StringRef name, mlir::Location loc, const PackPanels &pack,
                     const Target &target);

// Copies the terms [begin, end) of the first `columns` columns from `source`, the corner of a matrix, to a panel at `target`.
// `begin` is a multiple of the lanes, as is `end` or it is k.
void emitPackTerms(mlir::OpBuilder &b, mlir::Location loc, const PackPanels &pack, int64_t lanes, mlir::Value source,
                   mlir::Value target, mlir::Value begin, mlir::Value end, int64_t columns);

} // namespace sluice::cpu
