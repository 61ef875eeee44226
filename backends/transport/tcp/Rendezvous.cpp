#include "backends/transport/tcp/Rendezvous.h"

#include "backends/transport/Fail.h"
#include "backends/transport/tcp/Store.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <list>
#include <memory>
#include <optional>
#include <poll.h>
#include <thread>

namespace sluice::transport {

using Clock = std::chrono::steady_clock;
using exchange::rankText;

static constexpr std::chrono::milliseconds kFirstLookAfter{1}, kLongestLookAfter{50}; // interval of store queries
// After the deadline, the time in which a store or a rank that has come must reply.
static constexpr std::chrono::milliseconds kAnswerTime{1000};
// After the deadline, the time in which rank 0 keeps the store, so that the others can query the missing ranks.
static constexpr std::chrono::milliseconds kLastWords{300};
static constexpr std::chrono::seconds kSecretTime{10}; // for an accepted connection to send the secret
static constexpr size_t kMostStrangers = 64;           // accepted connections that have not sent the secret yet
static constexpr std::string_view kReady = "!";        // sent by a rank with all its connections

namespace {

/// An accepted connection whose rank is not known yet.
struct Stranger {
  Socket socket;
  Deadline until;   // for its secret
  std::string said; // the bytes received so far
};

class Rendezvous {
public:
  explicit Rendezvous(const Run &run);
  std::vector<Socket> meet();

private:
  Deadline answerTime() const { return deadline_ + kAnswerTime; }
  StoreClient::Duration answerLeft() const;
  std::string hello(int32_t rank) const;
  [[noreturn]] void failLate(const std::vector<int32_t> &missing) const;

  void openStore();
  void leave(const std::string &key, const std::string &value, const std::string &contradiction);
  void announce();
  std::vector<int32_t> look();
  void awaitAddresses();
  Socket connectToRank(int32_t rank) const;
  void connectBelow();
  std::optional<int32_t> rankOf(Stranger &stranger) const;
  bool isSettled(Stranger &stranger);
  void pollStrangers();
  void acceptAbove();
  void awaitReady();

