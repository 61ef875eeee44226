// The store at rank 0, on this machine: its values, rejected clients, and waiting clients.
#include "backends/transport/Fail.h"
#include "backends/transport/tcp/Store.h"
#include "tests/backends/transport/FreeAddress.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <poll.h>
#include <random>
#include <sys/socket.h>
#include <thread>
#include <vector>

using namespace sluice::transport;
using namespace std::chrono_literals;

static const Address anyPort{"127.0.0.1", 0};
static const std::string secret = "the secret of this run";

static Deadline in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

/// The message of an error with this code.
static std::string storeError(sluice_status code, const std::function<void()> &body) {
  try {
    body();
  } catch (const Error &error) {
    EXPECT_EQ(error.status(), code) << error.what();
    return error.what();
  }
  return "no error";
}

static bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

TEST(Store, CarriesWhatRanksLeave) {
  StoreServer server(anyPort, secret);
  StoreClient zero(server.address(), secret, 5s), one(server.address(), secret, 5s);
  std::string bytes("\0\xff\n\x89SL1", 7), large(kMostValueBytes, 'x');
  zero.set("id", bytes, 5s);
  zero.set("empty", "", 5s);
  one.set(std::string(kMostKeyBytes, 'k'), large, 5s);
  EXPECT_EQ(one.get("id", 5s), bytes);
  EXPECT_EQ(one.get("empty", 5s), "");
  EXPECT_EQ(zero.get(std::string(kMostKeyBytes, 'k'), 5s), large);
}

