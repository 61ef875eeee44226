// Finding and loading transports: shared objects called libsluice_transport_NAME.so, in the folders where backends lie, that
// export sluice_transport_query (sluice/backend/transport.h).
#pragma once

#include "sluice/backend/transport.h"

#include <string>
#include <string_view>
#include <vector>

namespace sluice::runtime {

/// What their files' names begin with; what is behind it and before ".so" is the transport's own name.
inline constexpr std::string_view transportPrefix = "libsluice_transport_";

/// What was looked for, and why it was not found: of the files of its name that there are, each with its reason.
struct TransportSearch {
  const sluice_transport_library *found = nullptr;
  std::string refused; ///< "; refused FILE: REASON" for each; empty if there is no such file
};

/// Loads the first transport of this name in the folders that is sound, for good. Each is tried in a child process first.
TransportSearch searchTransport(const std::string &name, const std::vector<std::string> &folders);

/// The same; throws an unsupported error that says where it was looked for and what was refused.
const sluice_transport_library &findTransport(const std::string &name, const std::vector<std::string> &folders);

} // namespace sluice::runtime
