// Finds and loads transports: shared objects called libsluice_transport_NAME.so in the backend folders that export
// sluice_transport_query (sluice/backend/transport.h).
#pragma once

#include "sluice/backend/transport.h"

#include <string>
#include <string_view>
#include <vector>

namespace sluice::runtime {

/// Prefix of the file names. The rest of the name without ".so" is the transport's name.
inline constexpr std::string_view transportPrefix = "libsluice_transport_";

/// The result of a search: the transport, or the rejected files of its name with the reasons.
struct TransportSearch {
  const sluice_transport_library *found = nullptr;
  std::string refused; ///< "; refused FILE: REASON" per file; empty if there is no such file
};

/// Loads the first valid transport of this name in the folders permanently. A child process tries each file first.
TransportSearch searchTransport(const std::string &name, const std::vector<std::string> &folders);

/// The same; throws an unsupported error with the searched folders and the rejected files.
const sluice_transport_library &findTransport(const std::string &name, const std::vector<std::string> &folders);

} // namespace sluice::runtime
