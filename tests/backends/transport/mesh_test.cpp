// One rank's end of connections to others, whose bytes the test writes itself.
#include "backends/transport/tcp/Mesh.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <utility>
#include <vector>

using namespace sluice::transport;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

Deadline soon() { return std::chrono::steady_clock::now() + 10s; }

/// Both ends of a connection.
std::pair<Socket, Socket> connected() {
  Socket listening = listenAt({"127.0.0.1", 0});
  Socket one = connectTo({"127.0.0.1", portOf(listening)}, soon()), other;
  while (!other.isOpen())
    other = acceptNow(listening);
  return {std::move(one), std::move(other)};
}

/// A header as it is on the wire, whose number is below 256.
std::string header(char kind, char number) { return "\x89SM"s + kind + number + std::string(7, '\0'); }
std::string message(const std::string &bytes) { return header(1, static_cast<char>(bytes.size())) + bytes; }
std::string leave() { return header(2, 0); }
std::string abortFor(int rank) { return header(3, static_cast<char>(rank)); }

/// One for each rank; that of the mesh's own is not open.
template <typename... Sockets> std::vector<Socket> list(Sockets... sockets) {
  std::vector<Socket> all;
  (all.push_back(std::move(sockets)), ...);
  return all;
}

/// The next message of four bytes from a rank, or the error that it ends with.
std::string next(Mesh &mesh, int32_t from) {
  std::string bytes = "....";
  try {
    sluice_transfer *transfer = mesh.receive(from, bytes.data(), bytes.size());
    for (Deadline end = soon(); !mesh.test(transfer);)
      if (std::chrono::steady_clock::now() > end)
        return "nothing comes";
  } catch (const Error &error) {
    return (bytes == "...." ? "" : bytes + ", and ") + error.what();
  }
  return bytes;
}

/// What rank 0 of two has, after the other has sent these bytes: two messages, or how they end.
std::string heard(const std::string &bytes) {
  auto [here, there] = connected();
  Mesh mesh(0, list(Socket(), std::move(here)));
  sendAll(there, bytes, soon());
  std::string first = next(mesh, 1);
  return first + "; " + next(mesh, 1);
}

} // namespace

TEST(Mesh, HearsMessages) { EXPECT_EQ(heard(message("four") + message("more")), "four; more"); }

TEST(Mesh, HearsWhatWasSaidBeforeTheEnd) {
  EXPECT_EQ(heard(message("four") + leave()), "four; rank 1 has left");
  EXPECT_EQ(heard(message("four") + abortFor(1)), "four; rank 1 was aborted");
  EXPECT_EQ(heard(message("four") + abortFor(7)), "four; rank 1 was aborted, because of rank 7");
}

TEST(Mesh, CutsOffWhoeverSpeaksOtherwise) {
  std::string lost = "rank 1 went away; rank 1 went away";
  EXPECT_EQ(heard("\x89SL"s + message("four").substr(3)), lost) << "the store's bytes";
  EXPECT_EQ(heard("\x88SM"s + message("four").substr(3)), lost);
  EXPECT_EQ(heard(header(0, 4) + "four"), lost);
  EXPECT_EQ(heard(header(4, 4) + "four"), lost);
  EXPECT_EQ(heard("GET / HTTP/1.1\r\n\r\n"), lost);
  EXPECT_EQ(heard(message("four") + "x" + message("more")), "four; rank 1 went away") << "a byte between messages";
}

TEST(Mesh, TellsMessagesOfAnotherSize) {
  std::string other = "rank 1 sent a message of 5 bytes, where 4 were to come";
  EXPECT_EQ(heard(message("fours") + message("more")), other + "; " + other);
}

