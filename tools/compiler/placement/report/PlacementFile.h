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
#include <map>
#include <string>

namespace sluice::compiler {

class PlacementFile {
public:
  /// Fails if the file is of another model or entry point, names unknown groups or devices (the error suggests the
  /// nearest), or contradicts the model.
  static llvm::Expected<PlacementFile> read(const std::string &path, const passes::PlacementGraph &graph,
                                            const ir::Target &target);

  bool empty() const { return devices.empty(); }
  /// Whether the file contains the group's device.
  bool names(const passes::PlacedGroup &group) const;
  /// Pins the groups of the same entry point, in any clone of the module that the file was read for.
  void fix(passes::PlacementGraph &graph) const;

private:
  std::map<std::string, uint32_t> devices; // by the group's key
};

/// The text of a file that keeps the whole decision.
std::string printPlacementFile(const PlacementReport &report);

} // namespace sluice::compiler
