// Compares the compiler's choice with all placements of small models, which are enumerated and compiled to plans. The
// choice must be at most one percent slower than the best within the caps, and the bounds must hold. The assignment
// model, which evaluates placements without compiling them, must agree with these plans. Faster links and larger caps
// must not make the choice slower.
#include "tests/e2e/devices/Assignments.h"
#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <stdexcept>

using namespace sluice::test;

namespace {

constexpr int kGraphs = 60;
/// The cases of the default run: up to 256 placements on one to three accelerators. In 19, 34 and 43 the best placement
/// differs much from all simple ones.
constexpr std::array kPart = {1, 3, 6, 19, 27, 34, 43, 50};
constexpr double kBehind = 1.01, kRounding = 1e-9;

bool isRun(int graph) { return runsAll() || std::ranges::find(kPart, graph) != kPart.end(); }

int64_t mostAssignments() { return runsAll() ? 4096 : 256; }

/// The compiler's choice; empty if it reports that no placement fits.
std::optional<Placed> choose(const PlacementCase &asked) {
  try {
    return place(asked);
  } catch (const std::runtime_error &error) {
    EXPECT_NE(std::string(error.what()).find("no placement fits"), std::string::npos) << error.what();
    return std::nullopt;
  }
}

void expectBest(const PlacementCase &asked, double behind) {
  Assignments all(asked);
  if (all.count() > mostAssignments())
    GTEST_SKIP() << all.count() << " placements are compared if SLUICE_TEST_FULL is set, up to 4096";
  Assignments::Best best = all.best();
  std::optional<Placed> chosen = choose(asked);
  ASSERT_EQ(chosen.has_value(), best.seconds.has_value());
  if (!chosen)
    return;
  const auto &report = chosen->report;
  std::printf("%s, %.3g GB/s: %.3f us chosen, %.3f us the best of %ld, %ld judged\n", asked.devices().c_str(),
              asked.bytesPerSecond / 1e9, report.predictedSeconds * 1e6, *best.seconds * 1e6, long(all.count()),
              long(report.judged));
  EXPECT_LE(report.predictedSeconds, behind * *best.seconds);
  EXPECT_GE(report.predictedSeconds, (1 - kRounding) * *best.seconds);
  EXPECT_LE(report.boundSeconds, (1 + kRounding) * best.serialSeconds) << "a bound above the best";
  for (size_t i = 0; i < asked.caps.size(); ++i)
    EXPECT_LE(report.devices[i + 1].peakBytes, asked.caps[i]);
}

PlacementCase foundGraph(const std::string &name, int accelerators, double bytesPerSecond, double latency) {
  PlacementCase asked;
  asked.model = graphNamed(name);
  asked.accelerators = accelerators;
  asked.bytesPerSecond = bytesPerSecond;
  asked.latency = latency;
  return asked;
}

class SmallPlacements : public testing::TestWithParam<int> {};
class FoundGraphs : public testing::TestWithParam<const char *> {};

} // namespace

TEST_P(SmallPlacements, AreWithinAPercentOfTheBest) {
  if (!isRun(GetParam()))
    GTEST_SKIP() << "a part of the graphs runs unless SLUICE_TEST_FULL is set";
  expectBest(smallPlacement(uint32_t(GetParam())), kBehind);
}

/// Each launch and copy, with its microseconds.
std::string workOf(const sluice::passes::Evaluation &plan) {
  std::string text;
  for (size_t i = 0; i < plan.workSeconds.size(); ++i) {
    const sluice::runtime::Action &action = *plan.entryPoint().allActions()[i].action;
    text += (action.copy() ? "copy of " + action.copy()->value : action.launch()->name) + " " +
            std::to_string(plan.workSeconds[i] * 1e6) + "; ";
  }
  return text;
}

bool hasRelayouts(const sluice::passes::Evaluation &plan) {
  for (const sluice::runtime::Launch *launch : plan.entryPoint().launches())
    if (launch->name.find("relayout") != std::string::npos)
      return true;
  return false;
}

/// Compares the assignment model's figures with plans, except for relayouts, which the graph does not contain.
void expectJudged(const PlacementCase &asked) {
  Assignments all(asked);
  int equal = 0;
  int64_t step = std::max<int64_t>(1, all.count() / (runsAll() ? 256 : 32));
  for (int64_t number = 0; number < all.count(); number += step) {
    std::vector<uint32_t> devices = all.at(number);
    sluice::passes::Evaluation plan = *all.compiled(devices).evaluation;
    sluice::passes::AssignmentFigures figures = all.judged(devices, plan);
    bool isWhole = !hasRelayouts(plan);
    equal += isWhole;
    EXPECT_LE(figures.seconds, (1 + kRounding) * plan.seconds) << testing::PrintToString(devices);
    if (isWhole) {
      EXPECT_GE(figures.seconds, (1 - kRounding) * plan.seconds)
          << testing::PrintToString(devices) << ": " << workOf(plan);
    }
  }
  EXPECT_GT(equal, 0);
}

TEST_P(SmallPlacements, AreJudgedAsTheirPlansAre) {
  if (!isRun(GetParam()))
    GTEST_SKIP() << "a part of the graphs runs unless SLUICE_TEST_FULL is set";
  expectJudged(smallPlacement(uint32_t(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Devices, SmallPlacements, testing::Range(0, kGraphs));

TEST_P(FoundGraphs, ArePlacedBest) {
  for (double bytesPerSecond : {1e9, 1e11})
    expectBest(foundGraph(GetParam(), 1, bytesPerSecond, 1e-7), 1 + kRounding);
}

TEST_P(FoundGraphs, AreJudgedAsTheirPlansAre) { expectJudged(foundGraph(GetParam(), 1, 1e9, 1e-7)); }

TEST_P(FoundGraphs, ArePlacedBestUnderACap) {
  PlacementCase asked = foundGraph(GetParam(), 1, 1e11, 1e-7);
  Assignments all(asked);
  int64_t whole = all.compiled(all.on(1)).evaluation->peakBytes[1];
  for (double share : {0.5, 0.8}) {
    asked.caps = {int64_t(share * double(whole))};
    expectBest(asked, 1 + kRounding);
  }
}

TEST_P(FoundGraphs, ArePlacedBestOnTwoAccelerators) {
  expectBest(foundGraph(GetParam(), 2, 1e11, 1e-7), 1 + kRounding);
}

TEST_P(FoundGraphs, AreNoSlowerWithAFasterLinkOrALargerCap) {
  Assignments all(foundGraph(GetParam(), 1, 1e10, 1e-6));
  int64_t whole = all.compiled(all.on(1)).evaluation->peakBytes[1];
  std::map<double, double> before; // seconds of the slower link, by share of the cap
  for (double bytesPerSecond : {1e8, 1e9, 4e9, 2e10, 1e11}) {
    PlacementCase asked = foundGraph(GetParam(), 1, bytesPerSecond, 1e-6);
    double smaller = INFINITY;
    for (double share : {0.3, 0.6, 0.9, 1.2}) {
      asked.caps = {int64_t(share * double(whole))};
      std::optional<Placed> chosen = choose(asked);
      if (!chosen)
        continue;
      double seconds = chosen->report.predictedSeconds;
      EXPECT_LE(seconds, (1 + kRounding) * smaller) << bytesPerSecond << " B/s, " << share << " of the memory";
      if (before.contains(share)) {
        EXPECT_LE(seconds, (1 + kRounding) * before[share]) << bytesPerSecond << " B/s, " << share << " of the memory";
      }
      before[share] = smaller = seconds;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, FoundGraphs, testing::Values("regress", "regress2", "r2", "r3"));
