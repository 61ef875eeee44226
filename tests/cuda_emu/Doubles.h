// Lets this process use the doubles of NVRTC, and of the driver and the libraries beside it.
#pragma once

namespace sluice::test {

/// With so many devices. Instances that open on devices nobody else has open take `seed` for the order of their work.
void useCudaDoubles(int devices, int seed = 0);

} // namespace sluice::test
