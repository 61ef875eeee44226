#include "runtime/ArtifactChecksum.h"

#include <zlib.h>

namespace sluice::runtime {

uint64_t checksumOf(const sluice_artifact &artifact) {
  Bytef stages[8];
  for (unsigned i = 0; i < sizeof stages; ++i)
    stages[i] = static_cast<Bytef>(artifact.num_stages >> 8 * i);
  uLong sum = crc32_z(0, reinterpret_cast<const Bytef *>(artifact.plan), artifact.plan_size);
  sum = crc32_z(sum, stages, sizeof stages);
  if (artifact.constants_size == 0)
    return sum; // zlib takes no address for a beginning
  return crc32_z(sum, static_cast<const Bytef *>(artifact.constants), artifact.constants_size);
}

} // namespace sluice::runtime
