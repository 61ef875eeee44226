#include "tools/sluice/CommandLine.h"

#include "runtime/help/HelpFormatter.h"
#include "tools/compiler/Diagnostics.h"

namespace sluice::tool {

void addTalk(CLI::App &command, Talk &talk) {
  help::beginGroup(command, help::kCommon);
  command.add_flag("--json", talk.json, "Print the result as JSON");
  CLI::Option *quiet = command.add_flag("-q,--quiet", talk.quiet, "Print only results and errors");
  command.add_flag("-v,--verbose", talk.verbose, "Print the progress of the work")->excludes(quiet);
}

static std::string nearestOf(llvm::StringRef wrong, const std::vector<std::string> &known) {
  std::vector<llvm::StringRef> words(known.begin(), known.end());
  return compiler::didYouMean(wrong, words);
}

static std::vector<std::string> longFlags(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  return names;
}

static std::string unknownFlag(const CLI::App &app, llvm::ArrayRef<std::string> arguments) {
  std::vector<std::string> known = longFlags(app);
  for (const std::string &argument : arguments) {
    if (argument == "--")
      return "";
    std::string name = argument.substr(0, argument.find('='));
    if (name.starts_with("--") && std::find(known.begin(), known.end(), name) == known.end())
      return "unknown option '" + name + "'" + nearestOf(name, known);
  }
  return "";
}

std::string unknownName(const CLI::App &app, const std::vector<std::string> &arguments) {
  if (arguments.empty())
    return "";
  const std::string &first = arguments.front();
  if (first.starts_with("-"))
    return unknownFlag(app, arguments);
  std::vector<std::string> known;
  for (const CLI::App *command : app.get_subcommands([](const CLI::App *) { return true; })) {
    if (command->get_name() == first)
      return unknownFlag(*command, llvm::ArrayRef(arguments).drop_front());
    known.push_back(command->get_name());
  }
  return "unknown command '" + first + "'" + nearestOf(first, known);
}

} // namespace sluice::tool
