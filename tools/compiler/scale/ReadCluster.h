// Reads the file of a cluster: clusters/ has examples, SCALE.md documents the fields.
#pragma once

#include "tools/compiler/scale/Cluster.h"
#include "llvm/Support/Error.h"

namespace sluice::compiler {

/// Fails with kind Invalid on malformed clusters: the error names the file, the field and its value.
llvm::Expected<Cluster> readCluster(const std::string &path);

} // namespace sluice::compiler
