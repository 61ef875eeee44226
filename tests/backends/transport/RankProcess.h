// One rank of several processes: its end of a transport, and the host's exchanges over it.
#pragma once

#include "sluice/backend/collectives.h"
#include "sluice/backend/host.h"
#include "tests/conformance/Exchanges.h"

#include <string>
#include <utility>
#include <vector>

namespace sluice::test {

/// A status and its message.
using Outcome = std::pair<sluice_status, std::string>;

class RankProcess {
public:
  /// Loads the library as a plugin is loaded; exits on failure.
  RankProcess(const std::string &library, int32_t rank, int32_t size);
  ~RankProcess();
  RankProcess(const RankProcess &) = delete;

  Outcome open(const char *address, const char *secret, double deadline);
  /// A communicator of the host's backend, over the transport.
  void join(double deadline);

  int32_t rank() const { return rank_; }
  int32_t size() const { return size_; }
  const sluice_transport_library &library() const { return *library_; }
  sluice_transport *transport() const { return transport_; }

  Outcome exchange(const conformance::Task &task, const void *send, void *receive);
  Outcome error();
  void abort();
  int64_t exchanges(int32_t kind);

  /// Exchanges elements that follow from the seed, in place where asked for, and compares what comes, bit by bit, with what
  /// loops in the order of ranks give, and with sums in double precision. The text of what is wrong, or nothing.
  std::string check(const conformance::Task &task, unsigned seed, bool inPlace);

  /// Until the message is there, or an error.
  Outcome wait(sluice_transfer *transfer, double seconds);

private:
  const sluice_backend_run &half() const { return *sluice_host_backend()->run; }
  Outcome outcome(sluice_status status);

  int32_t rank_, size_;
  const sluice_transport_library *library_ = nullptr;
  sluice_transport *transport_ = nullptr;
  sluice_run *run_ = nullptr;
  sluice_queue *queue_ = nullptr;
  sluice_communicator *communicator_ = nullptr;
};

} // namespace sluice::test
