// The compiler's passes, in the order in which Pipeline.cpp runs them.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LogicalResult.h"

namespace sluice::passes {

class Backend;

/// Replaces f32 by f64 everywhere: states, values, attributes. For tests and for `--dtype f64`.
void promoteToF64(mlir::ModuleOp module);

/// Replaces a convolution in groups by one convolution a group.
void splitGroupedConvolutions(mlir::ModuleOp module);

/// model -> train. Entry points with gradients and updates in place of the graph.
mlir::LogicalResult buildEntryPoints(mlir::ModuleOp module);

/// Replaces ops that stand for a formula of others (batch_norm) by that formula.
void expandComposites(mlir::ModuleOp module);

/// Merges equal ops and removes dead ones.
mlir::LogicalResult simplify(mlir::ModuleOp module);

/// train -> placed. Gives every value a device of the target.
void placeValues(mlir::ModuleOp module, llvm::StringRef device);

/// placed -> copied. Verifies that nothing crosses devices without a copy.
mlir::LogicalResult verifyPlaced(mlir::ModuleOp module);

/// copied -> fused, first half. Chooses layouts from what the backend proposes; states keep theirs in `physical`.
mlir::LogicalResult assignLayouts(mlir::ModuleOp module, Backend &backend);

/// copied -> fused, second half. Puts every op into a `sluice.kernel`, one per launch; alone if not `fuse`.
mlir::LogicalResult fuseKernels(mlir::ModuleOp module, bool fuse);

/// fused -> scheduled. Gives every kernel its queue and its place in it.
void scheduleKernels(mlir::ModuleOp module);

/// Asks the backend to make each kernel; its launch is recorded on it.
mlir::LogicalResult prepareKernels(mlir::ModuleOp module, Backend &backend);

/// scheduled -> planned. Gives every buffer an arena and an offset, states in place.
mlir::LogicalResult planMemory(mlir::ModuleOp module, bool reuse);

/// The passes above for sluice-opt, by name.
void registerSluicePasses();

} // namespace sluice::passes
