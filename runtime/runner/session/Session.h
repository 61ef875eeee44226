// What the verbs share: an instance made as the command line says, and the data.
#pragma once

#include "runtime/data/OpenData.h"
#include "runtime/instance/Instance.h"
#include "runtime/runner/session/Options.h"

#include <string>
#include <vector>

namespace sluice::runtime {

class Feed;

/// What an instance is made with.
InstanceOptions instanceOptions(const Options &options);

/// The variant that runs, as an instance; of several processes with the replica of this one. Of several variants it says which.
Instance startInstance(const Options &options, ProcessGroup *processes);

/// Fails unless a verb that trains nothing has weights: of `--weights`, or data that all parameters begin with.
void requireWeights(const char *verb, const Options &options, const Plan &plan);

/// A hyperparameter and its new value.
struct Setting {
  const State *state = nullptr;
  double value = 0;
};

/// Checks `--set` against the plan. Throws a usage error for an unknown name, with a list of the names, and for a
/// learning rate below 0.
std::vector<Setting> checkSettings(const Plan &plan, const std::vector<NamedText> &settings);
void applySettings(Instance &instance, const std::vector<Setting> &settings);

/// Sets the initial states: the results of `init` for a seed, then the weights of `--weights`, then the values of
/// `--set`. Reports weights of other types.
void beginStates(Instance &instance, const Options &options, uint64_t seed, const std::vector<Setting> &settings);

/// Starts recording times if `--trace` is given. Call when the model is ready to run.
void startTrace(Instance &instance, const Options &options);
/// Writes the results that `--trace` and `--report` request, at the end of a verb.
void finishRun(Instance &instance, const Options &options, const std::vector<WorkTime> &times);

/// What `--data` names, else SLUICE_DATA, else the plan, as runtime/data/DATA.md says.
std::string dataPath(const Options &options, const Plan &plan);

/// The rows to train on.
Table trainingTable(const DataPath &data);
/// The rows to evaluate on: of `--test-data`, else the test part of `data`, if it has one.
std::optional<Table> testTable(const DataPath &data, const Options &options);
/// The rows that `eval` evaluates on: the test part, or all of what has no parts.
Table evaluationTable(const DataPath &data);

/// Rows per step, over all replicas: `--batch`, at most the plan's, or the plan's; what calls have, where that is
/// fixed.
int64_t batchRows(const Options &options, const Plan &plan, int64_t fixedRows = 0);
/// Prints which rows no call has, where calls have a fixed number of them, and which files no row is of.
void tellWhatIsLeftOut(const Options &options, const Feed &feed, const char *rows);

} // namespace sluice::runtime
