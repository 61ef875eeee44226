#include "tools/sluice/Flags.h"

#include "ir/Module.h"
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <map>

namespace sluice::tool {

void addModel(CLI::App &command, std::string &model) {
  command.add_option("model", model, "Model written by a model program, or a dump of a phase")
      ->required()
      ->type_name("MODEL.mlir");
}

void addEmit(CLI::App &command, compiler::Emit &emit) {
  static const std::map<std::string, compiler::Emit> kinds = {{"exe", compiler::Emit::Executable},
                                                              {"so", compiler::Emit::SharedLibrary},
                                                              {"obj", compiler::Emit::Object},
                                                              {"mlir", compiler::Emit::Mlir}};
  command
      .add_option_function<std::string>(
          "--emit", [&emit](const std::string &kind) { emit = kinds.at(kind); },
          "Kind of output: executable, shared library, object file, or IR (default: exe)")
      ->type_name("exe|so|obj|mlir")
      ->check([](const std::string &kind) {
        return kinds.contains(kind) ? "" : "'" + kind + "' is none of exe, so, obj, mlir";
      });
}

void addPlacementFlags(CLI::App &command, compiler::PlacementRequest &request) {
  help::beginGroup(command, "Placement");
  command
      .add_option_function<std::string>(
          "--placement",
          [&request](const std::string &text) {
            if (text.empty())
              throw CLI::ValidationError("--placement", "auto or a file is expected");
            compiler::setPlacement(text, request);
          },
          "Devices of unpinned values: auto chooses them, a FILE of `sluice place --save` lists them (default: the "
          "first "
          "device)")
      ->type_name("auto|FILE");
  command
      .add_option_function<std::vector<std::string>>(
          "--link",
          [&request](const std::vector<std::string> &texts) {
            for (const std::string &text : texts) {
              auto link = compiler::parseLink(text);
              if (!link)
                throw CLI::ValidationError("--link", llvm::toString(link.takeError()));
              auto isSame = [&](const compiler::GivenLink &known) { return known.device == link->device; };
              if (std::any_of(request.links.begin(), request.links.end(), isSame))
                throw CLI::ValidationError("--link", "the link of " + link->device + " is given twice");
              request.links.push_back(*link);
            }
          },
          "Bandwidth and latency of a link instead of the measured ones, e.g. sim:0=12GB/s,5us or replicas=12GB/s,5us; "
          "repeatable")
      ->type_name("LINK")
      ->allow_extra_args(false);
  command
      .add_option("--place-entry", request.entry, "Entry point whose time placement minimizes (default: train_step)")
      ->type_name("ENTRY");
}

static void addDeviceLists(CLI::App &command, compiler::CompileOptions &options, DeviceLists lists) {
  help::beginGroup(command, "Devices");
  bool areSeveral = lists == DeviceLists::Several;
  CLI::Option *option =
      command
          .add_option_function<std::vector<std::string>>(
              "--devices",
              [&options](const std::vector<std::string> &texts) {
                options.devices = texts.front();
                options.otherDevices.assign(texts.begin() + 1, texts.end());
              },
              areSeveral ? "Devices to compile for, in order, with optional limits of their planned memory, e.g. "
                           "cpu,sim:0=16GB; repeat for fallback lists (default: as in the model)"
                         : "Devices to compile for, in order, with optional limits of their planned memory, e.g. "
                           "cpu,sim:0=16GB (default: as in the model)")
          ->type_name("LIST")
          ->allow_extra_args(false);
  if (!areSeveral)
    option->expected(1);
}

void addTargetFlags(CLI::App &command, compiler::CompileOptions &options, DeviceLists lists) {
  addDeviceLists(command, options, lists);
  command
      .add_option(
          "--copies", options.copies,
          "Policy for copies that pins require: explicit (report an error), warn, or insert (default: as in the model)")
      ->type_name("explicit|warn|insert");
  command
      .add_option("--target-cpu", options.cpu,
                  "CPU whose instructions are used, with optional cache sizes, e.g. haswell or haswell:l1=32K,l2=256K "
                  "(default: "
                  "native)")
      ->type_name("CPU");
  command
      .add_option_function<std::vector<std::string>>(
          "--backend",
          [&options](const std::vector<std::string> &texts) {
            for (const std::string &text : texts) {
              size_t equals = text.find('=');
              if (equals == 0 || equals == std::string::npos)
                throw CLI::ValidationError("--backend", "'" + text + "' is not NAME=SETTINGS");
              if (!options.settings.emplace(text.substr(0, equals), text.substr(equals + 1)).second)
                throw CLI::ValidationError("--backend",
                                           "the settings of " + text.substr(0, equals) + " are given twice");
            }
          },
          "Backend settings, e.g. cuda=arch=sm_80+sm_90; repeatable")
      ->type_name("NAME=SETTINGS")
      ->allow_extra_args(false);
  help::beginGroup(command, "Code");
  command
      .add_option_function<std::string>(
          "--dtype", [&options](const std::string &) { options.promoteF64 = true; },
          "Data type that replaces f32 in the whole model (default: f32)")
      ->type_name("f64")
      ->check([](const std::string &dtype) { return dtype == "f64" ? "" : "'" + dtype + "' is not f64"; });
  command
      .add_option(
          "--precision", options.precision,
          "Mixed precision: data type of matrix products and of the ops between them that are safe; weights stay f32 "
          "(default: as in the model)")
      ->type_name("f32|bf16|f16");
  command
      .add_option("--entries", options.entries,
                  "Entry points to compile, e.g. predict,eval_step; states that only others need, such as optimizer "
                  "states, are left out (default: as in the model, else all)")
      ->type_name("LIST")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_flag("--no-fuse", [&options](int64_t) { options.fuse = false; }, "Compile every op to a separate kernel");
}

void addCodeFlags(CLI::App &command, compiler::CompileOptions &options, DeviceLists lists) {
  addTargetFlags(command, options, lists);
  command.add_option("--batch", options.capacity, "Maximum number of rows of one call (default: as in the model)")
      ->type_name("ROWS")
      ->check(help::wholeNumber(1, INT32_MAX));
}

static int64_t parseReplicaCount(const std::string &text) {
  int64_t count = 0;
  if (text == "env")
    return ir::kReplicasOfLaunch;
  if (llvm::StringRef(text).getAsInteger(10, count) || count < 1 || count > ir::kMostReplicas)
    throw CLI::ValidationError("--replicas",
                               fmt::format("'{}' is neither a number from 1 to {} nor env", text, ir::kMostReplicas));
  return count;
}

void addReplicaFlags(CLI::App &command, compiler::CompileOptions &options) {
  help::beginGroup(command, "Replicas");
  command
      .add_option_function<std::string>(
          "--replicas", [&options](const std::string &text) { options.replicas = parseReplicaCount(text); },
          "Number of replicas that share the rows of a call; --devices lists the devices of each in turn; env: one "
          "replica per launched process (default: as in the model)")
      ->type_name("N|env");
  command
      .add_option("--batch-norm", options.batchNorm,
                  "BatchNorm statistics: per replica (local) or synchronized (sync) (default: as in the model, else "
                  "local)")
      ->type_name("local|sync");
  command
      .add_option("--wire", options.wire,
                  "Data type of gradient all-reduce, if narrower than the gradients (default: as in the model)")
      ->type_name("f32|bf16");
  static const std::map<std::string, passes::BucketPolicy> policies = {{"auto", passes::BucketPolicy::Auto},
                                                                       {"fewest", passes::BucketPolicy::Fewest},
                                                                       {"each", passes::BucketPolicy::Each}};
  command
      .add_option_function<std::string>(
          "--buckets", [&options](const std::string &text) { options.buckets = policies.at(text); },
          "Gradient bucketing: auto (fastest predicted), fewest, or one bucket per tensor (each) (default: auto)")
      ->type_name("auto|fewest|each")
      ->check([](const std::string &text) {
        return policies.contains(text) ? "" : "'" + text + "' is none of auto, fewest, each";
      });
  command
      .add_option_function<int64_t>(
          "--accumulate", [&options](int64_t count) { options.accumulate = count; },
          "Number of microbatches of a call, followed by one optimizer step; more need less memory (default: as in "
          "the model)")
      ->type_name("K")
      ->check(help::wholeNumber(1, ir::kMostMicrobatches));
  command
      .add_option_function<int64_t>(
          "--zero", [&options](int64_t level) { options.zero = level; },
          "ZeRO level; at 1, each replica keeps and updates a shard of the optimizer state (default: as in the "
          "model)")
      ->type_name("0|1");
  command
      .add_option_function<int64_t>(
          "--deterministic", [&options](int64_t count) { options.shards = count; },
          "Number of shards of a call, a power of two; every number of replicas that divides it gives bit-identical "
          "results (default: as in the model)")
      ->type_name("S")
      ->check(help::wholeNumber(1, ir::kMostMicrobatches));
}

} // namespace sluice::tool
