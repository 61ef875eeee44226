// Compares published measurements with the predictions of the model of data-parallel steps. The compute time of a step
// is fitted to the points that are marked as fitted; every other point is predicted.
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/scale/ComputeTime.h"
#include "tools/scale/PublishedFile.h"
#include "llvm/Support/raw_ostream.h"
#include <CLI/CLI.hpp>
#include <cmath>
#include <fmt/format.h>
#include <map>

using namespace sluice::compiler;
using namespace sluice::scale;

namespace {

/// A device's step times in one case.
struct DeviceTimes {
  std::vector<TimedRows> points;
  double fixed = 0; ///< used if there is only one point

  double at(int64_t rows) const { return timeThrough(points, fixed)(rows); }
};

struct Outcome {
  const PublishedCase *published;
  const PublishedPoint *point;
  double measured, predicted, linear; ///< rows per second
  bool isScored;

  double error() const { return predicted / measured - 1; }
};

using TimesByCase = std::map<std::string, DeviceTimes>;

} // namespace

/// The step time of a single device that explains a published step on several devices.
static double timeAlone(const PublishedCase &published, const PublishedPoint &point) {
  double seconds = double(point.replicas * point.rows) / point.rowsPerSecond;
  double low = 0, high = seconds;
  for (int step = 0; step < 80; ++step) {
    double middle = (low + high) / 2;
    bool isShort = predictStep(published.cluster, published.gradients, middle, point.replicas).seconds() < seconds;
    (isShort ? low : high) = middle;
  }
  return low;
}

static DeviceTimes fitTimes(const PublishedCase &published, const TimesByCase &others) {
  DeviceTimes times;
  if (!published.timesOf.empty())
    return others.at(published.timesOf);
  for (const PublishedPoint &point : published.points)
    if (point.isFitted)
      times.points.push_back({point.rows, timeAlone(published, point)});
  if (!published.fixedOf.empty())
    times.fixed = others.at(published.fixedOf).at(0);
  return times;
}

static Outcome predictPoint(const PublishedCase &published, const PublishedPoint &point, const DeviceTimes &times) {
  auto rows = double(point.replicas * point.rows);
  double alone = times.at(point.rows);
  Outcome outcome{&published, &point, point.rowsPerSecond, 0, 0, !point.isFitted && !published.calibrates};
  outcome.predicted = rows / predictStep(published.cluster, published.gradients, alone, point.replicas).seconds();
  if (point.efficiency > 0)
    outcome.measured = point.efficiency * rows / alone;
  const TimedRows &largest = times.points.back();
  outcome.linear = double(point.replicas) * double(largest.rows) / largest.seconds;
  return outcome;
}

static std::vector<Outcome> predictAll(const std::vector<PublishedCase> &cases) {
  std::vector<Outcome> outcomes;
  TimesByCase times;
  for (const PublishedCase &published : cases) {
    times[published.name] = fitTimes(published, times);
    llvm::sort(times[published.name].points, [](const auto &a, const auto &b) { return a.rows < b.rows; });
    for (const PublishedPoint &point : published.points)
      outcomes.push_back(predictPoint(published, point, times[published.name]));
  }
  return outcomes;
}

/// The root mean squared error of the cases to which the shared constants are fitted.
static double calibrationError(std::vector<PublishedCase> cases, double straggler, double contention) {
  for (PublishedCase &published : cases) {
    published.cluster.straggler = straggler;
    published.cluster.contention = contention;
  }
  double sum = 0, count = 0;
  for (const Outcome &outcome : predictAll(cases))
    if (!outcome.point->isFitted) {
      sum += outcome.error() * outcome.error();
      ++count;
    }
  return std::sqrt(sum / count);
}

static void printFit(std::vector<PublishedCase> cases) {
  llvm::erase_if(cases, [](const PublishedCase &published) { return !published.calibrates; });
  double best = HUGE_VAL, straggler = 0, contention = 0;
  for (int i = 0; i <= 60; ++i)
    for (int j = 0; j <= 20; ++j)
      if (double error = calibrationError(cases, i * 0.001, j * 0.05); error < best)
        best = error, straggler = i * 0.001, contention = j * 0.05;
  llvm::outs() << fmt::format("fitted: straggler {:.3f}, contention {:.2f}; error {:.1f} %\n", straggler, contention,
                              100 * best);
  llvm::outs() << fmt::format("in use: straggler {:.3f}, contention {:.2f}; error {:.1f} %\n", kFittedStraggler,
                              kFittedContention, 100 * calibrationError(cases, kFittedStraggler, kFittedContention));
}

/// Prints the points; returns the mean absolute error of the predicted ones, in percent.
static double printOutcomes(const std::vector<Outcome> &outcomes) {
  llvm::outs() << fmt::format("{:<34} {:>8} {:>6} {:>11} {:>11} {:>8}\n", "", "replicas", "batch", "published",
                              "predicted", "error");
  double sum = 0, linear = 0;
  int count = 0;
  for (const Outcome &outcome : outcomes) {
    llvm::outs() << fmt::format("{:<34} {:>8} {:>6} {:>11.0f} {:>11.0f} {:>+6.1f} %{}\n", outcome.published->name,
                                outcome.point->replicas, outcome.point->rows, outcome.measured, outcome.predicted,
                                100 * outcome.error(),
                                outcome.point->isFitted         ? "  fitted: device"
                                : outcome.published->calibrates ? "  fitted: constants"
                                                                : "");
    if (!outcome.isScored)
      continue;
    sum += std::abs(outcome.error());
    linear += std::abs(outcome.linear / outcome.measured - 1);
    ++count;
  }
  llvm::outs() << fmt::format("mean absolute error of {} points that were not fitted: {:.1f} %; of linear scaling: "
                              "{:.1f} %\n",
                              count, 100 * sum / count, 100 * linear / count);
  return 100 * sum / count;
}

int main(int argc, char **argv) {
  CLI::App app("Compares published measurements of data-parallel training with predictions.", "published");
  std::string data, clusters;
  double most = HUGE_VAL;
  bool fits = false;
  sluice::help::setHelp(app);
  app.add_option("data", data, "File of measurements, such as published.json")->required()->type_name("DATA.json");
  app.add_option("clusters", clusters, "Folder of the clusters' files")->required()->type_name("DIR");
  sluice::help::beginGroup(app, "Comparison");
  app.add_option("--most", most, "Maximum mean absolute error in percent; fail if it is larger (default: no limit)")
      ->type_name("PERCENT");
  app.add_flag("--fit", fits, "Fit the shared constants again, and print them next to the constants in use");
  if (std::optional<int> code = sluice::help::parse(app, argc, argv))
    return *code;
  auto cases = readPublished(data, clusters);
  if (!cases) {
    Failure failure = takeFailure(cases.takeError());
    llvm::errs() << sluice::help::errorText("published", failure.text) << '\n';
    return int(failure.code);
  }
  if (fits)
    printFit(*cases);
  double error = printOutcomes(predictAll(*cases));
  if (error <= most)
    return int(ExitCode::Fine);
  llvm::errs() << fmt::format("published: error: the mean absolute error is {:.2f} %, more than {:g} %\n", error, most);
  return int(ExitCode::Mismatch);
}
