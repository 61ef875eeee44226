#include "tests/e2e/devices/Placed.h"

#include "ir/Dialect.h"
#include "ir/Module.h"
#include "ir/Target.h"
#include "ir/text/DiagnosticText.h"
#include "ir/text/ParseGuard.h"
#include "runtime/plan/ScheduleModel.h"
#include "tests/e2e/devices/RandomGraph.h"
#include "tests/e2e/devices/Trained.h"
#include "tools/compiler/Phases.h"
#include "tools/compiler/placement/Placement.h"
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdexcept>

using namespace mlir;
using sluice::compiler::PlacementReport;
using sluice::runtime::CopyCount;

namespace sluice::test {

std::string PlacementCase::devices() const {
  std::string list = "cpu";
  for (int i = 0; i < accelerators; ++i)
    list += fmt::format(",sim:{}", i);
  return list;
}

passes::PlacementRequest PlacementCase::request() const {
  passes::PlacementRequest request;
  request.chooses = true;
  for (int i = 0; i < accelerators; ++i)
    request.links.push_back({fmt::format("sim:{}", i), bytesPerSecond, latency});
  for (size_t i = 0; i < caps.size(); ++i)
    request.caps[fmt::format("sim:{}", i)] = caps[i];
  return request;
}

std::string PlacementCase::sim(int seed) const {
  return fmt::format("seed={},link={:.0f}B/s,latency={:.3f}ns", seed, bytesPerSecond, latency * 1e9);
}

static std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module->print(out, OpPrintingFlags().enableDebugInfo());
  return text;
}

std::string everythingOn(const PlacementCase &asked, const std::string &first) {
  MLIRContext context;
  context.loadDialect<ir::SluiceDialect>();
  auto module = valueOf(ir::parseModuleText(forDevices(asked.model, asked.devices()), "model.mlir", context));
  for (auto device : module->getOps<ir::DeviceOp>())
    device.setFirst(device.getName() == first);
  ir::getModel(*module).setCopies(ir::CopyPolicy::Insert);
  return textOf(*module);
}

Placed place(const PlacementCase &asked) {
  setenv("SLUICE_CALIBRATION", asked.calibration.c_str(), /*replace=*/1);
  Trained trained(everythingOn(asked, "cpu"));
  compiler::PlacementDecision decision =
      valueOf(compiler::choosePlacement(*trained.module, {}, trained.inputs, asked.request()));
  passes::PipelineInputs inputs = trained.inputs;
  inputs.compileFrom = "train";
  inputs.compileTo = "fused";
  std::string warnings;
  valueOf(compiler::runPhases(*trained.module, {}, inputs, warnings));
  return {textOf(*trained.module), std::move(decision.report), std::move(decision.costs)};
}

double Placed::alternative(const std::string &name) const {
  return *llvm::find_if(report.alternatives, [&](const auto &known) { return known.name == name; })->seconds;
}

std::unique_ptr<Compiled> Placed::compile(const RunOptions &run) const {
  passes::PipelineInputs inputs;
  inputs.compileFrom = "fused";
  inputs.costs = costs;
  return std::make_unique<Compiled>(text, CompileOptions(), run, inputs);
}

passes::Evaluation evaluated(const std::string &model, const passes::CostModel &costs) {
  Trained trained(model);
  trained.inputs.costs = costs;
  passes::Obstacle obstacle;
  std::optional<passes::Evaluation> evaluation =
      passes::evaluate(*trained.module, {}, trained.inputs, "train_step", /*hostRunsHere=*/false, obstacle);
  if (!evaluation)
    throw std::runtime_error(obstacle.text);
  return std::move(*evaluation);
}

std::map<std::string, std::string> knownAlternatives(const PlacementReport &report) {
  std::map<std::string, std::string> known;
  for (const PlacementReport::Alternative &alternative : report.alternatives) {
    llvm::StringRef name = alternative.name;
    if (!alternative.seconds)
      continue;
    if (name.consume_front("all "))
      known[alternative.name] = name.str();
    else if (name == "as pinned")
      known[alternative.name] = "cpu";
  }
  return known;
}

