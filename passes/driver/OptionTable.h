// The options of a compilation as a table (sluice/compile_options.def), for flags, JSON, `info` and documentation.
#pragma once

#include "sluice/compile_options.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sluice::passes {

/// A member of CompileOptions.
using OptionMember = std::variant<bool CompileOptions::*, int CompileOptions::*, std::string CompileOptions::*,
                                  std::optional<DType> CompileOptions::*, std::optional<std::int64_t> CompileOptions::*,
                                  std::vector<std::string> CompileOptions::*, BackendSettings CompileOptions::*>;

enum class Kept {
  Model, ///< in the model, so that dumps have it
  Plan,  ///< in the plan
  Run,   ///< nowhere: it changes no code
};

/// A row of compile_options.def.
struct Option {
  OptionMember member;
  llvm::StringLiteral name, flag, values, group;
  Kept kept;
  llvm::StringLiteral phases, help;

  /// The words that the option accepts, without placeholders: {"local", "sync"}.
  llvm::SmallVector<llvm::StringRef> words() const;
  /// The value in --help: "N|env" of "N|env 1..1024".
  llvm::StringRef placeholder() const { return values.split(' ').first; }
  /// The bounds of a number: {1, 1024}.
  std::optional<std::pair<int64_t, int64_t>> bounds() const;
  /// Whether any text may be a value.
  bool takesText() const;
};

/// In the order of --help within a group.
llvm::ArrayRef<Option> allOptions();
/// By the name of the member; null if there is none.
const Option *findOption(llvm::StringRef name);

/// Sets an option from text, as on the command line; adds to a list. Returns the reason why the text is no value of the
/// option, or an empty text.
std::string setOption(CompileOptions &options, const Option &option, llvm::StringRef text);
/// The value as text, with the elements of a list separated by commas; empty for the default.
std::string textOf(const CompileOptions &options, const Option &option);
/// The reason why the option's value is invalid by itself; empty if it is valid.
std::string invalidValue(const CompileOptions &options, const Option &option);

/// The names and values of the options that differ from their defaults and are kept in one of `kept`. A file is
/// listed without its folder.
std::vector<std::pair<std::string, std::string>> changedOptions(const CompileOptions &options,
                                                                llvm::ArrayRef<Kept> kept);

/// The table of options, as Markdown.
std::string describeOptions();

} // namespace sluice::passes
