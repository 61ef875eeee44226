#include "tests/e2e/GoldenTraining.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

namespace sluice::test {

using nlohmann::json;

/// Bound of f64 rounding in a tensor that is mathematically zero, for example the gradient of a bias before a norm.
static constexpr double kZero = 1e-12;

std::string withMomentum(std::string text, const Golden &golden) {
  if (size_t clip = text.find(" clip ["); clip != std::string::npos)
    text.erase(clip, text.find(']', clip) + 1 - clip);
  return golden.keepsGradients() ? text : replaced(text, "momentum = 0.000000e+00", "momentum = 9.000000e-01");
}

void expectDigests(const Values &values, const json &digests, double tolerance) {
  for (auto &[name, value] : values) {
    const json &digest = digests.at(name);
    double norm = 0, expected = digest["norm"], allowed = expected < kZero ? kZero : tolerance * expected;
    for (double x : value)
      norm += x * x;
    EXPECT_NEAR(std::sqrt(norm), expected, allowed) << name;
    for (size_t i = 0; i < digest["samples"]["index"].size(); ++i)
      EXPECT_NEAR(value[digest["samples"]["index"][i]], digest["samples"]["value"][i].get<double>(), allowed)
          << name << " sample " << i;
  }
}

void expectTruth(const GoldenRun &run, const Golden &golden) {
  for (size_t step = 0; step < run.losses.size(); ++step)
    EXPECT_NEAR(run.losses[step], golden.loss(step), 1e-9 * golden.loss(step)) << "step " << step;
  expectDigests(run.final, golden.finalValues(), 1e-9);
  expectDigests(run.predicted, golden.predicted(), 1e-9);
}

double allowedError(double theirs) { return std::max(3 * theirs, 1e-6); }

/// Replaces the element of `values` with the largest difference by that of `truth`, if its gradient is a tie.
static bool settleTie(const std::string &name, std::vector<double> &values, const std::vector<double> &truth,
                      const std::vector<double> &gradient) {
  constexpr double kTie = 1e-5; // relative to the gradients' root mean square: bound of rounding for a zero gradient
  size_t worst = 0;
  double squares = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    squares += gradient[i] * gradient[i];
    if (std::fabs(values[i] - truth[i]) > std::fabs(values[worst] - truth[worst]))
      worst = i;
  }
  double size = std::fabs(gradient[worst]) / std::sqrt(squares / double(truth.size()));
  std::printf("  %s, element %zu: %.2e off, of a first gradient of %.1e of the others\n", name.c_str(), worst,
              std::fabs(values[worst] - truth[worst]), size);
  values[worst] = truth[worst];
  return size <= kTie;
}

void settleTies(GoldenRun &run, const GoldenRun &truth, const json &digests) {
  constexpr int kMostTies = 3;
  int ties = 0;
  for (auto &[name, gradient] : truth.first) {
    std::vector<double> &values = run.final.at(name);
    double allowed = allowedError(digests.at(name)["f32_rel_error"]);
    std::vector<double> settled = values;
    while (!(relativeError(settled, truth.final.at(name)) <= allowed) && ties++ < kMostTies)
      if (!settleTie(name, settled, truth.final.at(name), gradient))
        return;
    values = settled;
  }
}

std::map<std::string, double> beyondYardstick(const Values &values, const Values &truth, const json &digests) {
  std::map<std::string, double> beyond;
  for (auto &[name, value] : values) {
    double theirs = digests.at(name)["f32_rel_error"], error = relativeError(value, truth.at(name));
    std::printf("  %-14s error %.2e, PyTorch's %.2e\n", name.c_str(), error, theirs);
    if (!(error <= allowedError(theirs)))
      beyond[name] = error;
  }
  return beyond;
}

} // namespace sluice::test