TEST(Store, LetsManyRanksMeet) {
  constexpr int ranks = 24;
  StoreServer server(anyPort, secret);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      StoreClient client(server.address(), secret, 20s);
      client.set("rank " + std::to_string(rank), std::to_string(rank * rank), 20s);
      for (int other = 0; other < ranks; ++other)
        EXPECT_EQ(client.get("rank " + std::to_string(other), 20s), std::to_string(other * other));
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(Store, WaitsForKeysUntilADeadline) {
  StoreServer server(anyPort, secret);
  StoreClient client(server.address(), secret, 5s);
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(storeError(SLUICE_DEADLINE, [&] { client.get("id", 100ms); }),
            "nobody set 'id' in the store of rank 0 at " + server.address().text() + " within 100 ms");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  std::thread late([&] {
    std::this_thread::sleep_for(100ms);
    StoreClient(server.address(), secret, 5s).set("id", "here", 5s);
  });
  EXPECT_EQ(client.get("id", 10s), "here");
  late.join();
}

TEST(Store, SetsAKeyOnce) {
  StoreServer server(anyPort, secret);
  StoreClient client(server.address(), secret, 5s);
  client.set("id", "one", 5s);
  client.set("id", "one", 5s);
  EXPECT_TRUE(has(storeError(SLUICE_INVALID, [&] { client.set("id", "two", 5s); }), "the key 'id' of the store at"));
  EXPECT_EQ(client.get("id", 5s), "one");
}

TEST(Store, RefusesWhatIsTooLong) {
  StoreServer server(anyPort, secret);
  StoreClient client(server.address(), secret, 5s);
  EXPECT_TRUE(has(storeError(SLUICE_USAGE, [&] { client.set("", "", 5s); }), "has 0 bytes, and may have 1 to 256"));
  EXPECT_TRUE(has(storeError(SLUICE_USAGE, [&] { client.get(std::string(257, 'k'), 5s); }), "has 257 bytes"));
  EXPECT_TRUE(has(storeError(SLUICE_USAGE, [&] { client.set("id", std::string(kMostValueBytes + 1, 'x'), 5s); }),
                  "has 1048577 bytes, and a store takes 1048576 at most"));
  EXPECT_TRUE(has(storeError(SLUICE_USAGE, [] { StoreServer(anyPort, ""); }), "the secret of a store has 0 bytes"));
  client.set("id", "still here", 5s);
}

TEST(Store, HasBoundedRoom) {
  StoreServer server(anyPort, secret);
  StoreClient client(server.address(), secret, 5s);
  std::string large(kMostValueBytes, 'x');
  for (int i = 0; i < 63; ++i)
    client.set(std::to_string(i), large, 5s);
  EXPECT_TRUE(has(storeError(SLUICE_EXHAUSTED, [&] { client.set("63", large, 5s); }), "has no room for '63'"));
  EXPECT_EQ(client.get("62", 5s), large);
}

//===- who is kept out --------------------------------------------------------------------------------------------===//

TEST(Store, RefusesOtherSecrets) {
  StoreServer server(anyPort, secret);
  for (const std::string &other :
       {std::string("another"), secret + "x", std::string(secret.size(), 'x'), std::string()})
    EXPECT_EQ(storeError(SLUICE_INVALID, [&] { StoreClient(server.address(), other, 5s); }),
              "the store at " + server.address().text() + " is of another run: it has another secret");
  StoreClient(server.address(), secret, 5s).set("id", "here", 5s);
}

TEST(Store, OfTwoRunsDoNotMeet) {
  StoreServer first(anyPort, "first"), second(anyPort, "second");
  EXPECT_TRUE(has(storeError(SLUICE_INVALID, [&] { StoreServer(first.address(), "second"); }),
                  "cannot listen at " + first.address().text() + ": Address already in use"));
  StoreClient ofFirst(first.address(), "first", 5s), ofSecond(second.address(), "second", 5s);
  ofFirst.set("id", "1", 5s);
  ofSecond.set("id", "2", 5s);
  EXPECT_EQ(ofFirst.get("id", 5s), "1");
  EXPECT_EQ(ofSecond.get("id", 5s), "2");
  storeError(SLUICE_INVALID, [&] { StoreClient(second.address(), "first", 5s); });
}

TEST(Store, ListensAtItsAddressAlone) {
  StoreServer server(anyPort, secret);
  Address other{"127.0.0.2", server.address().port};
  EXPECT_TRUE(has(storeError(SLUICE_DEADLINE, [&] { connectTo(other, in(100ms)); }), "Connection refused"));
}

/// The bytes that a store sends to a stranger before it disconnects.
static std::string replyTo(const Address &address, const std::string &bytes) {
  Socket socket = connectTo(address, in(5s));
  sendAll(socket, bytes, in(5s));
  std::string reply;
  Traffic traffic = Traffic::Done;
  while (traffic == Traffic::Done)
    traffic = receiveSome(socket, reply, in(5s));
  EXPECT_EQ(traffic, Traffic::Gone) << "it does not cut off who sends " << bytes.substr(0, 20);
  return reply;
}

TEST(Store, CutsOffWhoSendsAnythingElse) {
  StoreServer server(anyPort, secret);
  StoreClient before(server.address(), secret, 5s);
  std::string hello = encodeFrame({StoreFrame::Hello, "", secret}), ok = encodeFrame({StoreFrame::Ok, "", ""});
  std::string endless = encodeFrame({StoreFrame::Set, "key", ""});
  endless[10] = '\x7f'; // 2 GB are announced
  EXPECT_EQ(replyTo(server.address(), "GET / HTTP/1.1\r\n\r\n"), "");
  EXPECT_EQ(replyTo(server.address(), std::string(1 << 20, '\0')), "");
  EXPECT_EQ(replyTo(server.address(), encodeFrame({StoreFrame::Hello, "", std::string(kMostSecretBytes + 1, 's')})),
            "");
  EXPECT_EQ(replyTo(server.address(), hello + endless), ok);
  EXPECT_EQ(replyTo(server.address(), hello + encodeFrame({StoreFrame::Ok, "key", ""})), ok);
  EXPECT_EQ(replyTo(server.address(), hello + encodeFrame({StoreFrame::Get, "", ""})), ok);
  std::string refused = encodeFrame({StoreFrame::Refused, "", ""});
  EXPECT_EQ(replyTo(server.address(), encodeFrame({StoreFrame::Set, "id", "stranger"})), refused);
  before.set("id", "here", 5s);
  EXPECT_EQ(before.get("id", 5s), "here");
}

/// A client that sends nothing, or half a frame, does not block other clients.
TEST(Store, ServesOthersBesideTheSilent) {
  StoreServer server(anyPort, secret);
  Socket silent = connectTo(server.address(), in(5s)), half = connectTo(server.address(), in(5s));
  sendAll(half, encodeFrame({StoreFrame::Hello, "", secret}).substr(0, 15), in(5s));
  StoreClient client(server.address(), secret, 5s);
  client.set("id", "here", 5s);
  sendAll(half, encodeFrame({StoreFrame::Hello, "", secret}).substr(15), in(5s));
  std::string reply;
  EXPECT_EQ(receiveSome(half, reply, in(5s)), Traffic::Done);
  EXPECT_EQ(reply, encodeFrame({StoreFrame::Ok, "", ""}));
}

//===- who waits --------------------------------------------------------------------------------------------------===//

TEST(Store, IsWaitedFor) {
  Address address = sluice::test::freeAddress();
  std::unique_ptr<StoreServer> server;
  std::thread late([&] {
    std::this_thread::sleep_for(200ms);
    server = std::make_unique<StoreServer>(address, secret);
  });
  StoreClient client(address, secret, 20s);
  client.set("id", "here", 5s);
  late.join();
}

TEST(Store, ThatDoesNotComeIsWaitedForUntilADeadline) {
  Address address = sluice::test::freeAddress();
  EXPECT_EQ(storeError(SLUICE_DEADLINE, [&] { StoreClient(address, secret, 200ms); }),
            "cannot connect to " + address.text() + " in time: Connection refused");
  EXPECT_TRUE(has(storeError(SLUICE_DEADLINE, [] { StoreClient({"no.such.host.invalid", 80}, secret, 50ms); }),
                  "cannot connect to no.such.host.invalid:80 in time"));
}

TEST(Store, ThatGoesAwayEndsWaiting) {
  auto server = std::make_unique<StoreServer>(anyPort, secret);
  Address address = server->address();
  StoreClient client(address, secret, 5s);
  std::thread end([&] {
    std::this_thread::sleep_for(100ms);
    server.reset();
  });
  EXPECT_EQ(storeError(SLUICE_PEER_LOST, [&] { client.get("id", 20s); }),
            "the store of rank 0 at " + address.text() + " went away");
  end.join();
  EXPECT_TRUE(has(storeError(SLUICE_PEER_LOST, [&] { client.get("id", 20s); }), "has ended"));
}

/// Listens, and answers the first who comes with these bytes.
static std::thread answering(const Socket &listening, const std::string &bytes) {
  return std::thread([&listening, bytes] {
    pollfd one{listening.get(), POLLIN, 0};
    poll(&one, 1, 5000);
    Socket peer(accept(listening.get(), nullptr, nullptr));
    std::string heard;
    receiveSome(peer, heard, in(5s));
    sendAll(peer, bytes, in(5s));
    receiveSome(peer, heard, in(5s));
  });
}

TEST(Store, IsToldFromOthersWhoListen) {
  Socket listening = listenAt(anyPort);
  Address address{anyPort.host, portOf(listening)};
  std::thread web = answering(listening, "HTTP/1.1 400 Bad Request\r\n");
  EXPECT_EQ(storeError(SLUICE_INVALID, [&] { StoreClient(address, secret, 5s); }),
            "what answers at " + address.text() + " is no store");
  web.join();
  std::thread silent = answering(listening, "");
  EXPECT_EQ(storeError(SLUICE_DEADLINE, [&] { StoreClient(address, secret, 200ms); }),
            "the store of rank 0 at " + address.text() + " did not answer in time");
  silent.join();
}

//===- frames -----------------------------------------------------------------------------------------------------===//

TEST(StoreFrames, AreTakenWhenTheyAreWhole) {
  std::string bytes = encodeFrame({StoreFrame::Set, "key", "value"}), come;
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(takeFrame(come));
    come += bytes[i];
  }
  come += "\x89S"; // of the next one
  std::optional<StoreFrame> frame = takeFrame(come);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->kind, StoreFrame::Set);
  EXPECT_EQ(frame->key + "=" + frame->value, "key=value");
  EXPECT_EQ(come, "\x89S");
}

/// Whatever bytes come, they are a frame, none yet, or refused.
TEST(StoreFrames, OfAnyBytesAreRefused) {
  std::mt19937 random(7);
  std::string sound = encodeFrame({StoreFrame::Set, "key", "value"});
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = sound.substr(0, random() % (sound.size() + 1));
    for (unsigned changes = random() % 3; changes > 0 && !bytes.empty(); --changes)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    try {
      takeFrame(bytes);
    } catch (const Error &) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}
