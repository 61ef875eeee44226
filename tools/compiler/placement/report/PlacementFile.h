// place.json: decisions to keep, written by `--save`, edited by hand, read by `--placement`.
//
//   {"format": 1, "model": "lenet", "entry": "train_step",
//    "placement": {"conv2d_add_relu": "acc0", ..., "state conv1.weight": "acc0"}}
//
// What is left out is chosen anew.
#pragma once

#include "ir/Target.h"
#include "passes/assign/PlacementGraph.h"
#include "tools/compiler/placement/report/Report.h"
#include <map>
#include <string>

namespace sluice::compiler {

class PlacementFile {
public:
  /// Fails on a file of another model or entry point than the graph's, on groups or devices that are not there, with
  /// the nearest that are, and on what contradicts the model.
  static llvm::Expected<PlacementFile> read(const std::string &path, const passes::PlacementGraph &graph,
                                            const ir::Target &target);

  bool empty() const { return devices.empty(); }
  /// Whether the file has the group's device.
  bool names(const passes::PlacedGroup &group) const;
  /// Pins the groups of the same entry point, in any module that is a clone of the one that the file was read for.
  void fix(passes::PlacementGraph &graph) const;

private:
  std::map<std::string, uint32_t> devices; // by the group's key
};

/// The text of the file that keeps a decision whole.
std::string printPlacementFile(const PlacementReport &report);

} // namespace sluice::compiler
