#include "runtime/base/Child.h"

#include "runtime/base/Text.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sluice::runtime {

using Clock = std::chrono::steady_clock;

/// Limit of the child's output, so that a faulty child cannot exhaust the parent's memory.
static constexpr size_t mostBytesSaid = 1 << 20;

/// The text with spaces in place of the separators of keys, values and lines.
static std::string oneLine(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t' || c == '\0'; }, ' ');
  return text;
}

void ChildReport::say(const std::string &key, const std::string &value) {
  std::string line = oneLine(key) + '\t' + oneLine(value) + '\n';
  for (size_t at = 0; at < line.size();) {
    ssize_t written = write(file_, line.data() + at, line.size() - at);
    if (written < 0 && errno != EINTR)
      _exit(1); // no reader is left
    at += static_cast<size_t>(std::max<ssize_t>(written, 0));
  }
}

void ChildReport::say(const std::string &key, double value) {
  char text[32];
  snprintf(text, sizeof text, "%.17g", value);
  say(key, text);
}

/// Runs `body` in the child, then ends the child. A crash is an expected result: the child therefore has no inherited
/// signal handlers, writes no core file, and dies with its parent.
[[noreturn]] static void live(const std::function<void(ChildReport &)> &body, int file) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTERM, SIGINT})
    std::signal(signal, SIG_DFL);
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(nowhere, STDOUT_FILENO);
  ChildReport report(file);
  body(report);
  report.say(ChildReport::endKey, "");
  _exit(0);
}

/// Reads until the child closes its end. False if that takes longer than `limit`, on a read error, or if the child
/// writes more than `mostBytesSaid`.
static bool readAll(int file, std::chrono::milliseconds limit, std::string &text) {
  Clock::time_point end = Clock::now() + limit;
  while (text.size() < mostBytesSaid) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd ready{file, POLLIN, 0};
    int polled = left > 0 ? poll(&ready, 1, static_cast<int>(left)) : 0;
    if (polled == 0)
      return false;
    char buffer[4096];
    ssize_t got = polled < 0 ? -1 : read(file, buffer, sizeof buffer);
    if (got == 0)
      return true;
    if (got < 0 && errno != EINTR)
      return false;
    text.append(buffer, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }
  return false;
}

/// Parses the child's output. Returns whether the child's body returned; else `step` is its last step.
static bool parse(const std::string &text, ChildResult &result, std::string &step) {
  bool ended = false;
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    size_t tab = text.find('\t', at);
    std::string key = text.substr(at, tab - at), value = text.substr(tab + 1, end - tab - 1);
    if (key == ChildReport::stepKey)
      step = value;
    else if (key == ChildReport::endKey)
      ended = true;
    else
      result.said.emplace_back(key, value);
  }
  return ended;
}

std::unique_lock<std::mutex> lockForks() {
  static std::mutex mutex;
  return std::unique_lock(mutex);
}

ChildResult runInChild(const std::function<void(ChildReport &)> &body, std::chrono::milliseconds limit) {
  ChildResult result;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    result.failure = concat("could not be tried: ", strerror(errno));
    return result;
  }
  std::unique_lock lock = lockForks();
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    live(body, ends[1]);
  }
  lock.unlock();
  close(ends[1]);
  std::string text;
  bool inTime = child > 0 && readAll(ends[0], limit, text);
  close(ends[0]);
  if (child < 0) {
    result.failure = concat("could not be tried: ", strerror(errno));
    return result;
  }
  if (!inTime)
    kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  std::string step;
  if (parse(text, result, step))
    return result;
  if (!inTime)
    result.failure =
        concat("gave no answer within ", fixedText(static_cast<double>(limit.count()) / 1000, 1), " s in ", step);
  else if (WIFSIGNALED(status))
    result.failure = concat("crashed in ", step, " (", strsignal(WTERMSIG(status)), ")");
  else
    result.failure = concat("ended the process in ", step);
  return result;
}

} // namespace sluice::runtime
