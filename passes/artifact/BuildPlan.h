// The plan that a planned module becomes: see runtime/plan/PLAN.md.
#pragma once

#include "ir/Target.h"
#include "passes/backend/Backend.h"
#include "runtime/plan/Plan.h"
#include "sluice/backend/compile.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sluice::passes {

/// A plan, and the symbols of the stage functions that it numbers.
struct BuiltPlan {
  runtime::Plan plan;
  std::vector<std::string> stages;
};

/// Of a backend, in the order of the artifact's sections.
struct DeviceCode {
  std::string backend, blob;
};

/// Data that states begin with, as whoever reads files has found it.
struct InitialValues {
  std::map<std::string, runtime::InitialData> of; ///< by the states' names
  std::string constants;                          ///< the artifact's own, which have those that are small
  std::string file;                               ///< has the others, as plans name it
};

/// What a plan says beside the module.
struct PlanSetting {
  const ir::Target &target;
  const sluice_target_info &host; ///< the CPU that host code was made for
  llvm::StringRef backendFolder;  ///< where executables look for the backends of their accelerators
  llvm::StringRef dataPath;       ///< where the model's default data was found; empty: by the name that it has there
  llvm::ArrayRef<DeviceCode> code;
  BackendSettings settings = {};                      ///< that compile halves were given
  std::optional<runtime::GivenLink> replicaLink = {}; ///< if one was given
  const InitialValues *values = nullptr;              ///< null: states begin with no data
};

/// The plan of a module after `planned`.
BuiltPlan buildPlan(mlir::ModuleOp module, const PlanSetting &setting);

} // namespace sluice::passes
