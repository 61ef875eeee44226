// Parses JSON from untrusted files, with limits. Errors contain the path to the invalid value.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::runtime {

using Json = nlohmann::ordered_json;

/// Parses `text`. Rejects duplicate keys and nesting deeper than 32. Error messages begin with `what`.
Json parseJson(std::string_view text, const std::string &what);

/// A value and its path, for messages such as "plan.states[3].shape: expected a list, found string". Each accessor
/// fails with such a message if the value has another type. The value must outlive the reader.
class JsonReader {
public:
  JsonReader(const Json &value, std::string path) : value_(value), path_(std::move(path)) {}

  bool has(const char *key) const;
  JsonReader at(const char *key) const;
  std::vector<JsonReader> list() const;
  /// The fields of an object, in file order.
  std::vector<std::pair<std::string, JsonReader>> fields() const;

  int64_t integer() const;
  /// An integer in [low, high].
  int64_t integer(int64_t low, int64_t high) const;
  double number() const;
  std::string string() const;
  bool isNull() const { return value_.is_null(); }
  bool isString() const { return value_.is_string(); }

  const std::string &path() const { return path_; }
  const Json &value() const { return value_; }
  [[noreturn]] void fail(const std::string &message) const;

private:
  [[noreturn]] void failType(const char *expected) const;

  const Json &value_;
  std::string path_;
};

} // namespace sluice::runtime
