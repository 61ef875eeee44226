// How a kernel is launched, as its backend describes it, without references to the backend's session.
#pragma once

#include "ir/Dialect.h"
#include "sluice/backend/compile.h"
#include <optional>
#include <string>
#include <vector>

namespace sluice::passes {

struct KernelLaunch {
  struct Stage {
    std::string symbol;
    int64_t tasks, rowsPerTask;
  };

  KernelLaunch(const sluice_launch_info &info, std::string kind);
  /// Sets the attributes of `function` that describe its launch.
  void describe(ir::FunctionOp function) const;

  std::string kind;
  sluice_cost cost;
  int64_t workspaceBytes;
  std::vector<Stage> stages;           ///< of host code
  std::optional<std::string> function; ///< of the backend's code; none: host code
  std::string parameters;              ///< of this function
};

} // namespace sluice::passes
