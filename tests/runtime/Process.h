// A child process: its output and exit code, and functions that signal it.
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
  /// Starts a program; `prepare` runs in the child before exec.
  Process(const std::string &program, const std::vector<std::string> &arguments,
          const std::function<void()> &prepare = {});
  Process(const Process &) = delete;
  Process &operator=(const Process &) = delete;

  pid_t id() const { return child_; }
  void signal(int number) const;
  /// Whether it is still running.
  bool isRunning() const;
  /// Stops the process with SIGSTOP; false if it has already ended. SIGCONT resumes it.
  bool stop() const;
  /// Waits for its end and returns its output.
  ProcessResult wait();

private:
  pid_t child_;
  int out_, err_;
};

ProcessResult run(const std::string &program, const std::vector<std::string> &arguments,
                  const std::function<void()> &prepare = {});

} // namespace sluice::test
