// The checksum that binds an artifact's plan to its code; artifact.h defines its input.
#pragma once

#include "sluice/runtime/artifact.h"

namespace sluice::runtime {

/// The expected value of `artifact.checksum`; the other fields must be set.
uint64_t checksumOf(const sluice_artifact &artifact);

} // namespace sluice::runtime
