#include "tools/compiler/scale/JsonFields.h"

#include "passes/Nearest.h"
#include "passes/analysis/Quantity.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/JsonFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include <cmath>
#include <fmt/format.h>

namespace sluice::compiler {

/// The text of a string; empty for other values.
static std::string textOf(const runtime::Json &value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

/// The value of a whole number, also if it is written as 4.0 or 1e6.
static std::optional<int64_t> integerOf(const runtime::Json &value) {
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(INT64_MAX))
    return std::nullopt;
  if (value.is_number_integer())
    return value.get<int64_t>();
  double number = value.is_number() ? value.get<double>() : 0.5;
  constexpr double kEnd = 0x1p63;
  bool isWhole = number >= -kEnd && number < kEnd && number == std::trunc(number);
  return isWhole ? std::optional(int64_t(number)) : std::nullopt;
}

llvm::Error JsonFaults::take() const {
  return any() ? makeError(ExitCode::Invalid, path + ": " + first) : llvm::Error::success();
}

JsonFields::JsonFields(const runtime::Json &value, std::string name, JsonFaults &faults)
    : object_(value.is_object() ? &value : nullptr), name(std::move(name)), faults(faults) {
  if (!object_)
    faults.add((this->name.empty() ? "the file" : "'" + this->name + "'") + " is " + quoteJson(value) +
               ", not an object");
}

std::string JsonFields::nameOf(llvm::StringRef field) const {
  return name.empty() ? field.str() : name + "." + field.str();
}

void JsonFields::fault(llvm::StringRef field, const llvm::Twine &what) {
  faults.add("'" + nameOf(field) + "' " + what);
}

const runtime::Json *JsonFields::find(llvm::StringRef field) {
  if (!llvm::is_contained(known, field))
    known.push_back(field);
  if (!object_)
    return nullptr;
  auto found = object_->find(std::string_view(field));
  return found == object_->end() ? nullptr : &*found;
}

const runtime::Json *JsonFields::need(llvm::StringRef field) {
  const runtime::Json *value = find(field);
  if (!value)
    fault(field, "is missing");
  return value;
}

std::string JsonFields::text(llvm::StringRef field) {
  const runtime::Json *value = need(field);
  if (!value)
    return "";
  std::string text = textOf(*value);
  if (text.empty())
    fault(field, "is " + quoteJson(*value) + ", not a text");
  return text;
}

std::string JsonFields::word(llvm::StringRef field, llvm::ArrayRef<llvm::StringRef> words, bool isRequired) {
  if (!isRequired && !has(field))
    return words.front().str();
  const runtime::Json *value = need(field);
  if (!value)
    return "";
  std::string text = textOf(*value);
  if (!llvm::is_contained(words, text))
    fault(field, "is " + quoteJson(*value) + ", none of " + llvm::join(words, ", ") + passes::didYouMean(text, words));
  return text;
}

int64_t JsonFields::integer(llvm::StringRef field, int64_t least, int64_t most) {
  const runtime::Json *value = need(field);
  if (!value)
    return least;
  std::optional<int64_t> number = integerOf(*value);
  if (!number || *number < least || *number > most)
    fault(field, fmt::format("is {}, not a whole number from {} to {}", quoteJson(*value), least, most));
  return number.value_or(least);
}

double JsonFields::number(llvm::StringRef field, double least, double most) {
  const runtime::Json *value = need(field);
  if (!value)
    return least;
  std::optional<double> number = value->is_number() ? std::optional(value->get<double>()) : std::nullopt;
  if (!number || !(*number >= least && *number <= most))
    fault(field, fmt::format("is {}, not a number from {:g} to {:g}", quoteJson(*value), least, most));
  return number.value_or(least);
}

double JsonFields::quantity(llvm::StringRef field, std::optional<double> (*parse)(llvm::StringRef),
                            llvm::StringRef what) {
  const runtime::Json *value = need(field);
  if (!value)
    return 1;
  std::optional<double> amount = parse(textOf(*value));
  if (!amount)
    fault(field, "is " + quoteJson(*value) + ", not " + what + ", or out of range");
  return amount.value_or(1);
}

double JsonFields::bytes(llvm::StringRef field) {
  return quantity(field, passes::parseBytes, "a positive number of bytes with a unit, such as \"25MiB\"");
}

double JsonFields::bytesPerSecond(llvm::StringRef field) {
  return quantity(field, passes::parseBytesPerSecond,
                  "a positive number of bytes a second with a unit, such as \"300GB/s\"");
}

double JsonFields::seconds(llvm::StringRef field) {
  return quantity(field, passes::parseSeconds, "a time with a unit, such as \"5us\"");
}

void JsonFields::object(llvm::StringRef field, llvm::function_ref<void(JsonFields &)> read) {
  const runtime::Json *value = need(field);
  if (!value)
    return;
  JsonFields fields(*value, nameOf(field), faults);
  read(fields);
  fields.finish();
}

void JsonFields::list(llvm::StringRef field, llvm::function_ref<void(JsonFields &)> read) {
  const runtime::Json *value = find(field);
  if (!value)
    return;
  if (!value->is_array())
    return fault(field, "is " + quoteJson(*value) + ", not a list");
  for (auto [i, element] : llvm::enumerate(*value)) {
    JsonFields fields(element, fmt::format("{}[{}]", nameOf(field), i), faults);
    read(fields);
    fields.finish();
  }
}

std::vector<std::pair<std::string, std::string>> JsonFields::texts(llvm::StringRef field) {
  std::vector<std::pair<std::string, std::string>> texts;
  const runtime::Json *value = find(field);
  if (!value)
    return texts;
  JsonFields fields(*value, nameOf(field), faults);
  if (fields.object_)
    for (const auto &[key, text] : fields.object_->items())
      texts.emplace_back(key, fields.text(key));
  llvm::sort(texts);
  return texts;
}

void JsonFields::finish() {
  if (!object_)
    return;
  std::vector<std::string> unknown;
  for (const auto &[key, value] : object_->items())
    if (!llvm::is_contained(known, key))
      unknown.push_back(key);
  llvm::sort(unknown);
  if (!unknown.empty())
    fault(llvm::json::fixUTF8(unknown.front()), "is no field" + passes::didYouMean(unknown.front(), known));
}

} // namespace sluice::compiler
