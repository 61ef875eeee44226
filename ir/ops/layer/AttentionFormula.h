// Attention and its gradients as formulas of other ops, which store all scores at once.
#pragma once

#include "ir/Dialect.h"

namespace sluice::ir {

/// The gradient of the mask, which is added to the scores, from the intermediate values of the gradients of keys and
/// values.
mlir::Value buildMaskGradient(mlir::OpBuilder &builder, AttentionKeyValueGradOp op);

} // namespace sluice::ir
