// Predicts the compiled form of an assignment of a placement graph's groups to devices: the launches and copies of a
// call, in program order, and the buffers that they access.
#pragma once

#include "passes/assign/PlacementGraph.h"

namespace sluice::passes {

/// Times of kernels and copies, by device.
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
  std::vector<int64_t> alignments;          ///< [device]: alignment of buffers

  uint32_t deviceCount() const { return uint32_t(links.size()); }
  /// The host has one queue; each accelerator has a compute queue and a queue for each copy direction.
  unsigned queueCount() const { return 3 * deviceCount() - 2; }
};

struct AssignedCall {
  static constexpr unsigned kNone = ~0u;

  /// A range of bytes that actions access: a state's memory slot or mirror, or a transient value.
  struct Buffer {
    uint32_t device;
    int64_t bytes;
    std::optional<int64_t> offset; ///< of a memory slot in the state arena
    unsigned maker = kNone;        ///< the first action that writes it
    bool isInput = false, outlivesCall = false;

    /// Whether the host writes it before the call.
    bool isWrittenByHost() const { return isInput && maker == kNone; }
  };

  struct Action {
    unsigned queue = 0;
    double seconds = 0;                                ///< without contention
    bool recurs = true;                                ///< runs in every call
    std::optional<std::pair<uint32_t, uint32_t>> link; ///< devices of a copy
    llvm::SmallVector<unsigned, 4> reads, writes;      ///< buffers
    int64_t workspace = 0;
  };

  std::vector<Buffer> buffers;
  std::vector<Action> actions;
  std::vector<unsigned> asked;        ///< host buffers that the caller may fetch after the call
  std::vector<unsigned> stateBuffers; ///< by state
  std::vector<int64_t> stateBytes;    ///< by device
};

/// The call of an assignment. Each group must be on a device that can run it.
AssignedCall callOf(const PlacementGraph &graph, const AssignmentCosts &costs, const std::vector<uint32_t> &devices);

} // namespace sluice::passes
