// A key-value store for ranks that are not connected yet: they publish their addresses. Rank 0 has the store, all ranks
// are its clients.
//
// A secret shared by the ranks of a run keeps out other runs and strangers. It is sent unencrypted: the network between
// the ranks must not be readable by others.
#pragma once

#include "backends/transport/tcp/Socket.h"
#include "backends/transport/tcp/StoreFrame.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace sluice::transport {

/// Compares secrets. The time depends on their lengths only, so that the secret cannot be guessed byte by byte.
bool isSameSecret(const std::string &one, const std::string &other);

/// Serves from a thread, at the given address only, until destruction. Input is untrusted: a client is disconnected
/// unless it sends the secret first and in time, and only messages of bounded size.
class StoreServer {
public:
  /// Port 0 selects any free port. Throws an error of invalid input if it cannot listen, and a usage error for a secret
  /// that is empty or longer than 256 bytes.
  StoreServer(const Address &address, const std::string &secret);
  ~StoreServer();
  StoreServer(const StoreServer &) = delete;

  /// With the actual port.
  const Address &address() const;

private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// One rank's connection to the store. Each call can throw a deadline error, a lost-peer error if the store closed, or
/// an error of invalid input if the other end is not a store.
class StoreClient {
public:
  using Duration = std::chrono::milliseconds;

  /// Waits for a store that starts later. Throws an error of invalid input if the store has another secret.
  StoreClient(const Address &address, const std::string &secret, Duration within);
  StoreClient(const StoreClient &) = delete;

  /// Keys have 1 to 256 bytes and values up to 1 MiB; otherwise a usage error. A key is set once: throws an error of
  /// invalid input if it has another value.
  void set(const std::string &key, const std::string &value, Duration within);
  /// Nothing if the key is not set.
  std::optional<std::string> find(const std::string &key, Duration within);
  /// Waits until the key is set. If it is not set in time, throws a deadline error, and the client remains usable.
  std::string get(const std::string &key, Duration within);

  /// The address of this machine on the route to the store.
  std::string localHost() const { return localHostOf(socket_); }

private:
  StoreFrame ask(const StoreFrame &question, Deadline deadline);

  Address address_;
  Socket socket_;
  std::string received_;
};

} // namespace sluice::transport
