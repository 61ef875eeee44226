// An assignment of a placement graph's groups to devices as what the compiler would make of it: the launches and copies
// of a call, in the order of the program, and the buffers that they touch.
#pragma once

#include "passes/assign/PlacementGraph.h"

namespace sluice::passes {

/// What kernels and copies take, by device.
struct AssignmentCosts {
  struct Kernel {
    double seconds = 0;
    int64_t workspace = 0;
  };
  struct Link {
    double latency, bytesPerSecond;
    double secondsFor(double bytes) const { return latency + bytes / bytesPerSecond; }
  };

  std::vector<std::vector<Kernel>> kernels; ///< [group][device]
  std::vector<std::vector<Link>> links;     ///< [from][to]
  std::vector<int64_t> alignments;          ///< [device]: what buffers begin at multiples of

  uint32_t deviceCount() const { return uint32_t(links.size()); }
  /// The host's, then for each accelerator one that computes and one for each direction of copies.
  unsigned queueCount() const { return 3 * deviceCount() - 2; }
};

struct AssignedCall {
  static constexpr unsigned kNone = ~0u;

  /// Some bytes that actions touch: of a state's memory slot or mirror, or transient.
  struct Buffer {
    uint32_t device;
    int64_t bytes;
    std::optional<int64_t> offset; ///< of a memory slot in the arena of states
    unsigned maker = kNone;        ///< the first action that writes it
    bool isInput = false, outlivesCall = false;

    /// Whether the host writes it before the call.
    bool isWrittenByHost() const { return isInput && maker == kNone; }
  };

  struct Action {
    unsigned queue = 0;
    double seconds = 0;                                ///< alone
    bool recurs = true;                                ///< in every call
    std::optional<std::pair<uint32_t, uint32_t>> link; ///< of a copy: the devices
    llvm::SmallVector<unsigned, 4> reads, writes;      ///< buffers
    int64_t workspace = 0;
  };

  std::vector<Buffer> buffers;
  std::vector<Action> actions;
  std::vector<unsigned> asked;        ///< the host's buffers of what it may ask for behind the call
  std::vector<unsigned> stateBuffers; ///< by state
  std::vector<int64_t> stateBytes;    ///< by device
};

/// The call of an assignment in which each group is where it can run.
AssignedCall callOf(const PlacementGraph &graph, const AssignmentCosts &costs, const std::vector<uint32_t> &devices);

} // namespace sluice::passes
