#include "tools/sluice/Flags.h"

#include "ir/Module.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <map>

namespace sluice::tool {

void addModel(CLI::App &command, std::string &model) {
  command.add_option("model", model, "The model, as a model program writes it")->required()->type_name("MODEL.mlir");
}

void addEmit(CLI::App &command, compiler::Emit &emit) {
  static const std::map<std::string, compiler::Emit> kinds = {{"exe", compiler::Emit::Executable},
                                                              {"so", compiler::Emit::SharedLibrary},
                                                              {"obj", compiler::Emit::Object},
                                                              {"mlir", compiler::Emit::Mlir}};
  command
      .add_option_function<std::string>(
          "--emit", [&emit](const std::string &kind) { emit = kinds.at(kind); }, "exe, so, obj or mlir")
      ->type_name("KIND")
      ->check([](const std::string &kind) {
        return kinds.contains(kind) ? "" : "'" + kind + "' is none of exe, so, obj, mlir";
      });
}

void addPlacementFlags(CLI::App &command, compiler::PlacementRequest &request) {
  command
      .add_option_function<std::string>(
          "--placement",
          [&request](const std::string &text) {
            if (text.empty())
              throw CLI::ValidationError("--placement", "auto or a file is expected");
            compiler::setPlacement(text, request);
          },
          "Choose devices where you have not: auto, or a file of `sluice place --save`")
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
          "A link instead of the measured one, as sim:0=12GB/s,5us or replicas=12GB/s,5us")
      ->type_name("LINK")
      ->allow_extra_args(false);
  command
      .add_option("--entry,--place-entry", request.entry, "The entry point whose time counts, instead of train_step")
      ->type_name("ENTRY");
}

static void addDeviceLists(CLI::App &command, compiler::CompileOptions &options, DeviceLists lists) {
  bool areSeveral = lists == DeviceLists::Several;
  CLI::Option *option = command
                            .add_option_function<std::vector<std::string>>(
                                "--devices",
                                [&options](const std::vector<std::string> &texts) {
                                  options.devices = texts.front();
                                  options.otherDevices.assign(texts.begin() + 1, texts.end());
                                },
                                areSeveral ? "What to run on, as cpu,sim:0=16GB; again: what else where that is not"
                                           : "What to run on, as cpu,sim:0, or with memory to use: cpu,sim:0=16GB")
                            ->type_name("LIST")
                            ->allow_extra_args(false);
  if (!areSeveral)
    option->expected(1);
}

void addTargetFlags(CLI::App &command, compiler::CompileOptions &options, DeviceLists lists) {
  addDeviceLists(command, options, lists);
  command.add_option("--copies", options.copies, "Copies that pins need: explicit (an error), warn or insert")
      ->type_name("POLICY");
  command
      .add_option("--target-cpu", options.cpu,
                  "Whose instructions to use: native, or as haswell or haswell:l1=32K,l2=256K")
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
          "Settings of a backend's own, as cuda=arch=sm_80+sm_90")
      ->type_name("NAME=SETTINGS")
      ->allow_extra_args(false);
  command
      .add_option_function<std::string>(
          "--dtype", [&options](const std::string &) { options.promoteF64 = true; }, "f64: compute f32 in double")
      ->type_name("f64")
      ->check([](const std::string &dtype) { return dtype == "f64" ? "" : "'" + dtype + "' is not f64"; });
  command
      .add_option("--precision", options.precision,
                  "bf16, f16: compute products, and what is safe between them, in it, from weights in f32")
      ->type_name("f32|bf16|f16");
  command.add_flag("--no-fuse", [&options](int64_t) { options.fuse = false; }, "Give every op a kernel of its own");
}

void addCodeFlags(CLI::App &command, compiler::CompileOptions &options, DeviceLists lists) {
  addTargetFlags(command, options, lists);
  command.add_option("--batch", options.capacity, "The most rows of one call, instead of the model's")
      ->type_name("ROWS")
      ->check(CLI::Range(int64_t(1), int64_t(INT32_MAX)).description(""));
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
  command
      .add_option_function<std::string>(
          "--replicas", [&options](const std::string &text) { options.replicas = parseReplicaCount(text); },
          "Copies that share the rows; --devices lists those of each in turn; env: as launched")
      ->type_name("N|env");
  command.add_option("--batch-norm", options.batchNorm, "Of replicas: by their own rows (local) or all rows (sync)")
      ->type_name("local|sync");
  command.add_option("--wire", options.wire, "What replicas reduce gradients in, where it is narrower than they are")
      ->type_name("f32|bf16");
  static const std::map<std::string, passes::BucketPolicy> policies = {{"auto", passes::BucketPolicy::Auto},
                                                                       {"fewest", passes::BucketPolicy::Fewest},
                                                                       {"each", passes::BucketPolicy::Each}};
  command
      .add_option_function<std::string>(
          "--buckets", [&options](const std::string &text) { options.buckets = policies.at(text); },
          "Collectives of replicas: as is fastest (auto), as few as can be, or one for each value")
      ->type_name("auto|fewest|each")
      ->check([](const std::string &text) {
        return policies.contains(text) ? "" : "'" + text + "' is none of auto, fewest, each";
      });
  command
      .add_option_function<int64_t>(
          "--accumulate", [&options](int64_t count) { options.accumulate = count; },
          "Do the rows of a call in K microbatches, then one step of the optimizer: less memory")
      ->type_name("K")
      ->check(CLI::Range(int64_t(1), ir::kMostMicrobatches).description(""));
  command
      .add_option_function<int64_t>(
          "--zero", [&options](int64_t stage) { options.zero = stage; },
          "ZeRO's stage: at 1, each replica keeps and updates a shard of the optimizer's state")
      ->type_name("0|1");
  command
      .add_option_function<int64_t>(
          "--deterministic", [&options](int64_t count) { options.shards = count; },
          "S shards of a call (1, 2, 4, ...): any replicas that divide S leave the same bits")
      ->type_name("S")
      ->check(CLI::Range(int64_t(1), ir::kMostMicrobatches).description(""));
}

} // namespace sluice::tool
