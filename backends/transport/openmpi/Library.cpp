#include "backends/transport/openmpi/Library.h"

#include "backends/transport/Fail.h"

#include <dlfcn.h>
#include <mpi.h>

#ifndef OMPI_MAJOR_VERSION
#error "these are not Open MPI's headers"
#endif

namespace sluice::transport {

void showOpenMpi() {
  if (!dlopen(SLUICE_LIBMPI, RTLD_NOW | RTLD_GLOBAL))
    fail(SLUICE_UNSUPPORTED, "openmpi: ", dlerror());
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  std::string text(version, static_cast<size_t>(length));
  std::string expected = "Open MPI v" + std::to_string(OMPI_MAJOR_VERSION) + ".";
  if (text.substr(0, expected.size()) != expected)
    fail(SLUICE_UNSUPPORTED, "openmpi: made for ", expected, "x, but the library is ", text.substr(0, text.find(',')));
}

} // namespace sluice::transport
