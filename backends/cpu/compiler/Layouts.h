// The layouts that the CPU's generators use. Activations of convolutions and pools are NHWC. Weights are in panels
// along their outputs, `[O/P][kh][kw][C][P]` and `[N/P][K][P]`. The outputs of a matrix are its first dimension, as in
// nn::Linear, or its second one. Every other value is row-major.
#pragma once

#include "backends/cpu/compiler/machine/Target.h"
#include "ir/Dialect.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Operation.h"

namespace sluice::cpu {

struct LayoutPreference {
  mlir::AffineMap layout; // null: no preference; the identity: row-major
  bool required = false;  // the op cannot be lowered in another one
};

/// The preferred layout of an operand or result, given the layouts that the op's values have so far.
LayoutPreference preferredLayout(mlir::Operation *op, bool isResult, unsigned number, const Target &target,
                                 int64_t capacity);

/// The bits of the type in which products of this type's elements are accumulated.
int64_t bitsOfSums(mlir::RankedTensorType type);

/// The width of the panels (tiles) of a dimension; 0 if the layout does not tile it.
int64_t panelAlong(mlir::RankedTensorType type, unsigned dim);

/// Panels of width `panel` along dimension `along` of a matrix, and along the first dimension of convolution weights
/// [O, C, kh, kw].
mlir::AffineMap getMatrixPanels(mlir::MLIRContext *context, int64_t panel, unsigned along);
mlir::AffineMap getFilterPanels(mlir::MLIRContext *context, int64_t panel);
/// `[kh][kw][C][O]`, for the weights of grouped convolutions.
mlir::AffineMap getGroupedFilter(mlir::MLIRContext *context);

} // namespace sluice::cpu
