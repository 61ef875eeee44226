#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/launch/Store.h"

#include <algorithm>
#include <thread>

namespace sluice::runtime {

using Clock = std::chrono::steady_clock;

static constexpr std::chrono::milliseconds kFirstPause{1}, kLongestPause{50}; // between questions for a key

/// Sends a question and waits for the answer. One that comes after its deadline would be taken for that of the next
/// question, so the connection ends with it.
StoreFrame StoreClient::ask(const StoreFrame &question, Deadline deadline) {
  if (!socket_.isOpen())
    throw Error(ExitCode::peerLost, concat("the connection to the store of rank 0 at ", address_.text(), " has ended"));
  Socket socket = std::move(socket_); // it is given back with a whole answer
  Traffic traffic = sendAll(socket, encodeFrame(question), deadline);
  std::optional<StoreFrame> frame;
  while (traffic == Traffic::Done && !frame) {
    traffic = receiveSome(socket, received_, deadline);
    try {
      frame = takeFrame(received_);
    } catch (const Error &) {
      failInvalid(concat("what answers at ", address_.text(), " is no store"));
    }
  }
  if (!frame && traffic == Traffic::Late)
    throw Error(ExitCode::deadline, concat("the store of rank 0 at ", address_.text(), " did not answer in time"));
  if (!frame)
    throw Error(ExitCode::peerLost, concat("the store of rank 0 at ", address_.text(), " went away"));
  socket_ = std::move(socket);
  return std::move(*frame);
}

StoreClient::StoreClient(const Address &address, const std::string &secret, Duration within) : address_(address) {
  Deadline deadline = Clock::now() + within;
  socket_ = connectTo(address, deadline);
  StoreFrame answer = ask({StoreFrame::Hello, "", secret}, deadline);
  if (answer.kind != StoreFrame::Ok)
    failInvalid(concat("the store at ", address.text(), " is of another run: it has another secret"));
}

static void checkKey(const std::string &key) {
  if (key.empty() || key.size() > kMostKeyBytes)
    failUsage(
        concat("the key ", quote(key), " of a store has ", key.size(), " bytes, and may have 1 to ", kMostKeyBytes));
}

void StoreClient::set(const std::string &key, const std::string &value, Duration within) {
  checkKey(key);
  if (value.size() > kMostValueBytes)
    failUsage(concat("the value of ", quote(key), " has ", value.size(), " bytes, and a store takes ", kMostValueBytes,
                     " at most"));
  StoreFrame answer = ask({StoreFrame::Set, key, value}, Clock::now() + within);
  if (answer.kind == StoreFrame::Taken)
    failInvalid(concat("the key ", quote(key), " of the store at ", address_.text(), " has another value already"));
  if (answer.kind != StoreFrame::Ok)
    failExhausted(concat("the store at ", address_.text(), " has no room for ", quote(key)));
}

std::string StoreClient::get(const std::string &key, Duration within) {
  checkKey(key);
  Deadline deadline = Clock::now() + within;
  StoreFrame question{StoreFrame::Get, key, ""};
  std::chrono::milliseconds pause = kFirstPause;
  while (true) {
    StoreFrame answer = ask(question, deadline);
    if (answer.kind == StoreFrame::Ok)
      return std::move(answer.value);
    if (Clock::now() + pause >= deadline)
      throw Error(ExitCode::deadline, concat("nobody set ", quote(key), " in the store of rank 0 at ", address_.text(),
                                             " within ", within.count(), " ms"));
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

} // namespace sluice::runtime
