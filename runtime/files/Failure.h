// Results of calls that may fail.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

namespace sluice::files {

/// Nothing, or a reason such as "cannot write: No space left on device".
using Failure = std::string;

/// The failure of a system call, from errno: `action` is a verb, for example "open".
inline Failure failed(const char *action, int error = errno) {
  return std::string("cannot ").append(action).append(": ").append(std::strerror(error));
}

} // namespace sluice::files
