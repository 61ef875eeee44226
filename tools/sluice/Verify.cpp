// sluice verify
#include "tools/compiler/Verify.h"
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/sluice/Commands.h"
#include "tools/sluice/Flags.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <fmt/format.h>

using namespace sluice::compiler;
namespace json = llvm::json;

namespace sluice::tool {

static const char kVerifyExamples[] = R"(Examples:
  sluice verify lenet.mlir                   every kernel, on random inputs
  sluice verify lenet.mlir --no-fuse         one kernel per op: a difference names its op
  sluice verify lenet.mlir --rows 3 --seed 7
  sluice verify lenet.mlir --devices cpu,sim:0 --placement auto)";

static std::string describe(const Difference &difference) {
  if (difference.kernel.empty())
    return fmt::format("{}: '{}' is overwritten: {:g} instead of {:g} at [{}]", difference.entry, difference.value,
                       difference.actual, difference.expected, fmt::join(difference.index, ", "));
  return fmt::format(
      "{}: kernel {} ({}){} differs from the reference: {:g} instead of {:g} at [{}] of result {}, by {:.1g} "
      "of the magnitude of its summands; {:.1g} is allowed",
      difference.entry, difference.kernel, llvm::join(difference.ops, ", "),
      difference.place.empty() ? "" : " of " + difference.place, difference.actual, difference.expected,
      fmt::join(difference.index, ", "), difference.result, difference.error, difference.tolerance);
}

static llvm::Error verify(const std::string &model, const VerifyOptions &options, const Talk &talk) {
  auto verification = verifyFile(model, options);
  if (!verification)
    return verification.takeError();
  const std::optional<Difference> &first = verification->first;
  if (talk.json) {
    json::Object result{
        {"equal", !first}, {"launches", verification->launches}, {"largest_error", verification->largestError}};
    if (first)
      result["first"] =
          json::Object{{"entry", first->entry},  {"kernel", first->kernel}, {"ops", json::Array(first->ops)},
                       {"source", first->place}, {"error", first->error},   {"tolerance", first->tolerance}};
    llvm::outs() << json::Value(std::move(result)) << '\n';
  }
  if (first)
    return makeError(ExitCode::Mismatch, describe(*first));
  if (!talk.json && !talk.quiet)
    llvm::outs() << fmt::format("{} launches of {} agree with the reference; the largest error is {:.1e} of "
                                "the magnitude of an element's summands\n",
                                verification->launches, llvm::join(verification->entries, ", "),
                                verification->largestError);
  return llvm::Error::success();
}

Command addVerify(CLI::App &app) {
  CLI::App *command = app.add_subcommand("verify", "Compare compiled kernels with the reference interpreter");
  command->footer(kVerifyExamples);
  auto model = std::make_shared<std::string>();
  auto options = std::make_shared<VerifyOptions>();
  addModel(*command, *model);
  help::beginGroup(*command, "Inputs");
  command->add_option("--rows", options->rows, "Number of rows of the batch (default: 4)")
      ->type_name("ROWS")
      ->check(help::wholeNumber(1, INT32_MAX));
  command->add_option("--seed", options->seed, "Seed of inputs and initial values (default: 0)")->type_name("N");
  addOptions(*command, options->compile, {"Devices", "Code", "Placement"});
  return {command, [=](const Talk &talk) { return verify(*model, *options, talk); }};
}

} // namespace sluice::tool
