// One process's view of the processes that run one model together. Transfers bytes through a transport
// (sluice/backend/transport.h) and converts its errors to exceptions.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "sluice/backend/transport.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::runtime {

struct ProcessGroupOptions {
  int rank = 0, size = 1; ///< over all processes
  int localRank = 0;      ///< rank among the processes of this machine
  std::string address;    ///< address of rank 0, "node1:29500"; empty: unspecified
  std::string secret;     ///< shared by all ranks and unique to this run
  double deadline = 60;   ///< longest wait of a call for a rank, in seconds
};

/// All ranks make the same calls in the same order with the same `what`, which names the operation in messages. A call
/// throws a deadline error with the missing rank, or a lost-peer error. The group is unusable after such an error.
class ProcessGroup {
public:
  /// Returns when all ranks have connected.
  ProcessGroup(const sluice_transport_library &library, const ProcessGroupOptions &options);
  ProcessGroup(const ProcessGroup &) = delete;
  ProcessGroup &operator=(const ProcessGroup &) = delete;
  /// Ends the other ranks if an exception that they do not share is in flight.
  ~ProcessGroup();

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  int localRank() const { return options_.localRank; }
  bool isFirst() const { return rank() == 0; }
  /// For communicators, which use the link while no call is in progress.
  const sluice_transport_link &link() const { return link_; }

  /// Throws an input error in all ranks unless each rank has rank 0's lines. The error contains the first differing
  /// rank and line, with both texts.
  void agree(const std::string &what, const std::vector<NamedText> &lines);
  /// Throws an error in all ranks if two ranks chose differently; a rank without alternatives passes "". The error
  /// lists each choice and its reason, if any. It is an input error, or an unsupported error if a rank chose `nothing`.
  void agreeOnChoice(const std::string &what, const std::string &choice, const std::string &why);
  static constexpr const char *nothing = "none";
  /// Exchanges the results of an operation that each rank has run, so that all ranks throw or none does. A failed rank
  /// throws its own error; the others throw the error of the first failed rank, with its number. `claims` are resources
  /// that no other rank may use, each with a text for users. A claim by two ranks is an unsupported error in all ranks.
  void settle(const std::string &what, const Status &own, const std::vector<NamedText> &claims);
  /// Copies rank 0's bytes to all ranks. All ranks pass the same number of bytes.
  void broadcast(const std::string &what, std::span<std::byte> bytes);
  /// Rank 0 receives the bytes of each rank; `sizes`, known to all ranks, are their sizes. Other ranks receive nothing.
  std::vector<std::vector<std::byte>> gather(const std::string &what, std::span<const std::byte> own,
                                             const std::vector<size_t> &sizes);
  /// A barrier: returns when all ranks have called it.
  void meet(const std::string &what);
  /// Called by all ranks except the stuck ones, after a wait for a device reached its deadline. Returns "rank 1 did not
  /// come" for the first silent rank, if this rank can determine it.
  std::string whoIsSilent() noexcept;
  /// Call this in all ranks before all throw the same error. The destructor then does not abort the other ranks, which
  /// end by themselves.
  void endAlike(const std::string &what);
  bool endsAlike() const { return endsAlike_; }
  /// Aborts the transport of all ranks. Thread-safe.
  void abort() noexcept { library_.abort(transport_); }

private:
  struct Transfer {
    bool isSend;
    int rank;
    std::vector<std::byte> bytes;
    sluice_transfer *handle = nullptr;
    bool isDone = false;
  };
  using Transfers = std::vector<Transfer>;

  /// In rank 0, a transfer with each other rank; in another rank, one with rank 0.
  Transfers withOthers(bool isSend, const std::vector<std::byte> &bytes) const;
  /// Completes all transfers. A failed transfer keeps its memory until the transport is closed.
  void move(const std::string &what, Transfers &transfers);
  /// Longest wait of this rank in `await`, in seconds.
  double patience() const;
  /// Starts the transfers and waits for them.
  void await(const std::string &what, Transfers &transfers);
  /// Like `gather`, for sizes that are not known in advance.
  std::vector<std::vector<std::byte>> collect(const std::string &what, std::span<const std::byte> own);
  /// Like `broadcast`, for a text whose length is available only in rank 0.
  std::string spread(const std::string &what, std::string text);
  void check(sluice_status status, const std::string &what) const;

  const sluice_transport_library &library_;
  ProcessGroupOptions options_;
  sluice_transport *transport_ = nullptr;
  sluice_transport_link link_;
  int exceptions_;         ///< exceptions in flight at construction
  bool endsAlike_ = false; ///< the other ranks have the same error
  std::vector<Transfers> failed_;
};

} // namespace sluice::runtime
