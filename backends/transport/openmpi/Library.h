// Open MPI's library, as a plugin must have it.
#pragma once

namespace sluice::transport {

/// Open MPI loads components of its own, which look for its symbols among those that all may see; so they are shown before
/// its first call. Throws that this is not supported where the library is another than the headers', MPICH for example.
void showOpenMpi();

} // namespace sluice::transport
