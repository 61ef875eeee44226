// Runs code that may crash or hang in a child process and collects its results.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace sluice::runtime {

/// The child's end of the pipe to its parent. Every line is written immediately, so that it survives a crash. `say`
/// sends a key and a value; line breaks and tabs in them become spaces.
class ChildReport {
public:
  explicit ChildReport(int file) : file_(file) {}

  /// Names the child's next step, for example "loading". The parent reports the step if the child crashes in it.
  void step(const std::string &text) { say(stepKey, text); }
  void say(const std::string &key, const std::string &value);
  void say(const std::string &key, const char *value) { say(key, std::string(value ? value : "")); }
  void say(const std::string &key, int64_t value) { say(key, std::to_string(value)); }
  void say(const std::string &key, int value) { say(key, int64_t(value)); }
  void say(const std::string &key, double value);

  static constexpr const char *stepKey = "step", *endKey = "end";

private:
  int file_;
};

struct ChildResult {
  std::vector<std::pair<std::string, std::string>> said; ///< without the steps
  std::string failure; ///< "crashed in STEP (Segmentation fault)", with the last step; empty if the body returned
};

/// Locks out the forks of this process. Hold it while libraries may be loaded: a fork at that moment has the loader's
/// lock without the thread that holds it, and would wait for the lock forever.
std::unique_lock<std::mutex> lockForks();

/// Runs `body` in a fork of this process with standard output discarded. Kills the fork after `limit`.
ChildResult runInChild(const std::function<void(ChildReport &)> &body, std::chrono::milliseconds limit);

} // namespace sluice::runtime
