#include "runtime/plan/ArtifactChecksum.h"

#include <zlib.h>

namespace sluice::runtime {

/// zlib resets the sum for a null address.
static uLong add(uLong sum, const void *data, uint64_t bytes) {
  return bytes == 0 ? sum : crc32_z(sum, static_cast<const Bytef *>(data), bytes);
}

uint64_t checksumOf(const sluice_artifact &artifact) {
  Bytef stages[8];
  for (unsigned i = 0; i < sizeof stages; ++i)
    stages[i] = static_cast<Bytef>(artifact.num_stages >> 8 * i);
  uLong sum = crc32_z(0, reinterpret_cast<const Bytef *>(artifact.plan), artifact.plan_size);
  sum = crc32_z(sum, stages, sizeof stages);
  sum = add(sum, artifact.constants, artifact.constants_size);
  for (uint64_t i = 0; i < artifact.num_sections; ++i)
    sum = add(sum, artifact.sections[i].data, artifact.sections[i].bytes);
  return sum;
}

} // namespace sluice::runtime
