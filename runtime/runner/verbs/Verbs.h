// One function per verb. Each returns the exit code of a successful run, or of a run ended by a signal.
#pragma once

#include "runtime/base/Json.h"
#include "runtime/data/Feed.h"
#include "runtime/instance/Instance.h"
#include "runtime/runner/processes/Processes.h"
#include "runtime/runner/processes/SharedSignal.h"
#include "runtime/runner/report/Means.h"
#include "runtime/runner/report/Terminal.h"
#include "runtime/runner/session/Options.h"
#include "runtime/runner/session/Session.h"

namespace sluice::runtime {

/// Keys of `--json` and `--log`. Scripts rely on them, so they keep these names although rows need not be images.
inline constexpr const char *rateKey = "images_per_s", *rowsKey = "images";
/// The JSON key for the names of figures that are means over calls.
inline constexpr const char *overCallsKey = "mean_over_calls";

int runTrain(const Options &options, Processes &processes);
int runEval(const Options &options, Processes &processes);
int runPredict(const Options &options, Processes &processes);
int runGenerate(const Options &options, Processes &processes);
int runBench(const Options &options, Processes &processes);
int runInfo(const Options &options);

/// Adds the names of the figures that are means over calls to a line of JSON, if there are any. `prefix` precedes each
/// name.
void addOverCalls(Json &line, const std::vector<NamedFigure> &figures, std::string_view prefix);
/// Prints a warning for each undefined figure. `prefix` precedes each name.
void warnOfUndefined(const std::vector<NamedFigure> &figures, std::string_view prefix);

/// Runs eval_step on all rows of `feed`. Returns nothing if `signal` ended it; `signal` may be null.
std::optional<Means> evaluate(Instance &instance, const Feed &feed, int64_t batch, Progress &progress,
                              SharedSignal *signal);

/// The part of the result that `bench --kernels` adds.
Json benchKernels(Instance &instance, const Entry &entry, int64_t rows, double seconds);

} // namespace sluice::runtime
