#include "runtime/base/Text.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>

namespace sluice::runtime {

static constexpr size_t longestName = 100;

/// Whether the byte is a control character, or the second byte of one: U+0080 to U+009F follow 0xc2 in UTF-8.
static bool isControl(unsigned char before, unsigned char byte) {
  return byte < 0x20 || byte == 0x7f || (before == 0xc2 && byte < 0xa0);
}

std::string printable(std::string_view text) {
  std::string result;
  unsigned char before = 0;
  for (char c : text) {
    unsigned char byte = static_cast<unsigned char>(c);
    char escape[8];
    std::snprintf(escape, sizeof escape, "\\x%02x", byte);
    if (isControl(before, byte))
      result += escape;
    else
      result += c;
    before = byte;
  }
  return result;
}

std::string quote(std::string_view name) {
  return concat("'", printable(name.substr(0, longestName)), name.size() > longestName ? "..." : "", "'");
}

NamedText splitNamed(std::string_view text, const std::vector<std::string> &names, std::string_view separator) {
  size_t length = 0;
  for (const std::string &name : names)
    if (name.size() > length && text.starts_with(name) && text.substr(name.size()).starts_with(separator))
      length = name.size();
  if (length == 0)
    length = std::min(text.find(separator), text.size());
  return {std::string(text.substr(0, length)),
          std::string(text.substr(std::min(length + separator.size(), text.size())))};
}

std::string listed(const std::vector<std::string> &names) {
  if (names.empty())
    return "none";
  std::string text;
  for (const std::string &name : names) {
    if (!text.empty())
      text += ", ";
    text += name;
  }
  return text;
}

std::string fixedText(double value, int digits) {
  char text[400];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string bytesText(uint64_t bytes) {
  static constexpr const char *units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(units)) {
    value /= 1000;
    ++unit;
  }
  return fixedText(value, unit == 0 ? 0 : value < 100 ? 1 : 0) + " " + units[unit];
}

static size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

std::vector<std::string> nearestFew(std::string_view name, const std::vector<std::string> &names, size_t most) {
  name = name.substr(0, longestName);
  size_t accepted = name.size() < 4 ? 1 : std::max<size_t>(2, name.size() / 3);
  std::multimap<size_t, std::string> found; // by distance; equal ones in the order of `names`
  for (const std::string &candidate : names) {
    bool prefix = name.size() >= 3 && candidate.starts_with(name);
    // Candidates from files may be long, and their distance then takes time.
    bool isTooLong = candidate.size() > name.size() + accepted;
    if (isTooLong && !prefix)
      continue;
    size_t distance = prefix ? 1 : editDistance(name, candidate);
    if (distance <= accepted)
      found.emplace(distance, candidate);
    if (found.size() > most)
      found.erase(std::prev(found.end()));
  }
  std::vector<std::string> sorted;
  for (auto &[distance, candidate] : found)
    sorted.push_back(std::move(candidate));
  return sorted;
}

std::string nearest(std::string_view name, const std::vector<std::string> &names) {
  std::vector<std::string> found = nearestFew(name, names, 1);
  return found.empty() ? "" : found.front();
}

std::string didYouMean(std::string_view name, const std::vector<std::string> &names) {
  std::string found = nearest(name, names);
  return found.empty() ? found : concat("; did you mean ", quote(found), "?");
}

} // namespace sluice::runtime
