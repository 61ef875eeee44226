// Placement options of the user.
#pragma once

#include "ir/Target.h"
#include "sluice/compile_options.h"
#include "llvm/Support/Error.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sluice::passes {

/// The name of the link between the devices of replicas.
inline constexpr llvm::StringLiteral kReplicaLink = "replicas";

/// A link between the host and an accelerator, equal in both directions, or the link between replicas.
struct GivenLink {
  std::string device; ///< as in `--devices`: "sim:0"; or kReplicaLink
  double bytesPerSecond = 0;
  std::optional<double> latency; ///< seconds

  bool isBetweenReplicas() const { return device == kReplicaLink; }
};

struct PlacementRequest {
  bool chooses = false; ///< whether the compiler chooses devices that the user left open
  std::string file;     ///< decisions to keep, as written by `--save`; empty: none
  std::string entry;    ///< the entry point whose step time counts; empty: train_step if it exists, else the first
  std::map<std::string, int64_t> caps; ///< bytes, by device as in `--devices`
  std::vector<GivenLink> links;
  std::string prefer; ///< a device that gets all work it can run, at any cost; for measuring
};

/// `--devices cpu,sim:0=16GB`: returns the target as text and adds the caps to the request, of a range to each device.
llvm::Expected<std::string> takeCaps(llvm::StringRef devices, PlacementRequest &request);

/// `--link sim:0=12GB/s,5us`, `--link replicas=12GB/s,5us`.
llvm::Expected<GivenLink> parseLink(llvm::StringRef text);

/// The request in the options of placement. `takeCaps` adds the limits of memory.
llvm::Expected<PlacementRequest> placementRequestOf(const CompileOptions &options);

} // namespace sluice::passes
