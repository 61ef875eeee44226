#include "runtime/help/Arguments.h"

#include "runtime/base/Text.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <iostream>

namespace sluice::help {

using runtime::concat;
using runtime::didYouMean;
using runtime::listed;
using runtime::quote;

/// "<file>:<line>:<column>: error: ", or "error: " of a diagnostic without a location.
static bool beginsWithLocation(std::string_view message) {
  std::string_view line = message.substr(0, message.find('\n'));
  size_t at = line.find("error: ");
  return at == 0 || (at != std::string_view::npos && at >= 3 && line.substr(at - 2, 2) == ": " &&
                     std::isdigit(static_cast<unsigned char>(line[at - 3])));
}

std::string errorText(std::string_view program, std::string_view message) {
  if (message.starts_with("error: "))
    return concat(program, ": ", message);
  return beginsWithLocation(message) ? std::string(message) : concat(program, ": error: ", message);
}

//===- commands ---------------------------------------------------------------------------------------------------===//

static std::vector<const CLI::App *> commandsOf(const CLI::App &app) {
  return app.get_subcommands([](const CLI::App *command) { return !command->get_name().empty(); });
}

static std::vector<std::string> namesOf(const std::vector<const CLI::App *> &commands) {
  std::vector<std::string> names;
  for (const CLI::App *command : commands)
    names.push_back(command->get_name());
  return names;
}

/// The command that the arguments name; null if there is none.
static const CLI::App *commandIn(const CLI::App &app, const std::vector<std::string> &arguments) {
  for (const CLI::App *command : commandsOf(app))
    if (!arguments.empty() && command->get_name() == arguments.front())
      return command;
  return nullptr;
}

/// The error of a program with commands whose arguments begin with none of them.
static std::string commandError(const CLI::App &app, const std::vector<std::string> &arguments) {
  std::vector<std::string> names = namesOf(commandsOf(app));
  if (arguments.empty() || arguments.front().starts_with("-"))
    return concat("a command is required: ", listed(names));
  std::string guess = didYouMean(arguments.front(), names);
  return concat("unknown command ", quote(arguments.front()),
                guess.empty() ? concat("; the commands are ", listed(names)) : guess);
}

//===- options ----------------------------------------------------------------------------------------------------===//

static std::vector<std::string> longNames(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  return names;
}

/// "; see `sluice compile --help`"
static std::string seeHelp(const CLI::App &app) {
  std::string parent = app.get_parent() ? app.get_parent()->get_name() + " " : "";
  return concat("; see `", parent, app.get_name(), " --help`");
}

/// An option as users write it: "--batch"; an argument by the name of its value, "MODEL.mlir".
static std::string shown(const CLI::Option &option) {
  std::string name = option.get_name();
  return name.starts_with("-") || option.get_type_name().empty() ? name : option.get_type_name();
}

/// The description, to be continued after a colon.
static std::string descriptionOf(const CLI::Option &option) {
  std::string text = option.get_description();
  if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])))
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

/// The option whose name begins a message of CLI11; null if none does.
static const CLI::Option *optionIn(const CLI::App &app, const std::string &message) {
  const CLI::Option *found = nullptr;
  for (const CLI::Option *option : app.get_options()) {
    std::string name = option->get_name();
    bool isNamed = message.starts_with(name) &&
                   (message.size() == name.size() || message[name.size()] == ':' || message[name.size()] == ' ');
    if (isNamed && (!found || name.size() > found->get_name().size()))
      found = option;
  }
  return found;
}

static std::string unknownOption(const CLI::App &app, const std::string &argument) {
  std::string name = argument.substr(0, argument.find('='));
  std::string guess = didYouMean(name, longNames(app));
  return concat("unknown option ", quote(name), guess.empty() ? seeHelp(app) : guess);
}

/// The error of the first argument that has no place; empty if there is none.
static std::string unknownArgument(const CLI::App &app, const std::vector<std::string> &rest, bool onlyOptions) {
  for (const std::string &argument : rest)
    if (argument.starts_with("-") && argument.size() > 1 && argument != "--")
      return unknownOption(app, argument);
  auto extra = std::find_if(rest.begin(), rest.end(), [](const std::string &argument) { return argument != "--"; });
  if (onlyOptions || extra == rest.end())
    return "";
  return concat("unexpected argument ", quote(*extra), seeHelp(app));
}

/// The first required argument or option that was not given.
static const CLI::Option *missingOption(const CLI::App &app) {
  for (const CLI::Option *option : app.get_options())
    if (option->get_required() && option->count() == 0)
      return option;
  return nullptr;
}

