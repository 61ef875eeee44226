#include "runtime/device/Slots.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

namespace sluice::runtime {

namespace {

/// "sim:1", or "sim" for "sim:0".
struct Item {
  std::string backend;
  int32_t ordinal = 0;

  bool operator==(const Item &) const = default;
};

} // namespace

static Item parseItem(const std::string &text) {
  size_t colon = std::min(text.find(':'), text.size());
  Item item{text.substr(0, colon)};
  const char *begin = text.data() + std::min(colon + 1, text.size()), *end = text.data() + text.size();
  auto [rest, error] = std::from_chars(begin, end, item.ordinal);
  bool isNumber = error == std::errc() && rest == end && item.ordinal >= 0;
  if (item.backend.empty() || (colon < text.size() && !isNumber))
    failUsage(concat("devices: ", quote(text), " is not a device such as sim:0"));
  return item;
}

static std::vector<Item> parseItems(const Plan &plan, const std::string &list) {
  std::vector<Item> items;
  std::istringstream stream(list);
  for (std::string text; std::getline(stream, text, ',');)
    items.push_back(parseItem(text));
  if (!items.empty() && items.front() == Item{plan.devices.front().backend, 0})
    items.erase(items.begin());
  return items;
}

std::vector<int32_t> fillSlots(const Plan &plan, const std::string &list) {
  std::vector<int32_t> ordinals;
  for (const Device &slot : plan.devices)
    ordinals.push_back(slot.compiledFor);
  if (list.empty())
    return ordinals;
  std::vector<Item> items = parseItems(plan, list);
  if (items.size() != plan.devices.size() - 1)
    failUsage(concat("devices: ", quote(list), " has ", items.size(), " accelerators, and the model was compiled for ",
                     plan.devices.size() - 1));
  for (size_t i = 0; i < items.size(); ++i) {
    const Device &slot = plan.devices[i + 1];
    std::string text = concat(items[i].backend, ":", items[i].ordinal);
    if (items[i].backend != slot.backend)
      failUnsupported(
          concat("device ", text, " cannot be ", quote(slot.name), ", which was compiled for ", quote(slot.backend)));
    if (auto here = items.begin() + static_cast<std::ptrdiff_t>(i); std::find(items.begin(), here, items[i]) != here)
      failUsage(concat("devices: ", text, " is there twice"));
    ordinals[i + 1] = items[i].ordinal;
  }
  return ordinals;
}

std::string slotText(const Device &slot, int32_t ordinal) {
  return concat(slot.name, " (", slot.backend, ":", ordinal, ")");
}

} // namespace sluice::runtime
