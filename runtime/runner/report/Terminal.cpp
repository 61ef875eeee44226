#include "runtime/runner/report/Terminal.h"

#include "runtime/base/Text.h"
#include "runtime/io/File.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <unistd.h>

namespace sluice::runtime {

void printText(const std::string &text) { check("standard output", files::writeTo(STDOUT_FILENO, text)); }

void printLine(const std::string &line) { printText(line + "\n"); }

void talk(const std::string &line) { std::fprintf(stderr, "%s\n", line.c_str()); }

std::string rateText(double value) {
  return fixedText(value, std::abs(value) < 10 ? 2 : std::abs(value) < 100 ? 1 : 0);
}

static bool environmentHas(const char *name) {
  const char *value = std::getenv(name);
  return value && *value;
}

static bool isTerminal() {
  const char *kind = std::getenv("TERM");
  return isatty(STDERR_FILENO) && (!kind || std::string_view(kind) != "dumb");
}

Progress::Progress(bool wanted) : enabled_(wanted && isTerminal()), colour_(!environmentHas("NO_COLOR")) {}

bool Progress::isDue() const {
  return enabled_ && (!drawn_ || std::chrono::steady_clock::now() - last_ >= std::chrono::milliseconds(100));
}

void Progress::update(const std::string &label, int64_t done, int64_t total, const std::string &text) {
  if (!isDue())
    return;
  constexpr int64_t width = 24;
  int64_t filled = total > 0 ? done * width / total : 0;
  std::string bar =
      std::string(static_cast<size_t>(filled), '#') + std::string(static_cast<size_t>(width - filled), '.');
  const char *on = colour_ ? "\033[36m" : "", *off = colour_ ? "\033[0m" : "";
  std::fprintf(stderr, "\r%s [%s%s%s] %s\033[K", label.c_str(), on, bar.c_str(), off, text.c_str());
  std::fflush(stderr);
  drawn_ = true;
  last_ = std::chrono::steady_clock::now();
}

void Progress::clear() {
  if (!drawn_)
    return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

} // namespace sluice::runtime
