// The checksum that makes plan and code of an artifact one; artifact.h says of what.
#pragma once

#include "sluice/runtime/artifact.h"

namespace sluice::runtime {

/// What `artifact.checksum` should be; the other fields are filled in.
uint64_t checksumOf(const sluice_artifact &artifact);

} // namespace sluice::runtime
