// Gradients that a graph asks for.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// Puts ops in the place of every `gradient` of an entry point under construction, in which they stand as in its graph,
/// and takes each `variable` away. Fails with a diagnostic on a value that the loss does not depend on.
mlir::LogicalResult expandGradients(ir::EntryOp entry);

} // namespace sluice::passes
