// Loads Open MPI's library for use in a plugin.
#pragma once

namespace sluice::transport {

/// Makes the symbols of Open MPI global. Must precede its first call, because its components look up global symbols.
/// Throws an unsupported error if the library does not match the headers, e.g. MPICH.
void showOpenMpi();

} // namespace sluice::transport
