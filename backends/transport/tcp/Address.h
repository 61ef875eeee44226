// Where a process is found.
#pragma once

#include <string>

namespace sluice::transport {

struct Address {
  std::string host;
  int port = 0; ///< 0: any that is free

  std::string text() const; ///< "node1:29500", "[::1]:29500"
};

/// Throws an error of usage for what is not HOST:PORT or [HOST]:PORT, with a port from 1 to 65535.
Address addressOf(const std::string &text);

} // namespace sluice::transport
