// Errors in the arguments of a program: one form in all programs, instead of the texts of CLI11.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::help {

/// The text that a program prints for an error: "sluice: error: cannot read a.mlir". A diagnostic that begins with its
/// own location stays unchanged: "lenet.cpp:20:59: error: ...".
std::string errorText(std::string_view program, std::string_view message);

/// The error of arguments that `app` could not parse, and how to fix them: "unknown option '--emitt'; did you mean
/// '--emit'?"
std::string argumentError(const CLI::App &app, const CLI::ParseError &error, const std::vector<std::string> &arguments);

/// Parses the arguments of a program without commands, and prints requested help or the error. Returns the exit code of
/// a program that must end: 0 after --help, 2 after a usage error.
std::optional<int> parse(CLI::App &app, int argc, const char *const *argv);

/// A check for a whole number from `low` to `high`. It adds no text to the help.
CLI::Validator wholeNumber(int64_t low, int64_t high);
/// The same for numbers with a fraction; NaN is refused.
CLI::Validator number(double low, double high);
/// A check for one of these words.
CLI::Validator oneOf(std::vector<std::string> words);

} // namespace sluice::help
