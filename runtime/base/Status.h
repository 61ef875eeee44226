// Errors of the runtime and their exit codes.
//
// Inside the runtime an error is an exception of type Error. It never crosses the C ABI or generated code: `guarded`
// turns it into a Status at those borders.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

namespace sluice::runtime {

/// What a process ends with, and the code of a Status. A signal n ends a process with 128 + n.
enum class ExitCode : int {
  ok = 0,
  comparison = 1,  ///< a comparison failed
  nonFinite = 1,   ///< the loss of a training run became infinite or NaN
  usage = 2,       ///< an unknown flag or name, an absurd value
  invalid = 3,     ///< input or output that is invalid, missing or full
  unsupported = 4, ///< an op or device that is not there
  exhausted = 5,   ///< out of memory, or the device is lost
  deadline = 6,    ///< a deadline passed
  peerLost = 7,    ///< another rank was aborted or lost; an executable ends with `exhausted` then
  internal = 70,   ///< our own error
};

/// An error with the exit code that it leads to.
class Error : public std::runtime_error {
public:
  Error(ExitCode code, const std::string &message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

private:
  ExitCode code_;
};

/// The result of a call that must not throw.
struct Status {
  ExitCode code = ExitCode::ok;
  std::string message;

  bool ok() const { return code == ExitCode::ok; }
};

/// Runs `body` and returns what it threw, if anything.
Status guarded(const std::function<void()> &body) noexcept;

[[noreturn]] void failUsage(const std::string &message);
[[noreturn]] void failInvalid(const std::string &message);
[[noreturn]] void failUnsupported(const std::string &message);
[[noreturn]] void failExhausted(const std::string &message);

} // namespace sluice::runtime
