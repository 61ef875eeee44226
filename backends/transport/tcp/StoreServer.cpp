#include "backends/transport/Fail.h"
#include "backends/transport/tcp/Store.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>
#include <list>
#include <map>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <vector>

namespace sluice::transport {

using Clock = std::chrono::steady_clock;

static constexpr size_t kMostClients = 4096;
static constexpr size_t kMostStoredBytes = size_t(64) << 20;
static constexpr std::chrono::seconds kHelloTime{10}; // timeout of the secret
static constexpr int kPollMilliseconds = 1000;

namespace {

struct Client {
  Socket socket;
  Deadline hello;         // for the secret
  bool isKnown = false;   // has sent the right secret
  bool isLeaving = false; // disconnect it when `out` is sent
  std::string in, out;    // unprocessed and unsent bytes. Reads stop while a reply is pending, so both are bounded
};

} // namespace

bool isSameSecret(const std::string &one, const std::string &other) {
  if (one.size() != other.size())
    return false;
  unsigned differences = 0;
  for (size_t i = 0; i < one.size(); ++i)
    differences |= static_cast<unsigned char>(one[i]) ^ static_cast<unsigned char>(other[i]);
  return differences == 0;
}

class StoreServer::Impl {
public:
  Impl(const Address &at, const std::string &secret)
      : secret_(secret), listening_(listenAt(at)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!wake_.isOpen())
      fail(SLUICE_EXHAUSTED, "cannot create the event of the store: ", std::strerror(errno));
    address = {at.host, portOf(listening_)};
    startThread();
  }

  ~Impl() {
    uint64_t one = 1;
    [[maybe_unused]] ssize_t written = write(wake_.get(), &one, sizeof one); // does not block: the counter is 0
    thread_.join();
  }

  Address address;

private:
  void startThread();
  void serve();
  void acceptAll();
  bool isDone(Client &client, short events, Deadline now);
  bool advance(Client &client);
  StoreFrame answer(Client &client, StoreFrame question);
  StoreFrame set(StoreFrame question);

  std::string secret_;
  Socket listening_, wake_;
  std::list<Client> clients_;
  std::map<std::string, std::string> values_;
  size_t storedBytes_ = 0;
  std::thread thread_;
};

/// Starts the thread with all signals blocked, so that other threads of the program handle them.
void StoreServer::Impl::startThread() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (const std::system_error &) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!thread_.joinable())
    fail(SLUICE_EXHAUSTED,
         "cannot start the thread of the store: the process has too many threads or too little memory");
}

StoreFrame StoreServer::Impl::set(StoreFrame question) {
  auto found = values_.find(question.key);
  if (found != values_.end())
    return {found->second == question.value ? StoreFrame::Ok : StoreFrame::Taken, "", ""};
  size_t bytes = question.key.size() + question.value.size();
  if (storedBytes_ + bytes > kMostStoredBytes)
    return {StoreFrame::Full, "", ""};
  storedBytes_ += bytes;
  values_.emplace(std::move(question.key), std::move(question.value));
  return {StoreFrame::Ok, "", ""};
}

/// Throws for an invalid request.
StoreFrame StoreServer::Impl::answer(Client &client, StoreFrame question) {
  if (!client.isKnown) {
    client.isKnown = question.kind == StoreFrame::Hello && isSameSecret(question.value, secret_);
    client.isLeaving = !client.isKnown;
    return {client.isKnown ? StoreFrame::Ok : StoreFrame::Refused, "", ""};
  }
  if (question.key.empty())
    fail(SLUICE_INVALID, "a question has no key");
  if (question.kind == StoreFrame::Set)
    return set(std::move(question));
  if (question.kind != StoreFrame::Get)
    fail(SLUICE_INVALID, "what came is no question");
  auto found = values_.find(question.key);
  if (found == values_.end())
    return {StoreFrame::Absent, "", ""};
  return {StoreFrame::Ok, "", found->second};
}

/// Reads, replies and sends as far as possible without waiting; false if the client must be disconnected.
bool StoreServer::Impl::advance(Client &client) {
  bool isGone = false;
  if (client.out.empty())
    isGone = receiveNow(client.socket, client.in) == Traffic::Gone;
  while (true) {
    if (!client.out.empty() && sendNow(client.socket, client.out) == Traffic::Gone)
      return false;
    if (!client.out.empty())
      return true; // continues when the socket is writable
    if (client.isLeaving)
      return false;
    std::optional<StoreFrame> question = takeFrame(client.in, client.isKnown ? kMostValueBytes : kMostSecretBytes);
    if (!question)
      return !isGone;
    client.out = encodeFrame(answer(client, std::move(*question)));
  }
}

/// Whether the client left, or was disconnected.
bool StoreServer::Impl::isDone(Client &client, short events, Deadline now) {
  if (!client.isKnown && now > client.hello)
    return true;
  if (events == 0)
    return false;
  try {
    return !advance(client);
  } catch (const std::exception &) { // of what it sent, or of memory
    return true;
  }
}

void StoreServer::Impl::acceptAll() {
  while (clients_.size() < kMostClients) {
    Socket socket = acceptNow(listening_);
    if (!socket.isOpen()) {
      if (errno == EMFILE || errno == ENFILE) // until a client leaves
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      return;
    }
    clients_.push_back({std::move(socket), Clock::now() + kHelloTime, false, false, "", ""});
  }
}

void StoreServer::Impl::serve() {
  while (true) {
    std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0}, {listening_.get(), POLLIN, 0}};
    if (clients_.size() >= kMostClients)
      polled.back().fd = -1;
    for (const Client &client : clients_)
      polled.push_back({client.socket.get(), static_cast<short>(client.out.empty() ? POLLIN : POLLOUT), 0});
    if (poll(polled.data(), polled.size(), kPollMilliseconds) < 0)
      continue;
    if (polled[0].revents != 0)
      return;
    size_t at = 2;
    Deadline now = Clock::now();
    for (auto client = clients_.begin(); client != clients_.end(); ++at)
      client = isDone(*client, polled[at].revents, now) ? clients_.erase(client) : std::next(client);
    if (polled[1].revents != 0)
      acceptAll();
  }
}

StoreServer::StoreServer(const Address &address, const std::string &secret) {
  if (secret.empty() || secret.size() > kMostSecretBytes)
    fail(SLUICE_USAGE, "the secret of a store has ", secret.size(), " bytes, and may have 1 to ", kMostSecretBytes);
  impl_ = std::make_unique<Impl>(address, secret);
}

StoreServer::~StoreServer() = default;

const Address &StoreServer::address() const { return impl_->address; }

} // namespace sluice::transport
