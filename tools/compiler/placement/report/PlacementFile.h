// place.json: decisions to keep, written by `--save`, edited by hand, read by `--placement`.
//
//   {"format": 1, "model": "lenet", "entry": "train_step",
//    "placement": {"conv2d_add_relu": "acc0", ..., "state conv1.weight": "acc0"}}
//
// Omitted groups are chosen again.
#pragma once

#include "ir/Target.h"
#include "passes/assign/PlacementGraph.h"
#include "tools/compiler/placement/report/Report.h"
#include <string>

namespace sluice::compiler {

/// Pins the groups that the file names. Fails if the file is of another model or entry point, names unknown groups or
/// devices (the error suggests the nearest), or contradicts the model.
llvm::Error keepPlacement(const std::string &path, passes::PlacementGraph &graph, const ir::Target &target);

/// The text of a file that keeps the whole decision.
std::string printPlacementFile(const PlacementReport &report);

} // namespace sluice::compiler
