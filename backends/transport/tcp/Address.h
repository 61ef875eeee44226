// The network address of a process.
#pragma once

#include <string>

namespace sluice::transport {

struct Address {
  std::string host;
  int port = 0; ///< 0: any free port

  std::string text() const; ///< "node1:29500", "[::1]:29500"
};

/// Throws a usage error unless the text is HOST:PORT or [HOST]:PORT, with a port from 1 to 65535.
Address addressOf(const std::string &text);

} // namespace sluice::transport
