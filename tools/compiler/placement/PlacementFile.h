// place.json: decisions to keep, written by `--save`, edited by hand, read by `--placement`.
//
//   {"format": 1, "model": "lenet", "entry": "train_step",
//    "placement": {"conv2d_add_relu": "acc0", ..., "state conv1.weight": "acc0"}}
//
// What is left out is chosen anew.
#pragma once

#include "tools/compiler/placement/Candidates.h"
#include "tools/compiler/placement/Report.h"

namespace sluice::compiler {

class PlacementFile {
public:
  bool empty() const { return devices.empty(); }
  /// Pins the graph's groups as the file says; an entry that contradicts the model is an error.
  llvm::Error fix(passes::PlacementGraph &graph, const ir::Target &target) const;

private:
  friend llvm::Expected<PlacementFile> readPlacementFile(const std::string &path, const PlacementSetting &setting);
  std::string path;
  std::map<std::string, uint32_t> devices; // by the group's key
};

/// Fails on a file of another model, and on groups or devices that are not there, with the nearest that are.
llvm::Expected<PlacementFile> readPlacementFile(const std::string &path, const PlacementSetting &setting);

/// The text of the file that keeps a decision whole.
std::string printPlacementFile(const PlacementReport &report);

} // namespace sluice::compiler
