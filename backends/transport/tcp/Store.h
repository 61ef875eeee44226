// Where ranks in several processes leave each other small things before they are connected: where each of them listens.
// Rank 0 has the store, all ranks are its clients.
//
// A secret that the ranks of one run share keeps out other runs and strangers. It is sent as it is: the network between
// the ranks is trusted not to be read.
#pragma once

#include "backends/transport/tcp/Socket.h"
#include "backends/transport/tcp/StoreFrame.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace sluice::transport {

/// Takes as long for each secret of one length, so that it cannot be guessed byte by byte.
bool isSameSecret(const std::string &one, const std::string &other);

/// Serves in a thread of its own, at the given address alone, until it is destroyed. Whatever comes is checked: who sends
/// anything but messages of bounded size, with the secret first and soon, is cut off.
class StoreServer {
public:
  /// A port of 0 stands for any that is free. Throws an error of input where it cannot listen, and of usage for a secret
  /// that is empty or longer than 256 bytes.
  StoreServer(const Address &address, const std::string &secret);
  ~StoreServer();
  StoreServer(const StoreServer &) = delete;

  /// With the port that it listens at.
  const Address &address() const;

private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// One rank's connection. Each call throws an error of a passed deadline, of a lost peer where the store went away, of
/// input where what answers is no store.
class StoreClient {
public:
  using Duration = std::chrono::milliseconds;

  /// Waits for a store that begins to listen later. Throws an error of input if it has another secret.
  StoreClient(const Address &address, const std::string &secret, Duration within);
  StoreClient(const StoreClient &) = delete;

  /// Keys have 1 to 256 bytes and values up to 1 MiB, or it is an error of usage. A key is set once: throws an error of
  /// input if it has another value.
  void set(const std::string &key, const std::string &value, Duration within);
  /// Nothing if nobody has set the key.
  std::optional<std::string> find(const std::string &key, Duration within);
  /// Waits until somebody has set the key. After one that nobody set in time the client may be asked again.
  std::string get(const std::string &key, Duration within);

  /// The address of this machine by which the store is reached.
  std::string localHost() const { return localHostOf(socket_); }

private:
  StoreFrame ask(const StoreFrame &question, Deadline deadline);

  Address address_;
  Socket socket_;
  std::string received_;
};

} // namespace sluice::transport
