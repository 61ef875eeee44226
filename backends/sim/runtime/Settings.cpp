#include "backends/sim/runtime/Settings.h"

#include "backends/sim/runtime/Error.h"

#include <charconv>
#include <cmath>
#include <span>
#include <string>

namespace sluice::sim {

namespace {

struct Unit {
  std::string_view name;
  double factor;
};

struct Setting {
  std::string_view name;
  const char *expected;
  bool (*set)(Settings &settings, std::string_view value); // false: not what is expected
};

} // namespace

static constexpr Unit kBytes[] = {{"B", 1},     {"kB", 1e3},     {"MB", 1e6},        {"GB", 1e9},
                                  {"TB", 1e12}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}};
static constexpr Unit kRates[] = {{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}};
static constexpr Unit kSeconds[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};

/// A number with one of `units` and within [low, high].
static bool readQuantity(std::string_view text, std::span<const Unit> units, double low, double high, double &value) {
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number))
    return false;
  std::string_view name = text.substr(static_cast<size_t>(end - text.data()));
  for (const Unit &unit : units) {
    if (unit.name != name)
      continue;
    value = number * unit.factor;
    return value >= low && value <= high;
  }
  return false;
}

template <typename Integer> static bool readInteger(std::string_view text, Integer low, Integer high, Integer &value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= low && value <= high;
}

static constexpr Setting kSettings[] = {
    {"seed", "a whole number",
     [](Settings &s, std::string_view v) { return readInteger<uint64_t>(v, 0, UINT64_MAX, s.seed); }},
    {"devices", "a whole number from 1 to 64",
     [](Settings &s, std::string_view v) { return readInteger(v, 1, 64, s.devices); }},
    {"memory", "bytes from 4KiB to 1TB, such as 16GB",
     [](Settings &s, std::string_view v) {
       double bytes = 0;
       bool ok = readQuantity(v, kBytes, 4096, 1e12, bytes);
       s.memoryBytes = static_cast<int64_t>(bytes);
       return ok;
     }},
    {"link", "bytes a second from 1kB/s to 1000TB/s, such as 12GB/s",
     [](Settings &s, std::string_view v) { return readQuantity(v, kRates, 1e3, 1e15, s.linkBandwidth); }},
    {"latency", "a time from 0s to 10s, such as 5us",
     [](Settings &s, std::string_view v) { return readQuantity(v, kSeconds, 0, 10, s.linkLatency); }},
    {"pending", "a whole number from 1 to 1000000",
     [](Settings &s, std::string_view v) { return readInteger<size_t>(v, 1, 1'000'000, s.pending); }},
    {"table", "roofline or uneven",
     [](Settings &s, std::string_view v) {
       s.unevenTable = v == "uneven";
       return v == "roofline" || v == "uneven";
     }},
    {"races", "report or off",
     [](Settings &s, std::string_view v) {
       s.reportRaces = v == "report";
       return v == "report" || v == "off";
     }},
};

static void applySetting(Settings &settings, std::string_view assignment) {
  size_t equals = assignment.find('=');
  std::string_view name = assignment.substr(0, equals);
  std::string names;
  for (const Setting &setting : kSettings) {
    names += (names.empty() ? "" : ", ") + std::string(setting.name);
    if (setting.name != name)
      continue;
    std::string_view value = equals == std::string_view::npos ? "" : assignment.substr(equals + 1);
    if (setting.set(settings, value))
      return;
    throw Error(SLUICE_USAGE,
                "sim: " + std::string(name) + " is '" + std::string(value) + "', but must be " + setting.expected);
  }
  throw Error(SLUICE_USAGE, "sim: there is no setting '" + std::string(name) + "'; there are: " + names);
}

Settings parseSettings(std::string_view text) {
  Settings settings;
  while (!text.empty()) {
    size_t comma = text.find(',');
    applySetting(settings, text.substr(0, comma));
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  }
  return settings;
}

} // namespace sluice::sim
