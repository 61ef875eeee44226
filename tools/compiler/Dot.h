// A module as a Graphviz graph.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace sluice::compiler {

/// The graph or every entry point of a module. Ops (kernels, after fusion) are nodes in a box per device; values are
/// edges labeled with shape and type. Copies between devices are bold, with their bytes and reason.
std::string printDot(mlir::ModuleOp module);

} // namespace sluice::compiler
