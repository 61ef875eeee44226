// Messages over connections to all other ranks.
//
// A message is a header with the number of its bytes, and these. Nothing is read of one that no receive is there for, so
// nothing is kept of what others send. Who closes in order says so; a connection that ends without that was lost, and ends
// the whole mesh. Who is aborted says on whose account, behind the rest of a message that it is in the middle of.
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

/// A message under way.
struct sluice_transfer {
  int32_t rank;
  bool sends;
  std::byte *memory; // only read of what is sent
  size_t bytes;
  size_t moved = 0;      // of the memory
  size_t headerSent = 0; // bytes of it
  bool isDone = false;
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  sluice::transport::Header header{}; // of what is sent
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
  /// Whose end the aborted rank was aborted for; may be itself.
  int32_t culprit() const { return culprit_; }
  /// Set once a message came that is not what was to be received: its bytes, and those that were expected.
  const std::optional<std::pair<uint64_t, size_t>> &difference() const { return difference_; }

  void add(sluice_transfer &transfer) { (transfer.sends ? sending_ : receiving_).push_back(&transfer); }
  void remove(const sluice_transfer &transfer);
  /// Moves what can be moved without waiting; whether it was anything.
  bool moveNow();
  /// What to wait for, if anything.
  std::optional<short> events() const;
  int descriptor() const { return socket_.get(); }
  /// These came while waiting.
  void notice(short events);

  void leave();
  /// Nothing else is sent from here on. What of its last words does not go out at once is for `hasSaidAll`.
  void abort(int32_t culprit);
  /// Goes on with them without waiting. Once the other end has them all the connection is cut.
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
  Header header_{}; // of the message that comes
  size_t headerBytes_ = 0;
  End end_ = End::None;
  bool cannotSend_ = false; // the connection has ended, but not all that came over it was read
  std::string lastWords_;   // that are still to be sent: the rest of a message, and why it is the last
  bool isAborted_ = false, isCut_ = false;
  int32_t culprit_ = 0;
  std::optional<std::pair<uint64_t, size_t>> difference_;
};

class Mesh {
public:
  /// A socket for each rank; that of `rank` itself is not open. Who has not moved for `deadline` seconds is late.
  Mesh(int32_t rank, std::vector<Socket> sockets, double deadline = std::numeric_limits<double>::infinity());
  /// Leaves; after an error it says its last words first, which may take two seconds.
  ~Mesh();
  Mesh(const Mesh &) = delete;

  sluice_transfer *send(int32_t rank, const void *from, size_t bytes) {
    return begin(rank, /*sends=*/true, const_cast<void *>(from), bytes);
  }
  sluice_transfer *receive(int32_t rank, void *to, size_t bytes) { return begin(rank, /*sends=*/false, to, bytes); }
  /// Whether it is done; throws if it never will be. It is no more then.
  bool test(sluice_transfer *transfer);
  /// In any thread. It is on account of the rank that has been late the longest, if one is.
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

  std::mutex mutex_; // of what follows, but not while a thread sleeps
  int32_t rank_;
  double deadline_;
  std::vector<Peer> peers_;
  std::list<sluice_transfer> transfers_;
  std::optional<Error> broken_; // for all
  int32_t culprit_;             // of what broke it
  Clock::time_point lastMove_;
};

} // namespace sluice::transport