  const Run &run_;
  Deadline deadline_;
  std::unique_ptr<StoreServer> server_; // of rank 0, until all are ready
  std::unique_ptr<StoreClient> store_;
  Socket listening_;
  std::vector<std::string> addresses_; // of ranks that have joined
  std::vector<Socket> sockets_;
  std::list<Stranger> strangers_;
};

} // namespace

/// A deadline is limited to a year, which no wait exceeds and the clock can represent.
Rendezvous::Rendezvous(const Run &run)
    : run_(run),
      deadline_(Clock::now() +
                std::chrono::milliseconds(std::llround(std::clamp(run.deadline, 0.0, 365.0 * 24 * 3600) * 1000))),
      addresses_(static_cast<size_t>(run.size)), sockets_(static_cast<size_t>(run.size)) {}

StoreClient::Duration Rendezvous::answerLeft() const {
  return std::chrono::ceil<StoreClient::Duration>(answerTime() - Clock::now());
}

std::string Rendezvous::hello(int32_t rank) const {
  return encodeFrame({StoreFrame::Hello, rankText(rank), run_.secret});
}

void Rendezvous::failLate(const std::vector<int32_t> &missing) const {
  fail(SLUICE_DEADLINE, exchange::ranksHave(missing), " not come to ", run_.address.text(), " within ",
       exchange::secondsText(run_.deadline));
}

//===- the store --------------------------------------------------------------------------------------------------===//

void Rendezvous::openStore() {
  if (run_.rank == 0)
    server_ = std::make_unique<StoreServer>(run_.address, run_.secret);
  auto left = std::chrono::ceil<StoreClient::Duration>(deadline_ - Clock::now());
  try {
    store_ = std::make_unique<StoreClient>(run_.address, run_.secret, left);
  } catch (const Error &error) {
    if (error.status() != SLUICE_DEADLINE)
      throw;
    fail(SLUICE_DEADLINE, "rank 0 has not come within ", exchange::secondsText(run_.deadline), ": ", error.what());
  }
}

/// Sets a key of the store. If another process has set it to another value, throws `contradiction` followed by that
/// value.
void Rendezvous::leave(const std::string &key, const std::string &value, const std::string &contradiction) {
  try {
    store_->set(key, value, answerLeft());
  } catch (const Error &error) {
    std::optional<std::string> other;
    if (error.status() == SLUICE_INVALID)
      other = store_->find(key, answerLeft());
    if (!other)
      throw;
    fail(SLUICE_USAGE, contradiction, *other);
  }
}

void Rendezvous::announce() {
  leave("size", std::to_string(run_.size),
        rankText(run_.rank) + " is one of " + std::to_string(run_.size) + ", but others are of ");
  listening_ = listenAt({store_->localHost(), 0});
  Address own{store_->localHost(), portOf(listening_)};
  leave(rankText(run_.rank), own.text(), "two processes are " + rankText(run_.rank) + ": the other listens at ");
}

/// Queries addresses that are not known yet. Returns the ranks without one.
std::vector<int32_t> Rendezvous::look() {
  std::vector<int32_t> missing;
  for (int32_t rank = 0; rank < run_.size; ++rank) {
    std::string &address = addresses_[static_cast<size_t>(rank)];
    if (address.empty())
      address = store_->find(rankText(rank), answerLeft()).value_or("");
    if (address.empty())
      missing.push_back(rank);
  }
  return missing;
}

void Rendezvous::awaitAddresses() {
  std::chrono::milliseconds pause = kFirstLookAfter;
  for (std::vector<int32_t> missing = look(); !missing.empty(); missing = look()) {
    if (Clock::now() >= deadline_) {
      if (server_)
        std::this_thread::sleep_for(kLastWords);
      failLate(missing);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestLookAfter);
  }
}

//===- connections ------------------------------------------------------------------------------------------------===//

Socket Rendezvous::connectToRank(int32_t rank) const {
  try {
    return connectTo(addressOf(addresses_[static_cast<size_t>(rank)]), answerTime());
  } catch (const Error &error) {
    fail(error.status(), rankText(rank), " has come, but ", error.what());
  }
}

void Rendezvous::connectBelow() {
  for (int32_t rank = 0; rank < run_.rank; ++rank) {
    auto at = static_cast<size_t>(rank);
    Socket socket = connectToRank(rank);
    std::string expected = hello(rank), answer;
    Traffic traffic = sendAll(socket, hello(run_.rank), answerTime());
    if (traffic == Traffic::Done)
      traffic = receiveExactly(socket, expected.size(), answer, answerTime());
    if (traffic == Traffic::Late)
      failLate({rank});
    if (traffic == Traffic::Gone)
      fail(SLUICE_PEER_LOST, rankText(rank), " went away before all ranks were connected");
    if (!isSameSecret(answer, expected))
      fail(SLUICE_INVALID, "the process at ", addresses_[at], " is not ", rankText(rank), " of this run");
    sockets_[at] = std::move(socket);
  }
}

/// The rank of a connection; nothing while its message is incomplete. Throws if the connection is not from an expected
/// rank. Its only caller discards the error.
std::optional<int32_t> Rendezvous::rankOf(Stranger &stranger) const {
  std::optional<StoreFrame> frame = takeFrame(stranger.said, kMostSecretBytes);
  if (!frame)
    return std::nullopt;
  int32_t rank = run_.rank + 1;
  while (rank < run_.size && rankText(rank) != frame->key)
    ++rank;
  if (frame->kind != StoreFrame::Hello || !isSameSecret(frame->value, run_.secret) || rank == run_.size ||
      sockets_[static_cast<size_t>(rank)].isOpen() || !stranger.said.empty())
    fail(SLUICE_INVALID, "a stranger");
  return rank;
}

/// Whether the connection belongs to a rank now, or must be closed.
bool Rendezvous::isSettled(Stranger &stranger) {
  Traffic traffic = receiveNow(stranger.socket, stranger.said);
  try {
    std::optional<int32_t> rank = rankOf(stranger);
    if (!rank)
      return traffic == Traffic::Gone || Clock::now() > stranger.until;
    if (sendAll(stranger.socket, hello(run_.rank), stranger.until) == Traffic::Done)
      sockets_[static_cast<size_t>(*rank)] = std::move(stranger.socket);
  } catch (const Error &) { // an invalid message
  }
  return true;
}

void Rendezvous::pollStrangers() {
  std::vector<pollfd> polled = {{listening_.get(), POLLIN, 0}};
  for (const Stranger &stranger : strangers_)
    polled.push_back({stranger.socket.get(), POLLIN, 0});
  poll(polled.data(), polled.size(), 50);
  strangers_.remove_if([this](Stranger &stranger) { return isSettled(stranger); });
  for (Socket socket = acceptNow(listening_); socket.isOpen(); socket = acceptNow(listening_)) {
    if (strangers_.size() >= kMostStrangers)
      strangers_.pop_front();
    strangers_.push_back({std::move(socket), Clock::now() + kSecretTime, ""});
  }
}

void Rendezvous::acceptAbove() {
  while (true) {
    std::vector<int32_t> missing;
    for (int32_t rank = run_.rank + 1; rank < run_.size; ++rank)
      if (!sockets_[static_cast<size_t>(rank)].isOpen())
        missing.push_back(rank);
    if (missing.empty())
      return;
    if (Clock::now() >= answerTime())
      failLate(missing);
    pollStrangers();
  }
}

/// Waits until every rank is ready. Otherwise this rank could exit, and close its connections, while others still
/// connect.
void Rendezvous::awaitReady() {
  for (const Socket &socket : sockets_)
    if (socket.isOpen())
      sendAll(socket, kReady, answerTime()); // a failure is detected below
  for (int32_t rank = 0; rank < run_.size; ++rank) {
    const Socket &socket = sockets_[static_cast<size_t>(rank)];
    if (rank == run_.rank)
      continue;
    std::string said;
    Traffic traffic = receiveExactly(socket, kReady.size(), said, answerTime());
    if (traffic == Traffic::Late)
      failLate({rank});
    if (traffic == Traffic::Gone || said != kReady)
      fail(SLUICE_PEER_LOST, rankText(rank), " went away before all ranks were connected");
  }
}

std::vector<Socket> Rendezvous::meet() {
  openStore();
  announce();
  awaitAddresses();
  connectBelow();
  acceptAbove();
  awaitReady();
  return std::move(sockets_);
}

std::vector<Socket> meetAll(const Run &run) { return Rendezvous(run).meet(); }

} // namespace sluice::transport
