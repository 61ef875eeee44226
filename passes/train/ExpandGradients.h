// Gradients requested by a graph.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// Replaces every `gradient` of an entry point under construction by ops, and removes every `variable`
/// and every `saved`. The ops must still be in the order of the graph. Reports a diagnostic for a value that the loss does not depend on.
mlir::LogicalResult expandGradients(ir::EntryOp entry);

} // namespace sluice::passes
