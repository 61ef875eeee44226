#include "tools/compiler/scale/JsonFields.h"

#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/placement/Quantity.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <fmt/format.h>

namespace json = llvm::json;

namespace sluice::compiler {

/// A value as its file has it, as far as a message should tell.
static std::string quoteValue(const json::Value &value) {
  constexpr size_t kMost = 60;
  std::string text = llvm::formatv("{0}", value);
  return text.size() <= kMost ? text : json::fixUTF8(llvm::StringRef(text).take_front(kMost)) + "...";
}

llvm::Error JsonFaults::take() const {
  return any() ? makeError(ExitCode::Invalid, path + ": " + first) : llvm::Error::success();
}

JsonFields::JsonFields(const json::Value &value, std::string name, JsonFaults &faults)
    : object_(value.getAsObject()), name(std::move(name)), faults(faults) {
  if (!object_)
    faults.add((this->name.empty() ? "the file" : "'" + this->name + "'") + " is " + quoteValue(value) +
               ", not an object");
}

std::string JsonFields::nameOf(llvm::StringRef field) const {
  return name.empty() ? field.str() : name + "." + field.str();
}

void JsonFields::fault(llvm::StringRef field, const llvm::Twine &what) {
  faults.add("'" + nameOf(field) + "' " + what);
}

const json::Value *JsonFields::find(llvm::StringRef field) {
  if (!llvm::is_contained(known, field))
    known.push_back(field);
  return object_ ? object_->get(field) : nullptr;
}

const json::Value *JsonFields::need(llvm::StringRef field) {
  const json::Value *value = find(field);
  if (!value)
    fault(field, "is missing");
  return value;
}

std::string JsonFields::text(llvm::StringRef field) {
  const json::Value *value = need(field);
  if (!value)
    return "";
  auto text = value->getAsString();
  if (!text || text->empty())
    fault(field, "is " + quoteValue(*value) + ", not a text");
  return text.value_or("").str();
}

std::string JsonFields::word(llvm::StringRef field, llvm::ArrayRef<llvm::StringRef> words, bool isRequired) {
  if (!isRequired && !has(field))
    return words.front().str();
  const json::Value *value = need(field);
  if (!value)
    return "";
  std::string text = value->getAsString().value_or("").str();
  if (!llvm::is_contained(words, text))
    fault(field, "is " + quoteValue(*value) + ", none of " + llvm::join(words, ", ") + didYouMean(text, words));
  return text;
}

int64_t JsonFields::integer(llvm::StringRef field, int64_t least, int64_t most) {
  const json::Value *value = need(field);
  if (!value)
    return least;
  std::optional<int64_t> number = value->getAsInteger();
  if (!number || *number < least || *number > most)
    fault(field, fmt::format("is {}, not a whole number from {} to {}", quoteValue(*value), least, most));
  return number.value_or(least);
}

double JsonFields::number(llvm::StringRef field, double least, double most) {
  const json::Value *value = need(field);
  if (!value)
    return least;
  std::optional<double> number = value->getAsNumber();
  if (!number || !(*number >= least && *number <= most))
    fault(field, fmt::format("is {}, not a number from {:g} to {:g}", quoteValue(*value), least, most));
  return number.value_or(least);
}

double JsonFields::quantity(llvm::StringRef field, std::optional<double> (*parse)(llvm::StringRef),
                            llvm::StringRef what) {
  const json::Value *value = need(field);
  if (!value)
    return 1;
  auto text = value->getAsString();
  std::optional<double> amount = text ? parse(*text) : std::nullopt;
  if (!amount)
    fault(field, "is " + quoteValue(*value) + ", not " + what + ", or out of range");
  return amount.value_or(1);
}

double JsonFields::bytes(llvm::StringRef field) {
  return quantity(field, parseBytes, "a positive number of bytes with a unit, such as \"25MiB\"");
}

double JsonFields::bytesPerSecond(llvm::StringRef field) {
  return quantity(field, parseBytesPerSecond, "a positive number of bytes a second with a unit, such as \"300GB/s\"");
}

double JsonFields::seconds(llvm::StringRef field) {
  return quantity(field, parseSeconds, "a time with a unit, such as \"5us\"");
}

void JsonFields::object(llvm::StringRef field, llvm::function_ref<void(JsonFields &)> read) {
  const json::Value *value = need(field);
  if (!value)
    return;
  JsonFields fields(*value, nameOf(field), faults);
  read(fields);
  fields.finish();
}

void JsonFields::list(llvm::StringRef field, llvm::function_ref<void(JsonFields &)> read) {
  const json::Value *value = find(field);
  if (!value)
    return;
  const json::Array *array = value->getAsArray();
  if (!array)
    return fault(field, "is " + quoteValue(*value) + ", not a list");
  for (auto [i, element] : llvm::enumerate(*array)) {
    JsonFields fields(element, fmt::format("{}[{}]", nameOf(field), i), faults);
    read(fields);
    fields.finish();
  }
}

std::vector<std::pair<std::string, std::string>> JsonFields::texts(llvm::StringRef field) {
  std::vector<std::pair<std::string, std::string>> texts;
  const json::Value *value = find(field);
  if (!value)
    return texts;
  JsonFields fields(*value, nameOf(field), faults);
  if (fields.object_)
    for (const auto &[key, text] : *fields.object_)
      texts.emplace_back(key.str(), fields.text(key));
  llvm::sort(texts);
  return texts;
}

void JsonFields::finish() {
  if (!object_)
    return;
  std::vector<llvm::StringRef> unknown;
  for (const auto &[key, value] : *object_)
    if (llvm::StringRef field = key; !llvm::is_contained(known, field))
      unknown.push_back(field);
  llvm::sort(unknown);
  if (!unknown.empty())
    fault(json::fixUTF8(unknown.front()), "is no field" + didYouMean(unknown.front(), known));
}

} // namespace sluice::compiler
