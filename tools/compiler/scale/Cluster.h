// A cluster of accelerators, as far as the time of a data-parallel step depends on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::compiler {

/// A link as a collective finds it.
struct ClusterLink {
  std::string kind;          ///< "nvlink", "pcie", "infiniband", ..., for reports
  double bytesPerSecond = 0; ///< that a ring moves over it, in each direction
  double latency = 0;        ///< seconds of one hop, with the software's part in it
};

/// A step of a model that somebody has timed on one device, alone.
struct MeasuredStep {
  std::string model;
  int64_t rows = 0; ///< of its batch
  double seconds = 0;
};

struct ClusterDevice {
  std::string name;
  double peakFlops = 0;            ///< a second; 0: not described
  double efficiency = 1;           ///< the share of the peak that large kernels reach
  double memoryBytesPerSecond = 0; ///< 0: not described
  double kernelSeconds = 0;        ///< that the smallest kernel takes, its launch included
  std::vector<MeasuredStep> measured;

  bool isDescribed() const { return peakFlops > 0; }
};

enum class AllReduceAlgorithm { Ring, Tree, Hierarchical, Fastest };

/// What has been fitted to published measurements, and holds where a cluster's file says nothing else: SCALE.md tells
/// to which. `tools/scale/published --fit` finds them anew.
inline constexpr double kFittedStraggler = 0.037, kFittedContention = 0, kFittedCopyBytesPerSecond = 34e9;

struct Cluster {
  std::string name;
  int64_t nodes = 1, accelerators = 1; ///< accelerators of each node
  ClusterDevice device;
  ClusterLink nodeLink;     ///< between the accelerators of a node
  ClusterLink network;      ///< between nodes
  int64_t networkLinks = 1; ///< of each node
  AllReduceAlgorithm algorithm = AllReduceAlgorithm::Fastest;
  double collectiveSeconds = 0;          ///< that a collective takes before anything moves
  std::optional<double> bucketBytes;     ///< gradients of so many bytes share a collective; none: all share one
  int64_t wireBytes = 4;                 ///< of an element on its way
  double overlap = 1;                    ///< the share of the work after a gradient that may hide its collective
  double straggler = kFittedStraggler;   ///< standard deviation of a device's time of a step, as a share of it
  double contention = kFittedContention; ///< seconds of work lost for each second that a collective runs behind it
  double copyBytesPerSecond = kFittedCopyBytesPerSecond; ///< of gradients into buckets and back

  int64_t devices() const { return nodes * accelerators; }
  /// How many nodes so many replicas fill, one after the other.
  int64_t nodesFor(int64_t replicas) const { return (replicas + accelerators - 1) / accelerators; }
};

} // namespace sluice::compiler
