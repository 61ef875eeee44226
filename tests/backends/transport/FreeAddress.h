// A local address where nobody listens now.
#pragma once

#include "backends/transport/tcp/Socket.h"

namespace sluice::test {

inline transport::Address freeAddress() {
  transport::Address any{"127.0.0.1", 0};
  any.port = transport::portOf(transport::listenAt(any));
  return any;
}

} // namespace sluice::test
