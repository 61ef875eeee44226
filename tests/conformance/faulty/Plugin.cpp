#include "tests/conformance/faulty/Faulty.h"

#include <dlfcn.h>

namespace sluice::faulty {

const sluice_backend_run &loadRunHalf(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return *reinterpret_cast<sluice_backend_query_fn>(dlsym(library, "sluice_backend_query"))()->run;
}

} // namespace sluice::faulty

using namespace sluice::faulty;

extern "C" const sluice_backend *sluice_backend_query(void) {
  static sluice_backend_run run = loadRunHalf(NULL_RUN_HALF);
  static const sluice_backend backend = [] {
    const sluice_backend_compile *compile = addFault(run);
    return sluice_backend{sizeof(backend),
                          SLUICE_BACKEND_MAJOR,
                          SLUICE_BACKEND_MINOR,
                          CONFORMANCE_FAULT,
                          "for tests of the suite",
                          compile,
                          &run};
  }();
  return &backend;
}
