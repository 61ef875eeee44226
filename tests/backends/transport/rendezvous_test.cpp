// Ranks that find each other, each a thread here, while others knock at the ports at which they listen for each other.
#include "backends/transport/Fail.h"
#include "backends/transport/tcp/Rendezvous.h"
#include "backends/transport/tcp/Store.h"
#include "tests/backends/transport/FreeAddress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <vector>

using namespace sluice::transport;
using namespace std::chrono_literals;

namespace {

const std::string secret = "the secret of this run";

Deadline inTime() { return std::chrono::steady_clock::now() + 20s; }

/// Rank 0 of two, before the other has come.
class FirstRank {
public:
  FirstRank()
      : sockets_(std::async(std::launch::async, [this] { return meetAll({0, 2, store, secret, 20}); })),
        client_(store, secret, 20s) {}

  /// At the port at which it listens for the other.
  Socket knock() { return connectTo(addressOf(client_.get("rank 0", 20s)), inTime()); }

  /// The other comes. What rank 0 hears on its connection to it, of what it says then.
  std::string hears(const std::string &words) {
    std::vector<Socket> other = meetAll({1, 2, store, secret, 20}), own = sockets_.get();
    sendAll(other[0], words, inTime());
    std::string heard;
    receiveExactly(own[1], words.size(), heard, inTime());
    return heard;
  }

  const Address store = sluice::test::freeAddress();

private:
  std::future<std::vector<Socket>> sockets_;
  StoreClient client_;
};

std::string hello(const std::string &who, const std::string &withSecret) {
  return encodeFrame({StoreFrame::Hello, who, withSecret});
}

} // namespace

/// They come before the rank whose place they would take.
TEST(Rendezvous, CutsOffWhoIsNoRank) {
  FirstRank first;
  std::vector<Socket> strangers;
  for (const std::string &said : {
           std::string("GET / HTTP/1.1\r\n\r\n"),
           hello("rank 1", "another secret"),
           hello("rank 1", ""),
           hello("rank 0", secret), // itself
           hello("rank 2", secret), // of two
           encodeFrame({StoreFrame::Set, "rank 1", secret}),
           hello("rank 1", secret) + "x",
       })
    sendAll(strangers.emplace_back(first.knock()), said, inTime());
  EXPECT_EQ(first.hears("here"), "here");
  for (const Socket &stranger : strangers) {
    std::string answer;
    EXPECT_EQ(receiveSome(stranger, answer, inTime()), Traffic::Gone);
    EXPECT_EQ(answer, "");
  }
}

TEST(Rendezvous, IsNotHeldUpByTheSilent) {
  FirstRank first;
  std::vector<Socket> silent; // more than are kept
  for (int i = 0; i < 100; ++i)
    silent.push_back(first.knock());
  sendAll(silent.back(), hello("rank 1", secret).substr(0, 10), inTime());
  EXPECT_EQ(first.hears("here"), "here");
}
