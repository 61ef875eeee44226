// A cluster of accelerators: the properties that determine the time of a data-parallel step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::compiler {

/// A link as seen by a collective.
struct ClusterLink {
  std::string kind;          ///< "nvlink", "pcie", "infiniband", ..., for reports
  double bytesPerSecond = 0; ///< of a ring, in each direction
  double latency = 0;        ///< seconds per hop, including software
};

/// A timed step of a model on a single device.
struct MeasuredStep {
  std::string model;
  int64_t rows = 0; ///< of its batch
  double seconds = 0;
};

struct ClusterDevice {
  std::string name;
  double peakFlops = 0;            ///< per second; 0: not described
  double efficiency = 1;           ///< share of the peak that large kernels reach
  double memoryBytesPerSecond = 0; ///< 0: not described
  double kernelSeconds = 0;        ///< of the smallest kernel, including its launch
  std::vector<MeasuredStep> measured;

  bool isDescribed() const { return peakFlops > 0; }
};

enum class AllReduceAlgorithm { Ring, Tree, Hierarchical, Fastest };

/// Constants fitted to published measurements, the defaults of a cluster's file; SCALE.md lists the measurements.
/// `tools/scale/published --fit` fits them again.
inline constexpr double kFittedStraggler = 0.037, kFittedContention = 0, kFittedCopyBytesPerSecond = 34e9;

struct Cluster {
  std::string name;
  int64_t nodes = 1, accelerators = 1; ///< accelerators per node
  ClusterDevice device;
  ClusterLink nodeLink;     ///< between the accelerators of a node
  ClusterLink network;      ///< between nodes
  int64_t networkLinks = 1; ///< per node
  AllReduceAlgorithm algorithm = AllReduceAlgorithm::Fastest;
  double collectiveSeconds = 0;          ///< fixed overhead of a collective
  std::optional<double> bucketBytes;     ///< maximum bytes of gradients per collective; none: one collective for all
  int64_t wireBytes = 4;                 ///< per element in transit
  double overlap = 1;                    ///< share of the work after a gradient that may hide its collective
  double straggler = kFittedStraggler;   ///< standard deviation of a device's step time, as a share of it
  double contention = kFittedContention; ///< seconds of work lost per second of a concurrent collective
  double copyBytesPerSecond = kFittedCopyBytesPerSecond; ///< of gradients into buckets and back

  int64_t devices() const { return nodes * accelerators; }
  /// The number of nodes that `replicas` replicas fill, one node after the other.
  int64_t nodesFor(int64_t replicas) const { return (replicas + accelerators - 1) / accelerators; }
};

} // namespace sluice::compiler
