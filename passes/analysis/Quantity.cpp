#include "passes/analysis/Quantity.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

namespace sluice::passes {

namespace {

struct Unit {
  llvm::StringLiteral name;
  double factor;
};

} // namespace

static constexpr Unit kBytes[] = {{"B", 1},     {"kB", 1e3},     {"MB", 1e6},        {"GB", 1e9},
                                  {"TB", 1e12}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}};
static constexpr Unit kSeconds[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};

static std::optional<double> parse(llvm::StringRef text, llvm::ArrayRef<Unit> units) {
  llvm::StringRef digits = text.take_while([](char c) { return llvm::isDigit(c) || c == '.'; });
  double number = 0;
  if (digits.empty() || digits.getAsDouble(number))
    return std::nullopt;
  for (const Unit &unit : units)
    if (unit.name == text.drop_front(digits.size()) && std::isfinite(number * unit.factor))
      return number * unit.factor;
  return std::nullopt;
}

bool isAmount(double number, double least) { return number >= least && number <= 1e18; }

bool isTime(double seconds) { return seconds == 0 || (seconds >= 1e-12 && seconds <= 1e4); }

std::optional<double> parseBytes(llvm::StringRef text) {
  std::optional<double> bytes = parse(text, kBytes);
  return bytes && isAmount(*bytes) ? bytes : std::nullopt;
}

std::optional<double> parseBytesPerSecond(llvm::StringRef text) {
  return text.consume_back("/s") ? parseBytes(text) : std::nullopt;
}

std::optional<double> parseSeconds(llvm::StringRef text) {
  std::optional<double> seconds = parse(text, kSeconds);
  return seconds && isTime(*seconds) ? seconds : std::nullopt;
}

} // namespace sluice::passes
