// The cost of collectives on virtual accelerators, whose kernel times the compiler has measured. It is predicted and
// then measured, on a network that reduces as much as it computes.
#include "passes/assign/search/Evaluation.h"
#include "passes/kernel/PreparedKernels.h"
#include "runtime/instance/ActionTimes.h"
#include "runtime/plan/CommunicationForecast.h"
#include "runtime/plan/WritePlan.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/devices/IdleSimulator.h"
#include "tests/e2e/devices/Placed.h"
#include "tests/e2e/devices/Trained.h"
#include "tests/e2e/replicas/Replicated.h"
#include "tools/compiler/placement/costs/Calibration.h"

#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <span>

namespace sluice::test {

namespace {

constexpr int64_t kRows = 8, kReplicas = 2;

struct Link {
  double bytesPerSecond, latency;

  std::string text() const { return fmt::format("{:g} GB/s, {:g} us", bytesPerSecond / 1e9, latency * 1e6); }
  std::string settings() const {
    return fmt::format("table=uneven,link={:.0f}B/s,latency={:.3f}ns", bytesPerSecond, latency * 1e9);
  }
};

/// Transfers in zero time.
constexpr Link kNoLink{1e15, 0};

Values batchOf(int64_t rows, int64_t pixels, int64_t classes) {
  std::vector<float> image = portableUniform("overlap", size_t(rows * pixels));
  std::vector<int64_t> labels = portableIntegers("overlap/label", size_t(rows), uint64_t(classes));
  return {{"image", {image.begin(), image.end()}}, {"label", {labels.begin(), labels.end()}}};
}

/// A network that is compiled once: its kernels are timed and then disabled, so that any plan with the same launches
/// can run.
class Network {
public:
  Network(const std::string &program, int64_t pixels, int64_t classes)
      : text(onReplicas(modelText(program, fmt::format("--batch {}", kRows)), kReplicas, "sim:0-1")), fused(text),
        model(text, {}, runOn(kNoLink)) {
    fused.inputs.compileTo = "fused";
    if (failed(passes::runPipeline(*fused.module, {}, fused.inputs)))
      throw std::runtime_error("the model does not fuse");
    batch = batchOf(kRows, pixels, classes);
    timeKernels();
  }

  passes::CostModel costsOf(const Link &link) const {
    passes::CostModel costs;
    costs.device("acc0") = kernels;
    for (const char *from : {"cpu", "acc0"})
      for (const char *to : {"cpu", "acc0"})
        costs.link(from, to) = {link.bytesPerSecond, link.latency, passes::CostSource::Given};
    return costs;
  }

  /// The plan for this link.
  runtime::Plan plan(const Link &link, const char *buckets) {
    mlir::OwningOpRef<mlir::ModuleOp> module(fused.module->clone());
    CompileOptions options;
    options.buckets = buckets;
    passes::PipelineInputs inputs = fused.inputs;
    inputs.compileFrom = "fused";
    inputs.compileTo = "planned";
    inputs.verifies = false;
    inputs.costs = costsOf(link);
    inputs.prepared = &prepared;
    mlir::FailureOr<passes::Lowered> planned = passes::runPipeline(*module, options, inputs);
    if (failed(planned))
      throw std::runtime_error("the model does not schedule");
    return std::move(planned->plan);
  }

  runtime::CommunicationForecast forecast(const runtime::Plan &plan, const Link &link) const {
    const runtime::Entry &step = *plan.findEntry("train_step");
    runtime::CallModel calls(plan, step, /*microbatches=*/1, isNeverHere);
    return runtime::forecastCommunication(plan, calls, passes::workSeconds(step, plan, costsOf(link)));
  }

  double predictedSeconds(const runtime::Plan &plan, const Link &link) const {
    constexpr int64_t kCalls = 24;
    const runtime::Entry &step = *plan.findEntry("train_step");
    runtime::CallModel calls(plan, step, /*microbatches=*/1, isNeverHere);
    return calls.predict(passes::workSeconds(step, plan, costsOf(link)), kCalls).seconds;
  }

  /// By the clock of the accelerators.
  double clockedSeconds(const runtime::Plan &plan, const Link &link) {
    RunOptions run = runOn(link);
    run.plan = runtime::writePlan(plan);
    model.restart(run);
    model.init(1);
    return clockSeconds(model, batch, kRows);
  }

private:
  static bool isNeverHere(size_t) { return false; } // the simulator also runs the host's work

  static RunOptions runOn(const Link &link) { return {.sim = link.settings(), .simulator = &idleSimulator()}; }

  void timeKernels() {
    model.init(1);
    runtime::Instance &program = model.program();
    const runtime::Plan &plan = model.plan();
    const runtime::Entry &step = *plan.findEntry("train_step");
    std::vector<double> seconds;
    program.team().enter([&] {
      seconds = runtime::medianOfCalls(runtime::timeActions(program, step, kRows, {.leastCalls = 1, .mostCalls = 1}));
    });
    compiler::DeviceCalibration calibration;
    std::vector<runtime::ListedAction> actions = step.allActions();
    for (size_t i = 0; i < actions.size(); ++i)
      if (const runtime::Launch *launch = actions[i].action->launch()) {
        const runtime::Kernel &kernel = plan.kernels[launch->kernel];
        calibration.kinds[kernel.kind].push_back(
            {kernel.cost.flopsFor(plan.capacity), kernel.cost.bytesFor(plan.capacity), seconds[i]});
      }
    kernels = calibration.costs();
  }