/// Two options that exclude each other and were both given.
static std::string exclusionError(const CLI::App &app) {
  for (const CLI::Option *option : app.get_options())
    for (const CLI::Option *other : option->get_excludes())
      if (option->count() > 0 && other->count() > 0)
        return concat("cannot combine ", option->get_name(), " with ", other->get_name(), "; give one of them");
  return "";
}

static bool isFlag(const CLI::Option &option) { return option.get_items_expected_max() == 0; }

static std::string countError(const CLI::Option &option) {
  if (isFlag(option))
    return concat(shown(option), " takes no value");
  if (option.count() > static_cast<size_t>(option.get_items_expected_max()))
    return concat(shown(option), " is given ", option.count(), " times; give it once");
  return concat(shown(option), " requires a value", option.get_type_name().empty() ? "" : ": ", option.get_type_name());
}

static bool looksLikeNumber(const std::string &text) {
  return !text.empty() && text.find_first_not_of("+-.0123456789") == std::string::npos;
}

static std::string conversionError(const CLI::Option &option) {
  std::string text = option.results().empty() ? "" : option.results().back();
  if (isFlag(option))
    return concat(shown(option), " takes no value, and ", quote(text), " is given");
  if (looksLikeNumber(text))
    return concat(shown(option), ": ", text, " is out of range");
  return concat(shown(option), ": ", quote(text), " is not a number");
}

std::string argumentError(const CLI::App &app, const CLI::ParseError &error,
                          const std::vector<std::string> &arguments) {
  const CLI::App *command = commandsOf(app).empty() ? &app : commandIn(app, arguments);
  if (!command) {
    std::string unknown = unknownArgument(app, app.remaining(), /*onlyOptions=*/true);
    return unknown.empty() ? commandError(app, arguments) : unknown;
  }
  auto kind = static_cast<CLI::ExitCodes>(error.get_exit_code());
  std::string message = error.what();
  std::vector<std::string> rest = command->remaining();
  if (rest.empty())
    rest = app.remaining(); // arguments after `--`
  if (std::string unknown = unknownArgument(*command, rest, kind != CLI::ExitCodes::ExtrasError); !unknown.empty())
    return unknown;
  const CLI::Option *missing = kind == CLI::ExitCodes::RequiredError ? missingOption(*command) : nullptr;
  if (missing)
    return concat(shown(*missing), " is required: ", descriptionOf(*missing), seeHelp(*command));
  if (std::string exclusion = kind == CLI::ExitCodes::ExcludesError ? exclusionError(*command) : ""; !exclusion.empty())
    return exclusion;
  static constexpr std::string_view converting = "Could not convert: ";
  bool converts = message.starts_with(converting);
  const CLI::Option *option = optionIn(*command, converts ? message.substr(converting.size()) : message);
  if (option && kind == CLI::ExitCodes::ArgumentMismatch)
    return countError(*option) + seeHelp(*command);
  if (option && kind == CLI::ExitCodes::ConversionError)
    return conversionError(*option) + seeHelp(*command);
  return message.ends_with("?") ? message : message + seeHelp(*command); // checks of values have texts of Sluice
}

std::optional<int> parse(CLI::App &app, int argc, const char *const *argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &success) {
    return app.exit(success);
  } catch (const CLI::ParseError &error) {
    std::cerr << errorText(app.get_name(), argumentError(app, error, {argv + 1, argv + argc})) << '\n';
    return 2;
  }
  return std::nullopt;
}

//===- checks of values -------------------------------------------------------------------------------------------===//

CLI::Validator wholeNumber(int64_t low, int64_t high) {
  return CLI::Validator(
      [=](const std::string &text) {
        char *end = nullptr;
        errno = 0;
        long long value = std::strtoll(text.c_str(), &end, 10);
        bool isIn = !text.empty() && *end == '\0' && errno == 0 && value >= low && value <= high;
        return isIn ? std::string() : concat(quote(text), " is not a whole number from ", low, " to ", high);
      },
      "");
}

CLI::Validator number(double low, double high) {
  return CLI::Validator(
      [=](const std::string &text) {
        char *end = nullptr;
        double value = std::strtod(text.c_str(), &end);
        bool isIn = !text.empty() && *end == '\0' && value >= low && value <= high;
        return isIn ? std::string()
                    : concat(quote(text), " is not a number from ", runtime::fixedText(low, 0), " to ",
                             runtime::fixedText(high, 0));
      },
      "");
}

CLI::Validator oneOf(std::vector<std::string> words) {
  return CLI::Validator(
      [words = std::move(words)](const std::string &text) {
        bool isIn = std::find(words.begin(), words.end(), text) != words.end();
        return isIn ? std::string() : concat(quote(text), " is none of ", listed(words), didYouMean(text, words));
      },
      "");
}

} // namespace sluice::help
