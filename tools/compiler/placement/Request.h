// What the user asks of the placement.
#pragma once

#include "ir/Target.h"
#include "llvm/Support/Error.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sluice::compiler {

/// What a link is called that is between the devices of replicas.
inline constexpr llvm::StringLiteral kReplicaLink = "replicas";

/// A link between the host and an accelerator, the same in both directions, or that between replicas.
struct GivenLink {
  std::string device; ///< as in `--devices`: "sim:0"; or kReplicaLink
  double bytesPerSecond = 0;
  std::optional<double> latency; ///< seconds

  bool isBetweenReplicas() const { return device == kReplicaLink; }
};

struct PlacementRequest {
  bool chooses = false;                ///< whether the compiler is to choose where the user has not
  std::string file;                    ///< decisions to keep, as `--save` writes them; empty: none
  std::string entry;                   ///< whose step time counts; empty: train_step if there is one, else the first
  std::map<std::string, int64_t> caps; ///< bytes, by device as in `--devices`
  std::vector<GivenLink> links;
  std::string prefer; ///< a device that gets all it can run, whatever that costs; for measuring
};

/// `--devices cpu,sim:0=16GB`: the target as text, and the caps, which are put into the request.
llvm::Expected<std::string> takeCaps(llvm::StringRef devices, PlacementRequest &request);

/// `--link sim:0=12GB/s,5us`, `--link replicas=12GB/s,5us`.
llvm::Expected<GivenLink> parseLink(llvm::StringRef text);

/// `--placement`: `auto`, or a file.
void setPlacement(llvm::StringRef text, PlacementRequest &request);

} // namespace sluice::compiler
