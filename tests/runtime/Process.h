// A child process: its output, its exit code, and a moment at which to signal it.
#pragma once

#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace sluice::test {

struct ProcessResult {
  int code = -1; ///< exit code; 1000 + n if signal n ended it
  std::string out, err;
};

class Process {
public:
  /// Starts a program; `prepare` runs in the child before it.
  Process(const std::string &program, const std::vector<std::string> &arguments,
          const std::function<void()> &prepare = {});
  Process(const Process &) = delete;
  Process &operator=(const Process &) = delete;

  pid_t id() const { return child_; }
  void signal(int number) const;
  /// Whether it has not ended yet.
  bool isRunning() const;
  /// Stops it where it is, as SIGSTOP does; false if it ended before. SIGCONT lets it go on.
  bool stop() const;
  /// Waits for the end and gives everything that was printed.
  ProcessResult wait();

private:
  pid_t child_;
  int out_, err_;
};

ProcessResult run(const std::string &program, const std::vector<std::string> &arguments,
                  const std::function<void()> &prepare = {});

} // namespace sluice::test
