// The plan of a planned module: see runtime/plan/PLAN.md.
#pragma once

#include "ir/Target.h"
#include "passes/backend/Backend.h"
#include "runtime/plan/Plan.h"
#include "sluice/backend/compile.h"
#include "sluice/compile_options.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sluice::passes {

/// A plan, and the symbols of its stage functions by number.
struct BuiltPlan {
  runtime::Plan plan;
  std::vector<std::string> stages;
};

/// Device code of one backend, in the order of the artifact's sections.
struct DeviceCode {
  std::string backend, blob;
};

/// Initial data of states. The caller reads the files.
struct InitialValues {
  std::map<std::string, runtime::InitialData> of; ///< by state name
  std::string constants;                          ///< small initial values, stored in the artifact
  std::string file;                               ///< file of all others, as named in plans
};

/// Inputs of a plan other than the module.
struct PlanSetting {
  const ir::Target &target;
  const sluice_target_info &host; ///< the CPU that host code is compiled for
  llvm::StringRef backendFolder;  ///< where executables search for the backends of their accelerators
  llvm::StringRef dataPath;       ///< where the model's default data was found; empty: the name in the model
  llvm::ArrayRef<DeviceCode> code;
  const CompileOptions &options;
  std::optional<runtime::GivenLink> replicaLink = {}; ///< if one was given
  const InitialValues *values = nullptr;              ///< null: no initial data
};

/// The plan of a module after `planned`.
BuiltPlan buildPlan(mlir::ModuleOp module, const PlanSetting &setting);

} // namespace sluice::passes
