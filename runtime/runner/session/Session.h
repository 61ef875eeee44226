// Shared code of the verbs: the instance with the command line's options, and the data.
#pragma once

#include "runtime/data/OpenData.h"
#include "runtime/instance/Instance.h"
#include "runtime/runner/session/Options.h"

#include <string>
#include <vector>

namespace sluice::runtime {

class Feed;

/// The part of the command line that an instance needs.
InstanceOptions instanceOptions(const Options &options);

/// Starts an instance of the chosen variant; with several processes, of this process's replica. Prints the choice if
/// there are several variants.
Instance startInstance(const Options &options, ProcessGroup *processes);

/// Throws a usage error unless there are weights: from `--weights`, or initial data for all parameters. For verbs that
/// do not train.
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

/// The path of given data: the path itself, or a data set of this name beside the model's data or in the installation.
std::string findData(const std::string &given, const Plan &plan);
/// The path from `--data`, else SLUICE_DATA, else the plan; see runtime/data/DATA.md.
std::string dataPath(const Options &options, const Plan &plan);

/// The training rows.
Table trainingTable(const DataPath &data);
/// The evaluation rows: those of `--test-data`, else the test part of `data`, if present.
std::optional<Table> testTable(const DataPath &data, const Options &options, const Plan &plan);
/// The rows of `eval`: the test part, or all rows of data without parts.
Table evaluationTable(const DataPath &data);

/// Rows per step over all replicas: the calls' fixed number of rows, else `--batch` up to the plan's limit, else the
/// plan's limit.
int64_t batchRows(const Options &options, const Plan &plan, int64_t fixedRows = 0);
/// Prints the notes on the data, for example on files that are left out. If calls have a fixed number of rows, also
/// prints how many rows after the last whole call are left out. `rows` is their name: "test rows".
void tellWhatIsLeftOut(const Options &options, const Feed &feed, const char *rows);

} // namespace sluice::runtime
