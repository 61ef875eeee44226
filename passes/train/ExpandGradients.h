// Gradients requested by a graph.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// Replaces every `gradient` of an entry point under construction, still in graph order, and removes every `variable`.
/// Reports a diagnostic on a value that the loss does not depend on.
mlir::LogicalResult expandGradients(ir::EntryOp entry);

} // namespace sluice::passes
