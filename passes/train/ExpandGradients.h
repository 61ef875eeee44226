// Gradients requested by a graph.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// Replaces every `gradient` of an entry point under construction with ops, and removes every `variable` and `saved`.
/// The ops must still be in the order of the graph. Reports a diagnostic for a value on which the loss does not depend.
mlir::LogicalResult expandGradients(ir::EntryOp entry);

} // namespace sluice::passes
