#include "runtime/base/Json.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

#include <set>

namespace sluice::runtime {

namespace {

/// Builds a value, and rejects deep nesting and repeated keys. Json::parse with a callback could do the same, but it
/// visits all earlier elements of a list after each element, which takes quadratic time.
class StrictParser : public nlohmann::detail::json_sax_dom_parser<Json> {
  using Base = nlohmann::detail::json_sax_dom_parser<Json>;

public:
  StrictParser(Json &parsed, const std::string &what) : Base(parsed), what(what) {}

  bool start_array(size_t elements) {
    enter();
    return Base::start_array(elements);
  }
  bool end_array() {
    --depth;
    return Base::end_array();
  }
  bool start_object(size_t elements) {
    enter();
    keys.emplace_back();
    return Base::start_object(elements);
  }
  bool key(std::string &text) {
    if (!keys.back().insert(text).second)
      failInvalid(concat(what, ": the key ", quote(text), " appears twice in one object"));
    return Base::key(text);
  }
  bool end_object() {
    --depth;
    keys.pop_back();
    return Base::end_object();
  }

private:
  static constexpr int deepest = 32;

  void enter() {
    if (++depth > deepest)
      failInvalid(concat(what, ": nested deeper than ", deepest));
  }

  const std::string &what;
  int depth = 0;
  std::vector<std::set<std::string>> keys; ///< of the open objects
};

} // namespace

Json parseJson(std::string_view text, const std::string &what) {
  try {
    Json parsed;
    StrictParser parser(parsed, what);
    Json::sax_parse(text.begin(), text.end(), &parser);
    return parsed;
  } catch (const nlohmann::json::exception &error) {
    std::string_view reason = error.what(); // begins with the exception's name in brackets
    failInvalid(concat(what, ": not valid JSON: ", reason.substr(reason.find(' ') + 1)));
  }
}

bool JsonReader::has(const char *key) const { return value_.is_object() && value_.contains(key); }

JsonReader JsonReader::at(const char *key) const {
  if (!value_.is_object())
    failType("an object");
  auto found = value_.find(key);
  if (found == value_.end())
    fail(concat("has no ", quote(key)));
  return {*found, concat(path_, ".", key)};
}

std::vector<JsonReader> JsonReader::list() const {
  if (!value_.is_array())
    failType("a list");
  std::vector<JsonReader> items;
  for (size_t i = 0; i < value_.size(); ++i)
    items.emplace_back(value_[i], concat(path_, "[", i, "]"));
  return items;
}

std::vector<std::pair<std::string, JsonReader>> JsonReader::fields() const {
  if (!value_.is_object())
    failType("an object");
  std::vector<std::pair<std::string, JsonReader>> fields;
  for (const auto &[key, value] : value_.items())
    fields.emplace_back(key, JsonReader(value, concat(path_, ".", key)));
  return fields;
}

int64_t JsonReader::integer() const {
  if (!value_.is_number_integer())
    failType("an integer");
  if (value_.is_number_unsigned() && value_.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    fail("is too large");
  return value_.get<int64_t>();
}

int64_t JsonReader::integer(int64_t low, int64_t high) const {
  int64_t value = integer();
  if (value < low || value > high)
    fail(concat("is ", value, ", outside [", low, ", ", high, "]"));
  return value;
}

double JsonReader::number() const {
  if (!value_.is_number())
    failType("a number");
  return value_.get<double>();
}

std::string JsonReader::string() const {
  if (!value_.is_string())
    failType("a string");
  return value_.get<std::string>();
}

void JsonReader::fail(const std::string &message) const { failInvalid(concat(path_, ": ", message)); }

void JsonReader::failType(const char *expected) const {
  fail(concat("expected ", expected, ", found ", value_.is_null() ? "null" : value_.type_name()));
}

} // namespace sluice::runtime
