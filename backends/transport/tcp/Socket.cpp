#include "backends/transport/tcp/Socket.h"

#include "backends/transport/Fail.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace sluice::transport {

using Clock = std::chrono::steady_clock;

static constexpr std::chrono::milliseconds kBetweenTries{20};
static constexpr std::chrono::seconds kOneTry{2}; // timeout of connect, if the address does not respond

Socket::~Socket() {
  if (isOpen())
    close(descriptor_);
}

namespace {

using Resolved = std::unique_ptr<addrinfo, void (*)(addrinfo *)>;

} // namespace

/// Null, with the reason, if the name cannot be resolved.
static Resolved resolve(const Address &address, int flags, std::string &why) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  if (int error = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found)) {
    why = gai_strerror(error);
    found = nullptr;
  }
  return {found, [](addrinfo *list) {
            if (list)
              freeaddrinfo(list);
          }};
}

static Socket open(const addrinfo &to) {
  return Socket(socket(to.ai_family, to.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, to.ai_protocol));
}

Socket listenAt(const Address &address) {
  std::string why;
  Resolved all = resolve(address, AI_PASSIVE, why);
  for (const addrinfo *at = all.get(); at; at = at->ai_next) {
    Socket socket = open(*at);
    int yes = 1; // allows the port of a run that just ended
    if (socket.isOpen() && setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        bind(socket.get(), at->ai_addr, at->ai_addrlen) == 0 && listen(socket.get(), SOMAXCONN) == 0)
      return socket;
    why = std::strerror(errno);
  }
  fail(SLUICE_INVALID, "cannot listen at ", address.text(), ": ", why);
}

int portOf(const Socket &socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr *>(&name), &size) != 0)
    fail(SLUICE_INVALID, "a listening socket has no name: ", std::strerror(errno));
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6 *>(&name)->sin6_port
                                          : reinterpret_cast<sockaddr_in *>(&name)->sin_port);
}

std::string localHostOf(const Socket &socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  char host[NI_MAXHOST];
  if (getsockname(socket.get(), reinterpret_cast<sockaddr *>(&name), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr *>(&name), size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0)
    fail(SLUICE_INVALID, "a connection has no address at this end");
  return host;
}

/// Disables Nagle's algorithm, so that small messages are sent immediately.
static void sendAtOnce(const Socket &socket) {
  int yes = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

Socket acceptNow(const Socket &listening) {
  Socket socket(accept4(listening.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.isOpen())
    sendAtOnce(socket);
  return socket;
}

/// Whether the socket became ready before the deadline.
static bool await(const Socket &socket, short events, Deadline deadline) {
  while (true) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd one{socket.get(), events, 0};
    int ready = poll(&one, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1000)));
    if (ready > 0)
      return true;
    if (Clock::now() >= deadline)
      return false;
  }
}

/// Tries one address. Returns 0 or the error.
static int tryToConnect(const Socket &socket, const addrinfo &to, Deadline deadline) {
  if (!socket.isOpen())
    return errno;
  if (connect(socket.get(), to.ai_addr, to.ai_addrlen) == 0)
    return 0;
  if (errno != EINPROGRESS && errno != EINTR)
    return errno;
  if (!await(socket, POLLOUT, std::min(deadline, Clock::now() + kOneTry)))
    return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

/// While no process listens at a local port, the system may assign that port to a connecting socket, which is then
/// connected to itself.
static bool isItsOwnPeer(const Socket &socket) {
  sockaddr_storage own{}, peer{};
  socklen_t ownSize = sizeof own, peerSize = sizeof peer;
  return getsockname(socket.get(), reinterpret_cast<sockaddr *>(&own), &ownSize) == 0 &&
         getpeername(socket.get(), reinterpret_cast<sockaddr *>(&peer), &peerSize) == 0 && ownSize == peerSize &&
         std::memcmp(&own, &peer, ownSize) == 0;
}

Socket connectTo(const Address &address, Deadline deadline) {
  std::string why = "nothing was tried";
  do {
    Resolved all = resolve(address, 0, why);
    for (const addrinfo *at = all.get(); at; at = at->ai_next) {
      Socket socket = open(*at);
      int error = tryToConnect(socket, *at, deadline);
      if (error == 0 && isItsOwnPeer(socket))
        error = ECONNREFUSED;
      if (error == 0) {
        sendAtOnce(socket);
        return socket;
      }
      why = std::strerror(error);
    }
    std::this_thread::sleep_for(kBetweenTries);
  } while (Clock::now() < deadline);
  fail(SLUICE_DEADLINE, "cannot connect to ", address.text(), " in time: ", why);
}

//===- bytes ------------------------------------------------------------------------------------------------------===//

/// The result of a call that transferred nothing.
static Traffic reasonOf(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR ? Traffic::Late : Traffic::Gone;
}

Traffic sendNow(const Socket &socket, std::string &bytes) {
  ssize_t sent = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent < 0)
    return reasonOf(errno);
  bytes.erase(0, static_cast<size_t>(sent));
  return Traffic::Done;
}

Traffic receiveNow(const Socket &socket, std::string &bytes) {
  char buffer[1 << 16];
  ssize_t received = recv(socket.get(), buffer, sizeof buffer, 0);
  if (received < 0)
    return reasonOf(errno);
  bytes.append(buffer, static_cast<size_t>(received));
  return received == 0 ? Traffic::Gone : Traffic::Done;
}

Traffic sendAll(const Socket &socket, std::string_view bytes, Deadline deadline) {
  std::string left(bytes);
  while (!left.empty()) {
    if (!await(socket, POLLOUT, deadline))
      return Traffic::Late;
    if (sendNow(socket, left) == Traffic::Gone)
      return Traffic::Gone;
  }
  return Traffic::Done;
}

Traffic receiveSome(const Socket &socket, std::string &bytes, Deadline deadline) {
  Traffic traffic = Traffic::Late;
  while (traffic == Traffic::Late && await(socket, POLLIN, deadline))
    traffic = receiveNow(socket, bytes);
  return traffic;
}

Traffic receiveExactly(const Socket &socket, size_t bytes, std::string &received, Deadline deadline) {
  for (std::string part; bytes > 0; bytes -= part.size()) {
    if (!await(socket, POLLIN, deadline))
      return Traffic::Late;
    part.resize(bytes);
    ssize_t count = recv(socket.get(), part.data(), bytes, 0);
    if (count == 0 || (count < 0 && reasonOf(errno) == Traffic::Gone))
      return Traffic::Gone;
    part.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    received += part;
  }
  return Traffic::Done;
}

} // namespace sluice::transport
