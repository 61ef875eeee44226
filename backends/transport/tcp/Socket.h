// TCP connections whose waits have a deadline.
#pragma once

#include "backends/transport/tcp/Address.h"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::transport {

/// A point in time that ends a wait.
using Deadline = std::chrono::steady_clock::time_point;

/// Owns a descriptor.
class Socket {
public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket &&other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket &operator=(Socket &&other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();

  int get() const { return descriptor_; }
  bool isOpen() const { return descriptor_ >= 0; }

private:
  int descriptor_ = -1;
};

/// Listens at this address only; port 0 selects any free port. Throws an error of invalid input on failure.
Socket listenAt(const Address &address);
/// The port that a socket listens at.
int portOf(const Socket &socket);

/// The numeric address at this end of a connection.
std::string localHostOf(const Socket &socket);

/// Accepts a connection; not open if there is none.
Socket acceptNow(const Socket &listening);

/// Retries until the address accepts. Throws a deadline error with the last reason.
Socket connectTo(const Address &address, Deadline deadline);

/// The result of sending or receiving bytes. `Gone`: the connection has ended.
enum class Traffic { Done, Late, Gone };

Traffic sendAll(const Socket &socket, std::string_view bytes, Deadline deadline);
/// Appends the received bytes, at least one.
Traffic receiveSome(const Socket &socket, std::string &bytes, Deadline deadline);

/// Appends exactly `bytes` bytes.
Traffic receiveExactly(const Socket &socket, size_t bytes, std::string &received, Deadline deadline);

/// Without waiting: `Late` if no progress is possible now. `sendNow` removes the sent bytes from the front of `bytes`.
Traffic sendNow(const Socket &socket, std::string &bytes);
Traffic receiveNow(const Socket &socket, std::string &bytes);

} // namespace sluice::transport
