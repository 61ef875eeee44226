#include "runtime/plan/DeviceName.h"

#include <algorithm>

namespace sluice::runtime {

static constexpr std::string_view acceleratorPrefix = "acc";

static bool isDigit(char character) { return character >= '0' && character <= '9'; }

/// The length of "acc0" at the beginning of a name; 0 if it begins otherwise.
static size_t acceleratorLength(std::string_view name) {
  if (!name.starts_with(acceleratorPrefix))
    return 0;
  auto end = std::find_if_not(name.begin() + acceleratorPrefix.size(), name.end(), isDigit);
  auto length = static_cast<size_t>(end - name.begin());
  bool isWhole = end == name.end() || *end == '.';
  return isWhole && length > acceleratorPrefix.size() ? length : 0;
}

std::string shownDevice(std::string_view name) {
  size_t length = acceleratorLength(name);
  if (length == 0)
    return std::string(name);
  std::string number(name.substr(acceleratorPrefix.size(), length - acceleratorPrefix.size()));
  return "gpu(" + number + ")" + std::string(name.substr(length));
}

std::string shownDevice(std::string_view name, std::string_view spelling) {
  std::string shown = shownDevice(name);
  return acceleratorLength(name) == 0 ? shown : shown + " (" + std::string(spelling) + ")";
}

} // namespace sluice::runtime
