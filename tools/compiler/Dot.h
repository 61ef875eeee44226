// A module as a picture in Graphviz's language.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace sluice::compiler {

/// The graph or every entry point of a module: ops (kernels, once there are any) as nodes in a box for each device,
/// values as edges labelled with shape and type; copies between devices are bold and say their bytes and reason.
std::string printDot(mlir::ModuleOp module);

} // namespace sluice::compiler
