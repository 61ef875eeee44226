#include "backends/transport/Fail.h"
#include "backends/transport/tcp/Store.h"

#include <algorithm>
#include <thread>

namespace sluice::transport {

using Clock = std::chrono::steady_clock;

static constexpr std::chrono::milliseconds kFirstPause{1}, kLongestPause{50}; // between two queries for a key

/// Sends a request and waits for the reply. If the deadline passes, closes the connection: a late reply would be taken
/// for that of the next request.
StoreFrame StoreClient::ask(const StoreFrame &question, Deadline deadline) {
  if (!socket_.isOpen())
    fail(SLUICE_PEER_LOST, "the connection to the store of rank 0 at ", address_.text(), " has ended");
  Socket socket = std::move(socket_); // restored after a complete reply
  Traffic traffic = sendAll(socket, encodeFrame(question), deadline);
  std::optional<StoreFrame> frame;
  while (traffic == Traffic::Done && !frame) {
    traffic = receiveSome(socket, received_, deadline);
    try {
      frame = takeFrame(received_);
    } catch (const Error &) {
      fail(SLUICE_INVALID, "what answers at ", address_.text(), " is no store");
    }
  }
  if (!frame && traffic == Traffic::Late)
    fail(SLUICE_DEADLINE, "the store of rank 0 at ", address_.text(), " did not answer in time");
  if (!frame)
    fail(SLUICE_PEER_LOST, "the store of rank 0 at ", address_.text(), " went away");
  socket_ = std::move(socket);
  return std::move(*frame);
}

StoreClient::StoreClient(const Address &address, const std::string &secret, Duration within) : address_(address) {
  Deadline deadline = Clock::now() + within;
  socket_ = connectTo(address, deadline);
  StoreFrame answer = ask({StoreFrame::Hello, "", secret}, deadline);
  if (answer.kind != StoreFrame::Ok)
    fail(SLUICE_INVALID, "the store at ", address.text(), " is of another run: it has another secret");
}

static void checkKey(const std::string &key) {
  if (key.empty() || key.size() > kMostKeyBytes)
    fail(SLUICE_USAGE, "the key '", key, "' of a store has ", key.size(), " bytes, and may have 1 to ", kMostKeyBytes);
}

void StoreClient::set(const std::string &key, const std::string &value, Duration within) {
  checkKey(key);
  if (value.size() > kMostValueBytes)
    fail(SLUICE_USAGE, "the value of '", key, "' has ", value.size(), " bytes, and a store takes ", kMostValueBytes,
         " at most");
  StoreFrame answer = ask({StoreFrame::Set, key, value}, Clock::now() + within);
  if (answer.kind == StoreFrame::Taken)
    fail(SLUICE_INVALID, "the key '", key, "' of the store at ", address_.text(), " has another value already");
  if (answer.kind != StoreFrame::Ok)
    fail(SLUICE_EXHAUSTED, "the store at ", address_.text(), " has no room for '", key, "'");
}

std::optional<std::string> StoreClient::find(const std::string &key, Duration within) {
  checkKey(key);
  StoreFrame answer = ask({StoreFrame::Get, key, ""}, Clock::now() + within);
  if (answer.kind != StoreFrame::Ok)
    return std::nullopt;
  return std::move(answer.value);
}

std::string StoreClient::get(const std::string &key, Duration within) {
  Deadline deadline = Clock::now() + within;
  std::chrono::milliseconds pause = kFirstPause;
  while (true) {
    if (std::optional<std::string> value = find(key, std::chrono::ceil<Duration>(deadline - Clock::now())))
      return std::move(*value);
    if (Clock::now() + pause >= deadline)
      fail(SLUICE_DEADLINE, "nobody set '", key, "' in the store of rank 0 at ", address_.text(), " within ",
           within.count(), " ms");
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

} // namespace sluice::transport