  std::string text;
  Trained fused;
  Compiled model;
  passes::PreparedKernels prepared;
  passes::DeviceCosts kernels;
  Values batch;
};

constexpr Link kSlow{2e9, 20e-6};
constexpr const char *kOthers[] = {"fewest", "each"};

/// Compares the fastest bucketing with the other policies over links of all kinds, by prediction or by the clock.
class Sweep {
public:
  Sweep(Network &network, bool isClocked) : network(network), isClocked(isClocked) {}

  /// Runs a sample of the links, or all with SLUICE_TEST_FULL.
  void run() {
    constexpr double kRates[] = {1e9, 3e9, 12e9, 50e9}, kLatencies[] = {1e-6, 5e-6, 30e-6, 200e-6};
    for (size_t rate = 0; rate < std::size(kRates); ++rate)
      for (size_t latency = 0; latency < std::size(kLatencies); ++latency)
        if (runsAll() || rate == latency)
          compare({kRates[rate], kLatencies[latency]});
    EXPECT_LT(leastShare, kFaster) << "it is nowhere faster than both";
  }

private:
  static constexpr double kSlower = 1.01, kFaster = 0.99;

  double secondsOf(const Link &link, const char *policy) {
    runtime::Plan plan = network.plan(link, policy);
    return isClocked ? network.clockedSeconds(plan, link) : network.predictedSeconds(plan, link);
  }

  void compare(const Link &link) {
    double seconds = secondsOf(link, "auto"), least = INFINITY;
    std::printf("%-18s auto %9.4f ms", link.text().c_str(), seconds * 1e3);
    for (const char *policy : kOthers) {
      double other = secondsOf(link, policy);
      EXPECT_LE(seconds, kSlower * other) << link.text() << ", " << policy;
      std::printf(", %s %9.4f ms", policy, other * 1e3);
      least = std::min(least, other);
    }
    std::printf("\n");
    leastShare = std::min(leastShare, seconds / least);
  }

  Network &network;
  bool isClocked;
  double leastShare = INFINITY; // relative to the faster of the other policies
};

} // namespace

TEST(Overlap, OfResNet50IsWhatIsPredicted) {
  if (!runsAll())
    GTEST_SKIP() << "ResNet-56 runs unless SLUICE_TEST_FULL is set";
  constexpr double kMiss = 0.05, kShare = 0.5;
  Network network("resnet50", 3 * 224 * 224, 1000);
  runtime::Plan plan = network.plan(kSlow, "auto");
  double predicted = network.forecast(plan, kSlow).exposedSeconds;
  double clocked = network.clockedSeconds(plan, kSlow) - network.clockedSeconds(plan, kNoLink);
  double apart = network.forecast(network.plan(kSlow, "each"), kSlow).seconds();
  std::printf("exposed: predicted %.3f ms, clocked %.3f ms, of %.3f ms for each value apart\n", predicted * 1e3,
              clocked * 1e3, apart * 1e3);
  EXPECT_LE(std::abs(clocked / predicted - 1), kMiss);
  EXPECT_LT(clocked, kShare * apart);
  Sweep(network, /*isClocked=*/false).run();
}

/// With the same batch, by the clock of accelerators with default rates and links. Also ResNet-50 if SLUICE_TEST_FULL
/// is set.
TEST(Overlap, LetsTwoDevicesTakeLittleMoreThanHalfTheTime) {
  constexpr double kShare = 0.55;
  struct {
    const char *program;
    int64_t rows, pixels, classes;
  } networks[] = {{"lenet", 256, 28 * 28, 10}, {"resnet50", 16, 3 * 224 * 224, 1000}};
  for (auto [program, rows, pixels, classes] : std::span(networks).first(runsAll() ? 2 : 1)) {
    std::string text = modelText(program, fmt::format("--batch {}", rows));
    Values batch = batchOf(rows, pixels, classes);
    auto secondsOn = [&, rows = rows](int64_t replicas) {
      Compiled model(onReplicas(text, replicas, fmt::format("sim:0-{}", replicas - 1)), {},
                     {.simulator = &idleSimulator()});
      model.init(1);
      return clockSeconds(model, batch, rows);
    };
    double one = secondsOn(1), two = secondsOn(2);
    std::printf("%s: %.4f ms on one device, %.4f ms on two: %.3f\n", program, one * 1e3, two * 1e3, two / one);
    EXPECT_LE(two, kShare * one) << program;
  }
}

TEST(Overlap, OfResNet56IsTheFastestThatIsPredictedAndClocked) {
  Network network("resnet56", 3 * 32 * 32, 10);
  Sweep(network, /*isClocked=*/false).run();
  Sweep(network, /*isClocked=*/true).run();
}

} // namespace sluice::test
