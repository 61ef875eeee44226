// Loads Open MPI's library for use in a plugin.
#pragma once

namespace sluice::transport {

/// Makes the symbols of Open MPI global before its first call, because its components look for them there. Throws an
/// unsupported error if the library does not match the headers, e.g. MPICH.
void showOpenMpi();

} // namespace sluice::transport
