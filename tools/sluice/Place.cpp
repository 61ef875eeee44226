// sluice place
#include "runtime/help/HelpFormatter.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/Files.h"
#include "tools/compiler/JsonFile.h"
#include "tools/compiler/placement/report/PlacementFile.h"
#include "tools/sluice/Commands.h"
#include "tools/sluice/Flags.h"
#include "tools/sluice/place/Page.h"
#include "tools/sluice/place/Text.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace sluice::compiler;

namespace sluice::tool {

static const char kPlaceExamples[] = R"(Examples:
  sluice place lenet.mlir --devices cpu,sim:0                   device of each op, reasons, time
  sluice place lenet.mlir --devices cpu,sim:0=16GB --link sim:0=12GB/s,5us
  sluice place lenet.mlir --devices cpu,sim:0 --explain conv2d  cost on each device
  sluice place lenet.mlir --devices cpu,sim:0 --save place.json --html place.html
  sluice compile lenet.mlir --devices cpu,sim:0 --placement place.json -o lenet)";

namespace {

struct PlaceOptions {
  std::string model;
  CompileOptions compile;
  CompileTask task;
  std::string save, html, measured, explain;
};

} // namespace

/// The measured schedule in the output of `./model bench --json`, as JSON text; "null" without a file.
static llvm::Expected<std::string> readMeasured(const std::string &path) {
  if (path.empty())
    return "null";
  auto parsed = readJsonFile(path);
  if (!parsed)
    return parsed.takeError();
  auto has = [](const runtime::Json &object, const char *key) { return object.is_object() && object.contains(key); };
  if (!has(*parsed, "schedule") || !has(parsed->at("schedule"), "work") ||
      !parsed->at("schedule").at("work").is_array())
    return makeError(ExitCode::Invalid,
                     path + ": contains no schedule; `./model bench --json` of a model on several devices prints one");
  return parsed->at("schedule").dump();
}

static llvm::Error place(const PlaceOptions &options, const Talk &talk) {
  auto measured = readMeasured(options.measured);
  if (!measured)
    return measured.takeError();
  auto compiled = compileFile(options.model, options.compile, options.task);
  if (!compiled)
    return compiled.takeError();
  if (!talk.quiet)
    llvm::errs() << compiled->warnings;
  const PlacementReport &report = *compiled->placement;
  std::string explanation;
  if (!options.explain.empty()) {
    auto explained = explainPlacement(report, options.explain);
    if (!explained)
      return explained.takeError();
    explanation = std::move(*explained);
  }
  std::vector<OutputText> files;
  if (!options.save.empty())
    files.push_back({options.save, printPlacementFile(report)});
  if (!options.html.empty())
    files.push_back({options.html, place::placementPage(llvm::formatv("{0}", toJson(report)), *measured)});
  if (llvm::Error error = writeAll(files))
    return error;
  if (talk.json)
    llvm::outs() << toJson(report) << '\n';
  else if (!explanation.empty())
    llvm::outs() << explanation;
  else if (!talk.quiet)
    printPlacement(llvm::outs(), report);
  return llvm::Error::success();
}

Command addPlace(CLI::App &app) {
  CLI::App *command = app.add_subcommand("place", "Choose the device of each op, and print the reasons");
  command->footer(kPlaceExamples);
  auto options = std::make_shared<PlaceOptions>();
  options->task.compileTo = "placed";
  options->task.emit = Emit::None;
  options->compile.placement = "auto";
  addModel(*command, options->model);
  help::beginGroup(*command, "Report");
  command->add_option("--save", options->save, "Write the placement for --placement; the file may be edited")
      ->type_name("FILE");
  command->add_option("--html", options->html, "Write an HTML page with diagrams")->type_name("FILE");
  command->add_option("--measured", options->measured, "Output of the program's `bench --json`, shown in the HTML page")
      ->type_name("FILE");
  command->add_option("--explain", options->explain, "Print the cost of this op, group or source line on each device")
      ->type_name("OP");
  addOptions(*command, options->compile, {"Devices", "Code", "Placement"}, {"--no-cache"});
  return {command, [=](const Talk &talk) { return place(*options, talk); }};
}

} // namespace sluice::tool
