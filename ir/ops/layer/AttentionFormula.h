// What attention and its gradients are as formulas of other ops, which store all scores at once.
#pragma once

#include "ir/Dialect.h"

namespace sluice::ir {

/// The gradient of the mask, which is added to the scores, from what gradients of keys and values are made of.
mlir::Value buildMaskGradient(mlir::OpBuilder &builder, AttentionKeyValueGradOp op);

} // namespace sluice::ir
