// What the verbs share: an instance made as the command line says, and the data folder.
#ifndef SLUICE_RUNTIME_RUNNER_SESSION_H
#define SLUICE_RUNTIME_RUNNER_SESSION_H

#include "runtime/exec/Instance.h"
#include "runtime/runner/Options.h"

#include <string>
#include <vector>

namespace sluice::runtime {

/// The plan of the artifact that this executable contains.
Plan readPlan();

/// The artifact itself, as an instance.
Instance startInstance(const Options &options);

/// Begins to note times, if `--trace` asks for them. Call when the model is ready to run.
void startTrace(Instance &instance, const Options &options);
/// What `--trace` and `--report` ask for, at the end of a verb.
void finishRun(Instance &instance, const Options &options, const std::vector<WorkTime> &times);

/// A hyperparameter and its new value.
struct Setting {
  const State *state = nullptr;
  double value = 0;
};

/// Checks `--set` against the plan; an unknown name is a usage error that lists the names.
std::vector<Setting> checkSettings(const Plan &plan, const std::vector<NamedText> &settings);
void applySettings(Instance &instance, const std::vector<Setting> &settings);

/// The folder of `--data`, else of SLUICE_DATA, else what the plan names, else the images installed beside the
/// executable.
std::string dataFolder(const Options &options, const Plan &plan);

/// Rows per step: `--batch`, at most the capacity, or the capacity.
int64_t batchRows(const Options &options, const Plan &plan);

} // namespace sluice::runtime

#endif
