// A decision and its reasons, for people and scripts: plain data, with the module's names.
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
    std::string architecture; ///< of published costs
    std::map<std::string, std::string>
        estimated; ///< kinds of its groups without measurements, and the measured kinds they are estimated from
    std::optional<int64_t> capBytes;
    int64_t peakBytes = 0, stateBytes = 0;
    std::vector<std::pair<double, int64_t>> memory; ///< without the states, over the step: seconds, bytes
  };
  struct Link {
    std::string from, to;
    passes::LinkCosts costs;
  };
  struct Alternative {
    std::string name;
    std::optional<double> seconds; ///< none if infeasible
    std::string obstacle;          ///< reason why it is infeasible
  };
  /// The effect of moving one group while all others stay.
  struct Elsewhere {
    std::string device;
    std::optional<double> workSeconds; ///< none if it cannot run there
    double addedSeconds = 0;           ///< work and copies, relative to the decision; 0 on the chosen device
  };
  struct Group {
    std::string name, kind, device, reason, source;
    std::vector<std::string> ops;
    std::vector<Elsewhere> devices;
    std::string kernel;          ///< its name in the plan; empty if it is not scheduled
    std::vector<size_t> reads;   ///< groups
    double start = -1, end = -1; ///< seconds from the start of a step; -1 if not scheduled
    int64_t stateBytes = 0;      ///< of a state
    bool isState = false;
  };
  struct Copy {
    std::string value, from, to, reason, when, source, queue;
    std::optional<size_t> producer; ///< group
    std::vector<size_t> consumers;  ///< groups that read the copy
    int64_t bytes = 0;
    double seconds = 0, start = -1, end = -1;
    bool isHidden = false; ///< whether devices compute during at least 95 % of it
  };

  std::string model, entry;
  int64_t rows = 0;
  std::vector<Device> devices;
  std::vector<Link> links;
  std::string chosen; ///< the alternative that was taken
  std::vector<Alternative> alternatives;
  double uncertainty = 0; ///< share by which a placement must beat everything on one device
  std::string remark;     ///< candidates rejected because they are within the uncertainty; empty if none
  double predictedSeconds = 0;
  double costSeconds = 0;             ///< sum of the plan's work and copies
  double boundSeconds = 0;            ///< lower bound of this sum for all placements, regardless of memory
  std::optional<int64_t> assignments; ///< number of assignments; none if it overflows
  int64_t judged = 0;                 ///< number evaluated by the model of their schedules
  std::vector<Group> groups;          ///< launches, then states
  std::vector<Copy> copies;

  /// Whether the schedules of all assignments were evaluated.
  bool judgedAll() const { return assignments && judged >= *assignments; }
  double gap() const { return costSeconds > boundSeconds && costSeconds > 0 ? 1 - boundSeconds / costSeconds : 0; }
};

/// "all gpu(0)" for the alternative "all acc0".
std::string shownAlternative(llvm::StringRef name);

/// The objective that `gap` refers to, and the extent of the search, in words.
std::string objectiveText();
std::string searchText(const PlacementReport &report);

llvm::json::Value toJson(const PlacementReport &report);

} // namespace sluice::compiler
