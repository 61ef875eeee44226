// Messages over connections to all other ranks.
//
// A message is a header with the number of its bytes, then the bytes. A message is read only if a receive is posted, so
// there are no unexpected-message buffers. A rank that closes in order sends a leave message. A connection that ends
// without a leave message is lost, and ends the whole mesh. An aborted rank sends the rank that caused the abort, after
// the rest of a partially sent message.
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
  size_t moved = 0;      // of the memory
  size_t headerSent = 0; // bytes of it
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

  /// How the connection ended. `Left`: in order. `Aborted`: by an abort of the rank.
  enum class End { None, Left, Lost, Aborted };
  End end() const { return end_; }
  bool isOpen() const { return socket_.isOpen() && end_ == End::None; }
  /// The rank whose failure caused the abort; may be the aborted rank itself.
  int32_t culprit() const { return culprit_; }
  /// Set on a message of unexpected size: its bytes, and the expected bytes.
  const std::optional<std::pair<uint64_t, size_t>> &difference() const { return difference_; }

  void add(sluice_transfer &transfer) { (transfer.sends ? sending_ : receiving_).push_back(&transfer); }
  void remove(const sluice_transfer &transfer);
  /// Transfers bytes without waiting; returns whether there were any.
  bool moveNow();
  /// The events to poll for, if any.
  std::optional<short> events() const;
  int descriptor() const { return socket_.get(); }
  /// The events that occurred.
  void notice(short events);

  void leave();
  /// Ends sending. `hasSaidAll` covers the rest of the last message.
  void abort(int32_t culprit);
  /// Continues sending without waiting. The connection is closed once the other end has received everything.
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
  bool cannotSend_ = false; // the connection has ended, but not all received data was read
  std::string lastWords_;   // remaining bytes to send: the rest of a message, and the reason for the end
  bool isAborted_ = false, isCut_ = false;
  int32_t culprit_ = 0;
  std::optional<std::pair<uint64_t, size_t>> difference_;
};

class Mesh {
public:
  /// A socket for each rank; that of `rank` itself is not open. A rank without progress for `deadline` seconds is late.
  Mesh(int32_t rank, std::vector<Socket> sockets, double deadline = std::numeric_limits<double>::infinity());
  /// Leaves. After an error, it first sends the reason, which may take two seconds.
  ~Mesh();
  Mesh(const Mesh &) = delete;

  sluice_transfer *send(int32_t rank, const void *from, size_t bytes) {
    return begin(rank, /*sends=*/true, const_cast<void *>(from), bytes);
  }
  sluice_transfer *receive(int32_t rank, void *to, size_t bytes) { return begin(rank, /*sends=*/false, to, bytes); }
  /// Whether the transfer is complete, in which case it is released; throws if it can never complete.
  bool test(sluice_transfer *transfer);
  /// Thread-safe. The reported cause is the rank that has been late the longest, if any.
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
  std::optional<Error> broken_; // for all
  int32_t culprit_;             // the error that broke it
  Clock::time_point lastMove_;
};

} // namespace sluice::transport
