// The processes that run one model together, as one of them sees it: bytes to and from the others through a transport
// (sluice/backend/transport.h), with its errors as exceptions.
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
  int rank = 0, size = 1; ///< of all processes
  int localRank = 0;      ///< among those of this machine
  std::string address;    ///< where rank 0 is found, "node1:29500"; empty: nobody said
  std::string secret;     ///< that all ranks have, and no other run
  double deadline = 60;   ///< seconds that anything waits for a rank
};

/// Its calls are made by all ranks, in one order and with one `what`: what they wait for, for messages. Each throws an error of
/// a passed deadline that names a rank which did not come, or of a lost peer. Then nothing more can be said to the others.
class ProcessGroup {
public:
  /// Returns when all ranks have come.
  ProcessGroup(const sluice_transport_library &library, const ProcessGroupOptions &options);
  ProcessGroup(const ProcessGroup &) = delete;
  ProcessGroup &operator=(const ProcessGroup &) = delete;
  /// Where an error is on its way that the others do not have, they end, too.
  ~ProcessGroup();

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  int localRank() const { return options_.localRank; }
  bool isFirst() const { return rank() == 0; }
  /// For communicators, which use it while nothing here is called.
  const sluice_transport_link &link() const { return link_; }

  /// Throws an error of input in all ranks unless each of them has rank 0's lines: it names the first rank that differs, and the
  /// first line, with both texts.
  void agree(const std::string &what, const std::vector<NamedText> &lines);
  /// Throws an error in all ranks if two of them chose differently, where there was a choice (else it is ""): it names what
  /// each chose, and why, if there is a reason. It is an error of input, or an unsupported one where one chose `nothing`.
  void agreeOnChoice(const std::string &what, const std::string &choice, const std::string &why);
  static constexpr const char *nothing = "none";
  /// How something ended in each rank: throws the own error, or else that of the first rank that has one, with its number.
  /// `claims` are what no other rank may have, each with a text for people; two that are claimed by two ranks are an unsupported
  /// error of all. Either ends all ranks alike.
  void settle(const std::string &what, const Status &own, const std::vector<NamedText> &claims);
  /// Puts rank 0's bytes into those of all. All have the same number.
  void broadcast(const std::string &what, std::span<std::byte> bytes);
  /// In rank 0: the bytes of each rank, `sizes` of them, which all ranks know; in others nothing.
  std::vector<std::vector<std::byte>> gather(const std::string &what, std::span<const std::byte> own,
                                             const std::vector<size_t> &sizes);
  /// Returns when all ranks have come.
  void meet(const std::string &what);
  /// For who waited for its device until a deadline, as all ranks did but those that are stuck: "rank 1 did not come", of the first
  /// that gives no sign of life, if this rank can tell.
  std::string whoIsSilent() noexcept;
  /// All ranks have come to one error, with which each ends by itself: nobody need end the others.
  void endAlike(const std::string &what);
  bool endsAlike() const { return endsAlike_; }
  /// Ends the transport of all ranks. Any thread may call it.
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

  /// One transfer with each other rank, or with rank 0 alone where this is another.
  Transfers withOthers(bool isSend, const std::vector<std::byte> &bytes) const;
  /// Does them all. What fails keeps its memory until the transport is closed.
  void move(const std::string &what, Transfers &transfers);
  double patience() const;
  void await(const std::string &what, Transfers &transfers);
  std::vector<std::vector<std::byte>> collect(const std::string &what, std::span<const std::byte> own);
  /// As `broadcast`, of a text whose length rank 0 alone knows.
  std::string spread(const std::string &what, std::string text);
  void check(sluice_status status, const std::string &what) const;

  const sluice_transport_library &library_;
  ProcessGroupOptions options_;
  sluice_transport *transport_ = nullptr;
  sluice_transport_link link_;
  int exceptions_;         ///< that were on their way when this was made
  bool endsAlike_ = false; ///< the others have the same error on their way
  std::vector<Transfers> failed_;
};

} // namespace sluice::runtime
