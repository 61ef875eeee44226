#include "tools/sluice/Flags.h"

#include "passes/driver/OptionTable.h"
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"
#include "llvm/ADT/STLExtras.h"

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

/// CLI11 takes the next flag as the value of a flag that may be repeated.
static void checkIsNoFlag(const passes::Option &option, const std::string &text) {
  if (text.starts_with("--"))
    throw CLI::ValidationError(option.flag.str(), "requires a value: " + option.placeholder().str());
}

/// The flag of one option.
static CLI::Option *addOption(CLI::App &command, CompileOptions &options, const passes::Option &option) {
  std::string flag = option.flag.str(), help = option.help.str();
  auto set = [&options, &option](llvm::StringRef text) {
    if (std::string reason = passes::setOption(options, option, text); !reason.empty())
      throw CLI::ValidationError(option.flag.str(), reason);
  };
  if (auto *member = std::get_if<bool CompileOptions::*>(&option.member))
    return command.add_flag(
        flag,
        [&options, member = *member](int64_t count) { options.*member = (CompileOptions().*member) != (count > 0); },
        help);
  if (std::holds_alternative<std::vector<std::string> CompileOptions::*>(option.member) ||
      std::holds_alternative<BackendSettings CompileOptions::*>(option.member))
    return command
        .add_option_function<std::vector<std::string>>(
            flag,
            [set, &option](const std::vector<std::string> &texts) {
              for (const std::string &text : texts) {
                checkIsNoFlag(option, text);
                set(text);
              }
            },
            help)
        ->type_name(option.placeholder().str())
        ->allow_extra_args(false);
  return command.add_option_function<std::string>(flag, set, help)->type_name(option.placeholder().str());
}

void addOptions(CLI::App &command, CompileOptions &options, llvm::ArrayRef<llvm::StringRef> groups,
                llvm::ArrayRef<llvm::StringRef> without) {
  for (llvm::StringRef group : groups) {
    help::beginGroup(command, group.data()); // of a literal
    for (const passes::Option &option : passes::allOptions())
      if (option.group == group && !llvm::is_contained(without, option.flag)) {
        CLI::Option *added = addOption(command, options, option);
        if (option.name == "entries")
          added->delimiter(',');
      }
  }
}

void addDeviceLists(CLI::App &command, CompileOptions &options, compiler::CompileTask &task) {
  const passes::Option &option = *passes::findOption("devices");
  help::beginGroup(command, option.group.data());
  std::string help = option.help.str();
  help.insert(help.find(" (default"), "; repeat for fallback lists");
  command
      .add_option_function<std::vector<std::string>>(
          option.flag.str(),
          [&options, &task, &option](const std::vector<std::string> &texts) {
            for (const std::string &text : texts) {
              checkIsNoFlag(option, text);
              if (text.empty())
                throw CLI::ValidationError(option.flag.str(), ("expected " + option.placeholder()).str());
            }
            options.devices = texts.front();
            task.otherDevices.assign(texts.begin() + 1, texts.end());
          },
          help)
      ->type_name(option.placeholder().str())
      ->allow_extra_args(false);
}

} // namespace sluice::tool
