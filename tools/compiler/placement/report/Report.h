// What was decided and why, for people and scripts: plain data, in the module's words.
#pragma once

#include "passes/analysis/CostModel.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sluice::compiler {

struct PlacementReport {
  struct Device {
    std::string name, spelling; ///< "acc0", "sim:0"
    passes::CostSource costs;
    std::string architecture; ///< that published costs are of
    std::map<std::string, std::string>
        estimated; ///< kinds of its groups that were not measured, and measured ones like them
    std::optional<int64_t> capBytes;
    int64_t peakBytes = 0, stateBytes = 0;
    std::vector<std::pair<double, int64_t>> memory; ///< beside the states, over the step: seconds, bytes
  };
  struct Link {
    std::string from, to;
    passes::LinkCosts costs;
  };
  struct Alternative {
    std::string name;
    std::optional<double> seconds; ///< none if it cannot be
    std::string obstacle;          ///< why
  };
  /// A group elsewhere, all others staying where they are.
  struct Elsewhere {
    std::string device;
    std::optional<double> workSeconds; ///< none where it cannot run
    double addedSeconds = 0;           ///< work and copies, against the decision; 0 on the chosen device
  };
  struct Group {
    std::string name, kind, device, reason, source;
    std::vector<std::string> ops;
    std::vector<Elsewhere> devices;
    std::string kernel;          ///< its name in the plan; empty if it is not in the schedule
    std::vector<size_t> reads;   ///< groups
    double start = -1, end = -1; ///< seconds from the start of a step; -1 if it is not in the schedule
    int64_t stateBytes = 0;      ///< of a state
    bool isState = false;
  };
  struct Copy {
    std::string value, from, to, reason, when, source, queue;
    std::optional<size_t> producer; ///< the group that makes the value
    std::vector<size_t> consumers;  ///< groups that read the copy
    int64_t bytes = 0;
    double seconds = 0, start = -1, end = -1;
    bool isHidden = false; ///< it ends before anything waits for it longer than the queues do anyway
  };

  std::string model, entry;
  int64_t rows = 0;
  std::vector<Device> devices;
  std::vector<Link> links;
  std::string chosen; ///< the alternative that was taken
  std::vector<Alternative> alternatives;
  double uncertainty = 0; ///< the share by which a placement must beat everything on one device
  std::string remark;     ///< what was passed over for being no surer than the choice; empty if nothing was
  double predictedSeconds = 0;
  double costSeconds = 0;             ///< the sum of the plan's work and copies, one after the other
  double boundSeconds = 0;            ///< no placement has a smaller sum, whatever the memory
  std::optional<int64_t> assignments; ///< how many there are; none if more than can be counted
  int64_t judged = 0;                 ///< of them, by the model of their schedules
  std::vector<Group> groups;          ///< launches, then states
  std::vector<Copy> copies;

  /// Whether the schedules of all assignments were judged.
  bool judgedAll() const { return assignments && judged >= *assignments; }
  double gap() const { return costSeconds > boundSeconds && costSeconds > 0 ? 1 - boundSeconds / costSeconds : 0; }
};

/// "all gpu(0)" for the alternative "all acc0".
std::string shownAlternative(llvm::StringRef name);

/// The objective that `gap` is about, and what was searched, in words.
std::string objectiveText();
std::string searchText(const PlacementReport &report);

llvm::json::Value toJson(const PlacementReport &report);

} // namespace sluice::compiler
