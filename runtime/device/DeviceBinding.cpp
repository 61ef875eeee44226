#include "runtime/device/DeviceBinding.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/plan/DeviceName.h"

#include <algorithm>
#include <charconv>
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

/// Longer ranges are rejected as mistakes.
static constexpr int32_t mostItemsOfRange = 1024;

[[noreturn]] static void failItem(const std::string &text, const char *why) {
  failUsage(concat("devices: ", quote(text), " is not a device such as sim:0, or a range such as sim:0-3", why));
}

/// Parses one element of a list: "sim:1" adds one item, "sim:0-3" four.
static void addItems(const std::string &text, std::vector<Item> &items) {
  size_t colon = std::min(text.find(':'), text.size());
  std::string backend = text.substr(0, colon);
  const char *begin = text.data() + std::min(colon + 1, text.size()), *end = text.data() + text.size();
  int32_t first = 0;
  auto [rest, error] = std::from_chars(begin, end, first);
  bool isNumber = error == std::errc() && first >= 0;
  if (backend.empty() || (colon < text.size() && !isNumber))
    failItem(text, "");
  int32_t last = first;
  if (colon < text.size() && rest != end) {
    bool isRange = *rest == '-' && rest + 1 != end && *(rest + 1) != '-';
    auto [behind, wrong] = std::from_chars(isRange ? rest + 1 : rest, end, last);
    if (!isRange || wrong != std::errc() || behind != end)
      failItem(text, "");
  }
  if (last < first)
    failItem(text, ": it descends");
  if (last - first >= mostItemsOfRange)
    failItem(text, ": it is too long");
  for (int32_t ordinal = first; ordinal <= last; ++ordinal)
    items.push_back({backend, ordinal});
}

static std::vector<Item> parseItems(const Plan &plan, const std::string &list) {
  std::vector<Item> items;
  std::istringstream stream(list);
  for (std::string text; std::getline(stream, text, ',');)
    addItems(text, items);
  if (!items.empty() && items.front() == Item{plan.devices.front().backend, 0})
    items.erase(items.begin());
  return items;
}

/// The number of the plan's devices of a backend.
static int32_t devicesOf(const Plan &plan, const std::string &backend) {
  return static_cast<int32_t>(std::count_if(plan.devices.begin(), plan.devices.end(),
                                            [&](const Device &device) { return device.backend == backend; }));
}

/// The items that the model was compiled for. If the plan leaves the number of replicas to the launch, each replica's
/// devices follow those of the previous replica.
static std::vector<Item> compiledItems(const Plan &plan, size_t replicas) {
  std::vector<Item> items;
  for (size_t replica = 0; replica < replicas; ++replica)
    for (size_t i = 1; i < plan.devices.size(); ++i) {
      const Device &device = plan.devices[i];
      const std::vector<int32_t> &known = device.compiledFor;
      items.push_back({device.backend, replica < known.size() ? known[replica]
                                                              : known[0] + static_cast<int32_t>(replica) *
                                                                               devicesOf(plan, device.backend)});
    }
  return items;
}

static void checkCount(const Plan &plan, const std::string &list, size_t replicas, size_t items) {
  size_t accelerators = plan.devices.size() - 1;
  if (items != accelerators * replicas)
    failUsage(concat("devices: ", quote(list), " has ", items, " accelerators, and the model was compiled for ",
                     accelerators * replicas,
                     replicas > 1 ? concat(": ", accelerators, " in each of ", replicas, " replicas") : ""));
}

/// Checks that the list has the devices of this many replicas of the machine, one of which is this process.
static void checkCountOfMachine(const Plan &plan, const std::string &list, size_t localRank, size_t items) {
  size_t accelerators = plan.devices.size() - 1, needed = accelerators * (localRank + 1);
  if (items < needed || (accelerators == 0 && items > 0))
    failUsage(concat("devices: ", quote(list), " has ", items, " accelerators, and process ", localRank,
                     " of this machine needs ", accelerators, " after those of the ", localRank, " before it"));
}

static std::vector<std::vector<int32_t>> ordinalsOf(const Plan &plan, const std::vector<Item> &items, size_t replicas) {
  size_t accelerators = plan.devices.size() - 1;
  std::vector<std::vector<int32_t>> ordinals(replicas, std::vector<int32_t>{0});
  for (size_t i = 0; i < accelerators * replicas; ++i) {
    const Device &device = plan.devices[i % accelerators + 1];
    std::string text = concat(items[i].backend, ":", items[i].ordinal);
    if (items[i].backend != device.backend)
      failUnsupported(concat("device ", text, " cannot be ", shownDevice(device.name), ", which was compiled for ",
                             quote(device.backend)));
    if (auto here = items.begin() + static_cast<std::ptrdiff_t>(i); std::find(items.begin(), here, items[i]) != here)
      failUsage(concat("devices: ", text, " is listed twice"));
    ordinals[i / accelerators].push_back(items[i].ordinal);
  }
  return ordinals;
}

std::vector<std::vector<int32_t>> bindDevices(const Plan &plan, const std::string &list, std::optional<int> localRank) {
  auto replicas = static_cast<size_t>(localRank ? *localRank + 1 : std::max<int64_t>(plan.replicas, 1));
  std::vector<Item> items = list.empty() ? compiledItems(plan, replicas) : parseItems(plan, list);
  if (!localRank) {
    checkCount(plan, list, replicas, items.size());
    return ordinalsOf(plan, items, replicas);
  }
  checkCountOfMachine(plan, list, static_cast<size_t>(*localRank), items.size());
  return {ordinalsOf(plan, items, replicas).back()};
}

std::vector<std::vector<int32_t>> bindDevices(const Plan &plan, const DeviceOptions &options) {
  return bindDevices(plan, options.list,
                     options.processes ? std::optional(options.processes->localRank()) : std::nullopt);
}

std::string bindingText(const Device &device, int32_t ordinal) {
  return shownDevice(device.name, concat(device.backend, ":", ordinal));
}

} // namespace sluice::runtime
