// sluice scale
#include "ir/Target.h"
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/Files.h"
#include "tools/compiler/placement/costs/Costs.h"
#include "tools/compiler/scale/ReadCluster.h"
#include "tools/compiler/scale/Scaling.h"
#include "tools/sluice/Commands.h"
#include "tools/sluice/Flags.h"
#include "tools/sluice/scale/Page.h"
#include "tools/sluice/scale/Text.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace sluice::compiler;

namespace sluice::tool {

static const char kScaleExamples[] = R"(Examples:
  sluice scale resnet50.mlir --cluster h100x8x128.json             on 1, 2, 4, ... 1024 accelerators
  sluice scale resnet50.mlir --cluster h100x8x128.json --strong --batch 32768
  sluice scale resnet50.mlir --cluster h100x8x128.json --replicas 8,64 --html scale.html)";

namespace {

struct ScaleOptions {
  std::string model, cluster, html;
  CompileOptions compile;
  CompileTask task;
  ScalingRequest request;
};

} // namespace

static constexpr int64_t kMostReplicas = 1'000'000'000;

/// "1,2,4": increasing numbers.
static std::vector<int64_t> parseReplicas(const std::string &list) {
  std::vector<int64_t> counts;
  for (llvm::StringRef text : llvm::split(list, ',')) {
    int64_t count = 0;
    if (text.getAsInteger(10, count) || count < 1 || count > kMostReplicas)
      throw CLI::ValidationError("--replicas", "'" + text.str() + "' is not a number of replicas");
    if (!counts.empty() && count <= counts.back())
      throw CLI::ValidationError("--replicas", "'" + list + "': each number must be larger than the one before");
    counts.push_back(count);
  }
  return counts;
}

/// The costs of the plan's devices on this machine.
static llvm::Expected<passes::CostModel> costsOfPlan(const runtime::Plan &plan) {
  std::vector<std::string> devices;
  CompileOptions options;
  options.math = plan.build.math;
  for (const runtime::Device &device : plan.devices) {
    options.backends[device.backend] = device.settings;
    devices.push_back(device.backend + ":" + std::to_string(device.compiledFor.front()));
  }
  auto target = ir::Target::parse(llvm::join(devices, ","));
  if (!target)
    return target.takeError();
  auto costs = costsOf(*target, {}, options);
  if (!costs)
    return costs.takeError();
  return std::move(costs->model);
}

static llvm::Expected<ScalingReport> predict(const ScaleOptions &options, const Talk &talk) {
  auto cluster = readCluster(options.cluster);
  if (!cluster)
    return cluster.takeError();
  auto compiled = compileFile(options.model, options.compile, options.task);
  if (!compiled)
    return compiled.takeError();
  if (!talk.quiet)
    llvm::errs() << compiled->warnings;
  auto costs = costsOfPlan(compiled->plan);
  if (!costs)
    return costs.takeError();
  auto step = replicaStepOf(compiled->plan, *costs);
  if (!step)
    return step.takeError();
  return predictScaling(*step, computeTimeOf(*step, *cluster, *costs), *cluster, options.request);
}

static llvm::Error scaleModel(const ScaleOptions &options, const Talk &talk) {
  auto report = predict(options, talk);
  if (!report)
    return report.takeError();
  if (!options.html.empty())
    if (llvm::Error error = writeWhole(scale::scalingPage(toJson(*report)), options.html))
      return error;
  if (talk.json)
    llvm::outs() << toJson(*report) << '\n';
  else if (!talk.quiet)
    printScaling(llvm::outs(), *report);
  return llvm::Error::success();
}

Command addScale(CLI::App &app) {
  CLI::App *command = app.add_subcommand("scale", "Predict training speed on many accelerators of a cluster");
  command->footer(kScaleExamples);
  auto options = std::make_shared<ScaleOptions>();
  options->task.compileTo = "planned";
  options->task.emit = Emit::None;
  addModel(*command, options->model);
  help::beginGroup(*command, "Prediction");
  command->add_option("--cluster", options->cluster, "Description of the cluster (.json)")
      ->required()
      ->type_name("FILE");
  command
      ->add_option_function<std::string>(
          "--replicas", [options](const std::string &list) { options->request.replicas = parseReplicas(list); },
          "Numbers of replicas to predict for, e.g. 1,2,4 (default: powers of two)")
      ->type_name("LIST");
  command
      ->add_option("--batch", options->request.rows,
                   "Number of rows per replica, or with --strong of all replicas (default: as in the model)")
      ->type_name("ROWS")
      ->check(help::wholeNumber(1, INT32_MAX));
  CLI::Option *strong =
      command->add_flag("--strong", options->request.isStrong, "Divide one batch among the replicas (strong scaling)");
  command->add_flag(
             "--weak", [](int64_t) {}, "Give each replica a whole batch (weak scaling, the default)")
      ->excludes(strong);
  command->add_option("--html", options->html, "Write an HTML page with diagrams")->type_name("FILE");
  addOptions(*command, options->compile, {"Devices", "Code"}, {"--batch", "--no-cache"});
  return {command, [=](const Talk &talk) { return scaleModel(*options, talk); }};
}

} // namespace sluice::tool
