// The form of `--help` in all programs: groups of options, wrapped at 100 columns, with the default of each option.
#pragma once

#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace sluice::help {

/// The group of options that every command of a program has, such as --help. It is printed last.
inline constexpr const char *kCommon = "Common options";

/// Prints a description, the usage, the arguments, the groups of options, the commands and the footer.
class HelpFormatter : public CLI::Formatter {
public:
  HelpFormatter() {
    column_width(30);
    label("Positionals", "Arguments");
  }

  std::string make_help(const CLI::App *app, std::string name, CLI::AppFormatMode mode) const override {
    std::string text = wrap(app->get_description(), 0) + "\n\n" + make_usage(app, name) + make_positionals(app);
    for (const std::string &group : app->get_groups())
      if (!group.empty() && group != kCommon)
        text += groupText(*app, group);
    text += groupText(*app, kCommon);
    text += make_subcommands(app, mode);
    return app->get_footer().empty() ? text : text + "\n" + app->get_footer() + "\n";
  }

  std::string make_option(const CLI::Option *option, bool isPositional) const override {
    std::string name = make_option_name(option, isPositional);
    for (size_t comma = name.find(','); comma != std::string::npos; comma = name.find(',', comma + 2))
      name.insert(comma + 1, " ");
    return row(name + make_option_opts(option), make_option_desc(option));
  }

  std::string make_subcommand(const CLI::App *command) const override {
    return row(command->get_name(), command->get_description());
  }

  /// The placeholder of the option's value, for example " FILE".
  std::string make_option_opts(const CLI::Option *option) const override {
    std::string type = option->get_type_name();
    return option->get_type_size() == 0 || type.empty() ? type : " " + type;
  }

  std::string make_option_desc(const CLI::Option *option) const override {
    std::string text = option->get_description();
    if (!option->get_default_str().empty())
      text += " (default: " + option->get_default_str() + ")";
    if (option->get_required())
      text += " (required)";
    for (const CLI::Option *other : option->get_excludes())
      text += " (not with " + other->get_name() + ")";
    return text;
  }

private:
  static constexpr size_t kColumns = 100;

  std::string groupText(const CLI::App &app, const std::string &group) const {
    // CLI11 creates the --help of a command before the command inherits option_defaults(), which has the group.
    std::vector<const CLI::Option *> options = app.get_options([&](const CLI::Option *option) {
      return option->nonpositional() && (option == app.get_help_ptr() ? kCommon : option->get_group()) == group;
    });
    return options.empty() ? "" : make_group(group, false, options);
  }

  /// A name and its description, which begins on the next line if the name is long.
  std::string row(const std::string &name, const std::string &description) const {
    std::string text = "  " + name;
    if (description.empty())
      return text + "\n";
    if (text.size() + 2 > column_width_)
      text += "\n" + std::string(column_width_, ' ');
    else
      text.append(column_width_ - text.size(), ' ');
    return text + wrap(description, column_width_) + "\n";
  }

  /// Breaks lines at blanks; lines after the first are indented.
  static std::string wrap(const std::string &text, size_t indent) {
    std::string wrapped;
    size_t column = indent;
    for (size_t at = 0; at < text.size();) {
      size_t end = std::min(text.find(' ', at), text.size());
      if (column > indent && column + 1 + (end - at) > kColumns) {
        wrapped += "\n" + std::string(indent, ' ');
        column = indent;
      } else if (column > indent) {
        wrapped += ' ';
        ++column;
      }
      wrapped += text.substr(at, end - at);
      column += end - at;
      at = end + 1;
    }
    return wrapped;
  }
};

/// Gives a program this form of help. Commands that are added later inherit it.
inline void setHelp(CLI::App &app) {
  app.formatter(std::make_shared<HelpFormatter>());
  app.option_defaults()->group(kCommon);
  app.set_help_flag("-h,--help", "Print this help and exit");
}

/// Puts the options that are added to the command from here on into a group.
inline void beginGroup(CLI::App &command, const char *group) { command.option_defaults()->group(group); }

} // namespace sluice::help