void expectFastest(const PlacementCase &asked, const Placed &placed) {
  const PlacementReport &report = placed.report;
  auto isSimple = [](const std::string &name) { return llvm::StringRef(name).starts_with("all "); };
  for (const PlacementReport::Alternative &alternative : report.alternatives) {
    // A placement with a negligible gain is rejected in favor of everything on one device, and the report states this.
    double least = 1;
    if (isSimple(report.chosen) && !isSimple(alternative.name))
      least = 1 - report.uncertainty;
    if (!isSimple(report.chosen) && isSimple(alternative.name))
      least = 1 / (1 - report.uncertainty);
    if (alternative.seconds && alternative.name != report.chosen) {
      EXPECT_LE(least * report.predictedSeconds, *alternative.seconds) << alternative.name;
      EXPECT_TRUE(report.predictedSeconds <= *alternative.seconds || !report.remark.empty()) << alternative.name;
    }
  }
  constexpr double kRounding = 1 + 1e-9;
  for (const auto &[name, first] : knownAlternatives(report))
    EXPECT_LE(report.predictedSeconds, kRounding * evaluated(everythingOn(asked, first), placed.costs).seconds) << name;
}

void expectWithinCaps(const PlacementCase &asked, const Placed &placed, const Compiled &model) {
  for (size_t device = 0; device < placed.report.devices.size(); ++device)
    EXPECT_EQ(model.plan().peakBytes(device), placed.report.devices[device].peakBytes) << device;
  for (size_t i = 0; i < asked.caps.size(); ++i)
    EXPECT_LE(model.plan().peakBytes(i + 1), asked.caps[i]) << "acc" << i;
}

/// By device pair, the copies of each call.
static std::map<std::pair<size_t, size_t>, CopyCount> predictedCopies(const PlacementReport &report) {
  auto number = [&](const std::string &name) {
    return size_t(llvm::find_if(report.devices, [&](const auto &device) { return device.name == name; }) -
                  report.devices.begin());
  };
  std::map<std::pair<size_t, size_t>, CopyCount> copies;
  for (const PlacementReport::Copy &copy : report.copies)
    if (copy.start >= 0)
      copies[{number(copy.from), number(copy.to)}].add(copy.bytes);
  return copies;
}

void expectCopies(const Placed &placed, Compiled &model, const Values &inputs, int64_t rows) {
  constexpr int64_t kCalls = 3;
  runtime::Executor &executor = model.program().executor();
  model.submit("train_step", inputs, rows); // one-time copies are done
  auto before = byPair(executor.executedCopies());
  for (int64_t call = 0; call < kCalls; ++call)
    model.submit("train_step", inputs, rows);
  auto after = byPair(executor.executedCopies()), predicted = predictedCopies(placed.report);
  EXPECT_EQ(byPair(executor.engineCopies()), after);
  for (const auto &[pair, count] : after)
    predicted.try_emplace(pair);
  for (const auto &[pair, count] : predicted) {
    EXPECT_EQ(after[pair].copies - before[pair].copies, kCalls * count.copies) << pair.first << " to " << pair.second;
    EXPECT_EQ(after[pair].bytes - before[pair].bytes, kCalls * count.bytes) << pair.first << " to " << pair.second;
  }
}

double clockSeconds(Compiled &model, const Values &inputs, int64_t rows) {
  constexpr int kCalls = 12;
  runtime::Instance &program = model.program();
  program.synchronize();
  program.times().start(/*oneByOne=*/false);
  for (int call = 0; call < kCalls; ++call)
    model.submit("train_step", inputs, rows);
  program.synchronize();
  std::map<int64_t, double> ends;
  for (const runtime::WorkTime &time : program.times().take())
    if (!time.isHostClock && time.work.action)
      ends[time.work.call] = std::max(ends[time.work.call], time.end);
  std::vector<double> list;
  for (auto [call, end] : ends)
    list.push_back(end);
  return runtime::steadySeconds(list);
}

bool runsAll() { return std::getenv("SLUICE_TEST_FULL") != nullptr; }

} // namespace sluice::test
