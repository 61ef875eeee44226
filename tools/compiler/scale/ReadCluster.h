// Reading the file of a cluster: clusters/ has examples, SCALE.md tells what each field means.
#pragma once

#include "tools/compiler/scale/Cluster.h"
#include "llvm/Support/Error.h"

namespace sluice::compiler {

/// Fails, as Invalid, on what is no cluster: the error names the file, the field and its value.
llvm::Expected<Cluster> readCluster(const std::string &path);

} // namespace sluice::compiler
