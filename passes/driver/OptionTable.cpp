#include "passes/driver/OptionTable.h"

#include "passes/Nearest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace sluice::passes {

static constexpr Option kOptions[] = {
#define SLUICE_OPTION(type, name, initial, flag, values, group, kept, phases, help)                                    \
  {&CompileOptions::name, #name, flag, values, group, Kept::kept, phases, help},
#include "sluice/compile_options.def"
#undef SLUICE_OPTION
};

llvm::ArrayRef<Option> allOptions() { return kOptions; }

const Option *findOption(llvm::StringRef name) {
  const Option *found = llvm::find_if(kOptions, [&](const Option &option) { return option.name == name; });
  return found == std::end(kOptions) ? nullptr : found;
}

static bool isPlaceholder(llvm::StringRef word) { return word.empty() || llvm::isUpper(word.front()); }

llvm::SmallVector<llvm::StringRef> Option::words() const {
  llvm::SmallVector<llvm::StringRef> all;
  placeholder().split(all, '|');
  llvm::erase_if(all, isPlaceholder);
  return all;
}

std::optional<std::pair<int64_t, int64_t>> Option::bounds() const {
  auto [low, high] = values.split(' ').second.split("..");
  std::pair<int64_t, int64_t> both;
  if (low.getAsInteger(10, both.first) || high.getAsInteger(10, both.second))
    return std::nullopt;
  return both;
}

bool Option::takesText() const {
  llvm::SmallVector<llvm::StringRef> all;
  placeholder().split(all, '|');
  return llvm::any_of(all, isPlaceholder);
}

//===- values as text ---------------------------------------------------------------------------------------------===//

#define SLUICE_DTYPE_WORD(name, number, type, text, ...) text,
static constexpr llvm::StringLiteral kDTypes[] = {SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_WORD)};
#undef SLUICE_DTYPE_WORD

/// The word for 0 in `--replicas`.
static constexpr llvm::StringLiteral kEnv = "env";

static std::string noneOf(const Option &option, llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> words = option.words();
  std::string numbers;
  if (auto bounds = option.bounds())
    numbers = ("a whole number from " + llvm::Twine(bounds->first) + " to " + llvm::Twine(bounds->second)).str();
  if (words.empty())
    return ("'" + text + "' is not " + numbers).str();
  if (!numbers.empty())
    return ("'" + text + "' is neither " + numbers + " nor " + llvm::join(words, ", ")).str();
  return ("'" + text + "' is none of " + llvm::join(words, ", ")).str() + didYouMean(text, words);
}

namespace {

/// Reads a value of each type from text. Returns the reason why the text is invalid, or an empty text.
struct Reader {
  const Option &option;
  llvm::StringRef text;

  std::string operator()(bool &) const { return "takes no value"; }
  std::string operator()(int &value) const { return text.getAsInteger(10, value) ? noneOf(option, text) : ""; }
  std::string operator()(std::string &value) const {
    if (text.empty() || (!option.takesText() && !llvm::is_contained(option.words(), text)))
      return text.empty() ? ("expected " + option.placeholder()).str() : noneOf(option, text);
    value = text;
    return "";
  }
  std::string operator()(std::optional<DType> &value) const {
    if (!llvm::is_contained(option.words(), text))
      return noneOf(option, text);
    value = DType(llvm::find(kDTypes, text) - std::begin(kDTypes));
    return "";
  }
  std::string operator()(std::optional<std::int64_t> &value) const {
    int64_t number = 0;
    auto bounds = option.bounds();
    bool isEnv = text == kEnv && llvm::is_contained(option.words(), kEnv);
    if (!isEnv && (text.getAsInteger(10, number) || (bounds && (number < bounds->first || number > bounds->second))))
      return noneOf(option, text);
    value = number;
    return "";
  }
  std::string operator()(std::vector<std::string> &value) const {
    value.push_back(text.str());
    return "";
  }
  std::string operator()(BackendSettings &value) const {
    auto [name, settings] = text.split('=');
    if (name.empty() || name == text)
      return ("'" + text + "' is not NAME=SETTINGS").str();
    if (!value.emplace(name.str(), settings.str()).second)
      return ("the settings of " + name + " are given twice").str();
    return "";
  }
};

/// Writes a value of each type.
struct Writer {
  const Option &option;

  std::string operator()(bool value) const { return value ? "on" : "off"; }
  std::string operator()(int value) const { return std::to_string(value); }
  std::string operator()(const std::string &value) const { return value; }
  std::string operator()(const std::optional<DType> &value) const {
    return value ? kDTypes[size_t(*value)].str() : std::string();
  }
  std::string operator()(const std::optional<std::int64_t> &value) const {
    if (!value)
      return "";
    bool isEnv = *value == 0 && llvm::is_contained(option.words(), kEnv);
    return isEnv ? kEnv.str() : std::to_string(*value);
  }
  std::string operator()(const std::vector<std::string> &value) const { return llvm::join(value, ","); }
  std::string operator()(const BackendSettings &value) const {
    std::vector<std::string> all;
    for (const auto &[name, settings] : value)
      all.push_back(name + "=" + settings);
    return llvm::join(all, ",");
  }
};

} // namespace

std::string setOption(CompileOptions &options, const Option &option, llvm::StringRef text) {
  return std::visit([&](auto member) { return Reader{option, text}(options.*member); }, option.member);
}

std::string textOf(const CompileOptions &options, const Option &option) {
  static const CompileOptions defaults;
  return std::visit(
      [&](auto member) {
        return options.*member == defaults.*member ? std::string() : Writer{option}(options.*member);
      },
      option.member);
}

std::string invalidValue(const CompileOptions &options, const Option &option) {
  CompileOptions scratch;
  bool isChecked = !option.words().empty() || option.bounds();
  std::string text = textOf(options, option);
  return isChecked && !text.empty() ? setOption(scratch, option, text) : "";
}

/// A file's name without its folder, which may be private.
static llvm::StringRef recorded(const Option &option, llvm::StringRef text) {
  return option.values.contains("FILE") ? llvm::sys::path::filename(text) : text;
}

std::vector<std::pair<std::string, std::string>> changedOptions(const CompileOptions &options,
                                                                llvm::ArrayRef<Kept> kept) {
  std::vector<std::pair<std::string, std::string>> changed;
  for (const Option &option : kOptions)
    if (std::string text = textOf(options, option); !text.empty() && llvm::is_contained(kept, option.kept))
      changed.emplace_back(option.name.str(), llvm::json::fixUTF8(recorded(option, text)));
  return changed;
}

std::string describeOptions() {
  static constexpr llvm::StringLiteral places[] = {"model", "plan", ""};
  std::string text = "| flag | in process | value | effect | kept in | phases |\n|---|---|---|---|---|---|\n";
  llvm::raw_string_ostream os(text);
  auto code = [](llvm::StringRef word) { return word.empty() ? std::string() : ("`" + word + "`").str(); };
  for (const Option &option : kOptions) {
    std::string value = option.placeholder().str();
    size_t at = 0;
    while ((at = value.find('|', at)) != std::string::npos)
      value.replace(at, 1, "\\|"), at += 2;
    os << "| " << code(option.flag) << " | " << code(option.name) << " | " << value << " | " << option.help << " | "
       << places[size_t(option.kept)] << " | " << option.phases << " |\n";
  }
  return text;
}

} // namespace sluice::passes
