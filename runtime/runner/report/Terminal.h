// Results on standard output, progress on a terminal's standard error.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace sluice::runtime {

/// Prints results and flushes, so that a reader of a pipe receives them immediately. A full disk or a closed output is
/// an error.
void printText(const std::string &text);
void printLine(const std::string &line);

/// Prints a progress line on standard error.
void talk(const std::string &line);

/// About three digits: 12345.6 becomes "12346", 1.234 becomes "1.23".
std::string rateText(double value);

/// A progress bar that is redrawn in place, at most ten times per second. Draws nothing unless standard error is a
/// terminal.
class Progress {
public:
  /// Draws nothing unless `wanted`.
  explicit Progress(bool wanted);
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;
  ~Progress() { clear(); }

  /// Whether `update` would draw.
  bool isDue() const;
  void update(const std::string &label, int64_t done, int64_t total, const std::string &text);
  void clear();

private:
  bool enabled_;
  bool colour_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_;
};

} // namespace sluice::runtime
