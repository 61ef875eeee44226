// Lets this process use the doubles of NVRTC, of the driver and of the libraries that share its streams.
#pragma once

#include <cstdint>

namespace sluice::test {

/// With so many devices. Instances that open on devices nobody else has open take `seed` for the order of their work.
void useCudaDoubles(int devices, int seed = 0);

/// Copies of a kind that the driver's double has counted in this process (cuda_emu_copies); it is loaded if it has not been.
int64_t cudaCopies(const char *kind);

} // namespace sluice::test
