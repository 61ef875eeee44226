// Messages over connections to all other ranks.
//
// A message is a header with the number of its bytes, then the bytes. A message is read only if a receive is posted, so
// there are no unexpected-message buffers. A rank that closes in order sends a leave message. A connection that ends
// without a leave message is lost, and ends the whole mesh. An aborted rank sends an abort message, with the rank that
// caused the abort. It first completes a partially sent message, so that the peer can read the abort message.
#pragma once

#include "backends/transport/Fail.h"
#include "backends/transport/tcp/Socket.h"
#include "sluice/backend/transport.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice::transport {

class Peer;

using Header = std::array<unsigned char, 12>;

} // namespace sluice::transport

/// A message in flight.
struct sluice_transfer {
  int32_t rank;
  bool sends;
  std::byte *memory; // only read if sending
  size_t bytes;
  size_t moved = 0;      // bytes of the memory that were sent or received
  size_t headerSent = 0; // bytes of the header that were sent
  bool isDone = false;
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  sluice::transport::Header header{}; // of a sent message
  std::list<sluice_transfer>::iterator self{};
};

namespace sluice::transport {

/// The connection to one rank.
class Peer {
public:
  explicit Peer(Socket socket) : socket_(std::move(socket)) {}

  /// How the connection ended. `Left`: after a leave message, or at a message of unexpected size. `Lost`: without a
  /// message. `Aborted`: after an abort message.
  enum class End { None, Left, Lost, Aborted };
  End end() const { return end_; }
  bool isOpen() const { return socket_.isOpen() && end_ == End::None; }
  /// If `Aborted`: the rank that caused the abort, which may be the aborted rank itself.
  int32_t culprit() const { return culprit_; }
  /// Set by a message of unexpected size: its bytes, and the bytes of the posted receive.
  const std::optional<std::pair<uint64_t, size_t>> &difference() const { return difference_; }

  void add(sluice_transfer &transfer) { (transfer.sends ? sending_ : receiving_).push_back(&transfer); }
  void remove(const sluice_transfer &transfer);
  /// Sends and receives without waiting. Returns whether any bytes moved.
  bool moveNow();
  /// The events to poll for, if any.
  std::optional<short> events() const;
  int descriptor() const { return socket_.get(); }
  /// Handles the events that poll returned.
  void notice(short events);

  /// Sends a leave message, unless messages are in flight.
  void leave();
  /// Stops sending messages, and begins to send the abort message. `hasSaidAll` continues.
  void abort(int32_t culprit);
  /// Continues to send the abort message, without waiting. Closes the connection once the other end has acknowledged
  /// everything, or cannot receive it, and then returns true.
  bool hasSaidAll();

private:
  bool hasHeader() const { return headerBytes_ == header_.size(); }
  bool sendSome();
  void takeSent(size_t bytes);
  bool canReceive();
  bool readControl();
  bool receiveSome();
  void finishReceive();
  void keepRest(const sluice_transfer &transfer);
  bool sendLastWords();
  void discardReceived();
  void endAt(int error);
  void endUnread();

  Socket socket_;
  std::deque<sluice_transfer *> sending_, receiving_;
  Header header_{}; // of the incoming message
  size_t headerBytes_ = 0;
  End end_ = End::None;
  bool cannotSend_ = false;                // the connection has ended, but not all received data was read
  std::string lastWords_;                  // unsent bytes after an abort: the rest of a message, and the abort message
  bool isAborted_ = false, isCut_ = false; // aborted by this rank; disconnected after that
  int32_t culprit_ = 0;
  std::optional<std::pair<uint64_t, size_t>> difference_;
};

class Mesh {
public:
  /// A socket for each rank; that of `rank` itself is not open. A rank is late if a transfer with it takes `deadline`
  /// seconds.
  Mesh(int32_t rank, std::vector<Socket> sockets, double deadline = std::numeric_limits<double>::infinity());
  /// Sends leave messages or, after an error, abort messages, for at most two seconds.
  ~Mesh();
  Mesh(const Mesh &) = delete;

  sluice_transfer *send(int32_t rank, const void *from, size_t bytes) {
    return begin(rank, /*sends=*/true, const_cast<void *>(from), bytes);
  }
  sluice_transfer *receive(int32_t rank, void *to, size_t bytes) { return begin(rank, /*sends=*/false, to, bytes); }
  /// Whether the transfer is complete, in which case it is released; throws if it can never complete.
  bool test(sluice_transfer *transfer);
  /// Thread-safe. The cause that other ranks report is the rank that has been late the longest, if any.
  void abort();

private:
  using Clock = std::chrono::steady_clock;

  sluice_transfer *begin(int32_t rank, bool sends, void *memory, size_t bytes);
  Peer &peerOf(const sluice_transfer &transfer) { return peers_[static_cast<size_t>(transfer.rank)]; }
  bool moveAll();
  std::optional<int32_t> whoIsLate() const;
  void noteEnds();
  void sayLastWords();
  bool look(sluice_transfer &transfer);
  [[noreturn]] void drop(sluice_transfer &transfer, const Error &error);
  void sleep(std::unique_lock<std::mutex> &lock);

  std::mutex mutex_; // of the members below, but not while a thread sleeps
  int32_t rank_;
  double deadline_;
  std::vector<Peer> peers_;
  std::list<sluice_transfer> transfers_;
  std::optional<Error> broken_; // the error of every transfer
  int32_t culprit_;             // the rank that caused it
  Clock::time_point lastMove_;  // when bytes moved last
};

} // namespace sluice::transport