/// No message of rank 1 is to be received, which is cut off behind the last of them.
TEST(Mesh, HearsWhatWasSaidBehindMessages) {
  auto [zeroToOne, oneToZero] = connected();
  auto [zeroToTwo, twoToZero] = connected();
  Mesh zero(0, list(Socket(), std::move(zeroToOne), std::move(zeroToTwo)));
  char bytes[4];
  sluice_transfer *transfer = zero.receive(2, bytes, sizeof bytes);
  sendAll(oneToZero, message("four") + message("more") + abortFor(7), soon());
  for (Deadline end = std::chrono::steady_clock::now() + 50ms; std::chrono::steady_clock::now() < end;)
    EXPECT_FALSE(zero.test(transfer));
  linger atOnce{1, 0};
  setsockopt(oneToZero.get(), SOL_SOCKET, SO_LINGER, &atOnce, sizeof atOnce);
  oneToZero = Socket();
  EXPECT_EQ(next(zero, 2), "rank 1 was aborted, because of rank 7");
}

/// Rank 2 ends rank 1, which is in the middle of a message to rank 0.
TEST(Mesh, SaysWhyBehindTheMessageThatItIsInTheMiddleOf) {
  auto [zeroToOne, oneToZero] = connected();
  auto [oneToTwo, twoToOne] = connected();
  Mesh zero(0, list(Socket(), std::move(zeroToOne)));
  auto one = std::make_unique<Mesh>(1, list(std::move(oneToZero), Socket(), std::move(oneToTwo)));
  std::string sent(32 << 20, 's'), received(sent.size(), '.'), expected = sent;
  one->send(0, sent.data(), sent.size());
  sendAll(twoToOne, abortFor(2), soon());
  EXPECT_EQ(next(*one, 2), "rank 2 was aborted");
  one->abort();
  sent.assign(sent.size(), 'x'); // it is the test's own again
  std::jthread ending([&] { one.reset(); });
  sluice_transfer *transfer = zero.receive(1, received.data(), received.size());
  for (Deadline end = soon(); !zero.test(transfer) && std::chrono::steady_clock::now() < end;) {
  }
  EXPECT_TRUE(received == expected);
  EXPECT_EQ(next(zero, 1), "rank 1 was aborted, because of rank 2");
}

/// Rank 1, which has waited for rank 2, ends rank 0: in vain if it was for as long as anybody waits.
TEST(Mesh, SaysForWhomItHasWaitedInVain) {
  for (double deadline : {0.05, 60.0}) {
    auto [zeroToOne, oneToZero] = connected();
    auto [oneToTwo, twoToOne] = connected();
    Mesh zero(0, list(Socket(), std::move(zeroToOne)));
    Mesh one(1, list(std::move(oneToZero), Socket(), std::move(oneToTwo)), deadline);
    char bytes[4];
    sluice_transfer *transfer = one.receive(2, bytes, sizeof bytes);
    for (Deadline end = std::chrono::steady_clock::now() + 60ms; std::chrono::steady_clock::now() < end;)
      EXPECT_FALSE(one.test(transfer));
    one.abort();
    EXPECT_EQ(next(zero, 1), deadline < 1 ? "rank 1 was aborted, because of rank 2" : "rank 1 was aborted");
  }
}

/// Rank 2 ends rank 1, which ends rank 0. Of rank 2 itself rank 0 hears nothing.
TEST(Mesh, RelaysWhoseEndItIs) {
  auto [zeroToOne, oneToZero] = connected();
  auto [zeroToTwo, twoToZero] = connected();
  auto [oneToTwo, twoToOne] = connected();
  Mesh zero(0, list(Socket(), std::move(zeroToOne), std::move(zeroToTwo)));
  Mesh one(1, list(std::move(oneToZero), Socket(), std::move(oneToTwo)));
  sendAll(twoToOne, abortFor(2), soon());
  EXPECT_EQ(next(one, 2), "rank 2 was aborted");
  one.abort();
  EXPECT_EQ(next(zero, 1), "rank 1 was aborted, because of rank 2");
  EXPECT_EQ(next(zero, 2), "rank 1 was aborted, because of rank 2");
}
