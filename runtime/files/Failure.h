// What calls that may fail return.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

namespace sluice::files {

/// Nothing, or a reason such as "cannot write: No space left on device".
using Failure = std::string;

/// That the system could not do `action`.
inline Failure failed(const char *action, int error = errno) {
  return std::string("cannot ").append(action).append(": ").append(std::strerror(error));
}

} // namespace sluice::files
