// Errors of the runtime and their exit codes.
//
// Inside the runtime an error is an exception of type Error. Exceptions never cross the C ABI or generated code:
// `guarded` converts them to a Status at these boundaries.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

namespace sluice::runtime {

/// Exit code of a process and code of a Status. A process that ends with signal n has exit code 128 + n.
enum class ExitCode : int {
  ok = 0,
  comparison = 1,  ///< a comparison failed
  nonFinite = 1,   ///< the loss of a training run became infinite or NaN
  usage = 2,       ///< an unknown flag or name, or an invalid value
  invalid = 3,     ///< input or output that is invalid, missing or full
  unsupported = 4, ///< an op or device that is not available
  exhausted = 5,   ///< out of memory, or the device is lost
  deadline = 6,    ///< a deadline expired
  peerLost = 7,    ///< another rank was aborted or lost; an executable exits with `exhausted` in this case
  internal = 70,   ///< internal error
};

/// An error and its exit code.
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

/// Runs `body` and converts its exception, if any, to a Status.
Status guarded(const std::function<void()> &body) noexcept;

[[noreturn]] void failUsage(const std::string &message);
[[noreturn]] void failInvalid(const std::string &message);
[[noreturn]] void failUnsupported(const std::string &message);
[[noreturn]] void failExhausted(const std::string &message);

} // namespace sluice::runtime
