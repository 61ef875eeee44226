// TCP connections that never wait for longer than a deadline.
#pragma once

#include "backends/transport/tcp/Address.h"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::transport {

/// A moment until which something is waited for.
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

/// Listens at this address and at no other; a port of 0 stands for any that is free. Throws an error of input where that
/// cannot be.
Socket listenAt(const Address &address);
/// The port that a socket listens at.
int portOf(const Socket &socket);

/// The numeric address at this end of a connection.
std::string localHostOf(const Socket &socket);

/// Who has connected; not open if nobody has.
Socket acceptNow(const Socket &listening);

/// Tries again and again until somebody listens there. Throws an error of a passed deadline, with the last reason.
Socket connectTo(const Address &address, Deadline deadline);

/// What became of bytes that were to be sent or received.
enum class Traffic { Done, Late, Gone };

Traffic sendAll(const Socket &socket, std::string_view bytes, Deadline deadline);
/// Appends what has come, one byte at least.
Traffic receiveSome(const Socket &socket, std::string &bytes, Deadline deadline);

/// Appends `bytes` of them, and reads no more.
Traffic receiveExactly(const Socket &socket, size_t bytes, std::string &received, Deadline deadline);

/// The same without waiting; `Late` if nothing can be done now. What is sent is taken from the front of `bytes`.
Traffic sendNow(const Socket &socket, std::string &bytes);
Traffic receiveNow(const Socket &socket, std::string &bytes);

} // namespace sluice::transport
