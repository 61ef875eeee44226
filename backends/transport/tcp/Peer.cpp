#include "backends/transport/tcp/Mesh.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <linux/sockios.h>
#include <poll.h>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace sluice::transport {

// A header: three bytes that no other protocol begins with, the kind, and a number in little-endian order.
static constexpr unsigned char kMessageMagic[] = {0x89, 'S', 'M'};
static constexpr unsigned char kMessage = 1; // the number is the message's size in bytes
static constexpr unsigned char kLeave = 2;
static constexpr unsigned char kAbort = 3; // the number is the rank that caused the abort

static constexpr size_t kMostTogether = 8; // messages that one call of sendmsg sends

static Header headerOf(unsigned char kind, uint64_t number) {
  Header header{kMessageMagic[0], kMessageMagic[1], kMessageMagic[2], kind};
  for (size_t i = 0; i < 8; ++i)
    header[4 + i] = static_cast<unsigned char>(number >> (8 * i));
  return header;
}

static uint64_t numberIn(const Header &header) {
  uint64_t number = 0;
  for (size_t i = 0; i < 8; ++i)
    number |= static_cast<uint64_t>(header[4 + i]) << (8 * i);
  return number;
}

static bool isLater(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

void Peer::remove(const sluice_transfer &transfer) {
  if (transfer.sends && !sending_.empty() && sending_.front() == &transfer && !isAborted_)
    keepRest(transfer);
  auto &queue = transfer.sends ? sending_ : receiving_;
  queue.erase(std::remove(queue.begin(), queue.end(), &transfer), queue.end());
}

/// Handles the result of a failed or empty read: unless it was temporary, the connection is lost. All received data was
/// read before.
void Peer::endAt(int error) {
  if (end_ == End::None && !isLater(error))
    end_ = End::Lost;
}

//===- sending ----------------------------------------------------------------------------------------------------===//

/// Records that this many bytes of the first messages were sent.
void Peer::takeSent(size_t bytes) {
  while (!sending_.empty()) {
    sluice_transfer &first = *sending_.front();
    size_t ofHeader = std::min(bytes, first.header.size() - first.headerSent);
    first.headerSent += ofHeader;
    size_t ofMemory = std::min(bytes - ofHeader, first.bytes - first.moved);
    first.moved += ofMemory;
    bytes -= ofHeader + ofMemory;
    if (first.headerSent < first.header.size() || first.moved < first.bytes)
      return;
    first.isDone = true;
    sending_.pop_front();
  }
}

bool Peer::sendSome() {
  iovec parts[2 * kMostTogether];
  size_t count = 0, messages = std::min(kMostTogether, sending_.size());
  for (size_t at = 0; at < messages; ++at) {
    sluice_transfer &transfer = *sending_[at];
    if (transfer.headerSent == 0)
      transfer.header = headerOf(kMessage, transfer.bytes);
    parts[count++] = {transfer.header.data() + transfer.headerSent, transfer.header.size() - transfer.headerSent};
    parts[count++] = {transfer.memory + transfer.moved, transfer.bytes - transfer.moved};
  }
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  ssize_t sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
  if (sent < 0)
    cannotSend_ = !isLater(errno);
  else
    takeSent(static_cast<size_t>(sent));
  return sent > 0;
}

//===- receiving --------------------------------------------------------------------------------------------------===//

/// Handles a header that begins no message: a leave, an abort, or an invalid one. Returns whether it ended the
/// connection.
bool Peer::readControl() {
  if (std::memcmp(header_.data(), kMessageMagic, sizeof kMessageMagic) != 0 || header_[3] < kMessage ||
      header_[3] > kAbort)
    end_ = End::Lost; // not a peer, or another version
  else if (header_[3] == kLeave)
    end_ = End::Left;
  else if (header_[3] == kAbort)
    end_ = End::Aborted;
  if (end_ == End::Aborted)
    culprit_ = static_cast<int32_t>(numberIn(header_));
  return end_ != End::None;
}

void Peer::finishReceive() {
  receiving_.front()->isDone = true;
  receiving_.pop_front();
  headerBytes_ = 0;
}

/// Whether a read may proceed: of a header, or of bytes of a message with a posted receive.
bool Peer::canReceive() {
  while (hasHeader()) {
    if (readControl() || receiving_.empty())
      return false;
    uint64_t bytes = numberIn(header_);
    if (receiving_.front()->bytes != bytes) {
      difference_ = {bytes, receiving_.front()->bytes};
      end_ = End::Left; // the rest of the stream cannot be interpreted
      return false;
    }
    if (bytes > 0)
      return true;
    finishReceive();
  }
  return true;
}

/// The next header is read with the rest of a message, to save a call.
bool Peer::receiveSome() {
  Header next;
  iovec parts[2] = {{header_.data() + headerBytes_, header_.size() - headerBytes_}, {next.data(), next.size()}};
  if (hasHeader())
    parts[0] = {receiving_.front()->memory + receiving_.front()->moved,
                receiving_.front()->bytes - receiving_.front()->moved};
  ssize_t count = readv(socket_.get(), parts, hasHeader() ? 2 : 1);
  if (count <= 0) {
    endAt(count == 0 ? EPIPE : errno);
    return false;
  }
  auto bytes = static_cast<size_t>(count);
  if (!hasHeader()) {
    headerBytes_ += bytes;
    return true;
  }
  size_t ofMessage = std::min(bytes, parts[0].iov_len);
  receiving_.front()->moved += ofMessage;
  if (ofMessage == parts[0].iov_len) {
    finishReceive();
    header_ = next;
    headerBytes_ = bytes - ofMessage;
  }
  return true;
}

bool Peer::moveNow() {
  bool moved = false;
  while (isOpen() && !cannotSend_ && !sending_.empty() && sendSome())
    moved = true;
  while (isOpen() && canReceive() && receiveSome())
    moved = true;
  if (cannotSend_ && isOpen()) // all messages with posted receives have been read
    endUnread();
  return moved;
}

//===- waiting, and the end ---------------------------------------------------------------------------------------===//

std::optional<short> Peer::events() const {
  if (!isOpen())
    return std::nullopt;
  bool isStalled = hasHeader() && receiving_.empty();
  return static_cast<short>((sending_.empty() ? 0 : POLLOUT) | (isStalled ? 0 : POLLIN));
}

/// While no receive is posted, no read would detect that the connection has ended.
void Peer::notice(short events) {
  if (events & (POLLERR | POLLHUP) && hasHeader() && receiving_.empty())
    endUnread();
}

/// Ends the connection. Skips received messages without a posted receive, because a leave or abort message may follow.
void Peer::endUnread() {
  int available = 0;
  if (!hasHeader() || ioctl(socket_.get(), FIONREAD, &available) != 0)
    available = 0;
  std::string bytes(static_cast<size_t>(available), '\0');
  ssize_t peeked = recv(socket_.get(), bytes.data(), bytes.size(), MSG_PEEK);
  std::string_view unread(bytes.data(), static_cast<size_t>(std::max<ssize_t>(peeked, 0)));
  while (hasHeader() && !readControl()) {
    uint64_t message = numberIn(header_);
    headerBytes_ = 0;
    if (message > unread.size() || unread.size() - message < header_.size())
      break;
    headerBytes_ = unread.copy(reinterpret_cast<char *>(header_.data()), header_.size(), message);
    unread.remove_prefix(message + header_.size());
  }
  endAt(ECONNRESET);
}

/// With messages in flight this is not an orderly leave.
void Peer::leave() {
  if (!isOpen() || !sending_.empty())
    return;
  Header header = headerOf(kLeave, 0);
  // If this fails, the peer reports a lost connection.
  [[maybe_unused]] ssize_t sent = send(socket_.get(), header.data(), header.size(), MSG_NOSIGNAL);
}

/// Copies the rest of a partially sent message, because the caller may release its memory.
void Peer::keepRest(const sluice_transfer &transfer) {
  if (transfer.headerSent == 0 || transfer.isDone)
    return;
  lastWords_.assign(transfer.header.begin() + static_cast<std::ptrdiff_t>(transfer.headerSent), transfer.header.end());
  lastWords_.append(reinterpret_cast<const char *>(transfer.memory) + transfer.moved, transfer.bytes - transfer.moved);
}

void Peer::abort(int32_t culprit) {
  if (std::exchange(isAborted_, true) || !isOpen())
    return;
  if (!sending_.empty())
    keepRest(*sending_.front());
  Header header = headerOf(kAbort, static_cast<uint64_t>(culprit));
  lastWords_.append(header.begin(), header.end());
  hasSaidAll();
}

/// Returns whether the other end has acknowledged everything, or cannot receive it.
bool Peer::sendLastWords() {
  while (!lastWords_.empty()) {
    ssize_t sent = send(socket_.get(), lastWords_.data(), lastWords_.size(), MSG_NOSIGNAL);
    if (sent < 0 && isLater(errno))
      return false;
    lastWords_.erase(0, sent < 0 ? std::string::npos : static_cast<size_t>(sent));
  }
  int unheard = 0;
  return ioctl(socket_.get(), SIOCOUTQ, &unheard) != 0 || unheard == 0;
}

/// The other end may be sending last words as well. If neither end read, both would block.
void Peer::discardReceived() {
  char bytes[1 << 14];
  while (recv(socket_.get(), bytes, sizeof bytes, 0) > 0) {
  }
}

bool Peer::hasSaidAll() {
  if (isCut_ || !socket_.isOpen())
    return true;
  if (end_ == End::None && !sendLastWords()) {
    discardReceived();
    return false;
  }
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  isCut_ = true;
  connect(socket_.get(), &none, sizeof none); // closes the connection, even if the other end has unread data
  return true;
}

} // namespace sluice::transport
