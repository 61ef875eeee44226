// C++ adapters for plugins. They fill the C tables from C++ classes, own the objects of handles, and convert exceptions
// to a status and last_error.
//
//   adapter/error.h        Error, the exception that methods throw
//   adapter/run.h          runTable<Half>: devices, memory, queues, launches
//   adapter/collectives.h  the collectives of a run half
//   adapter/compile.h      compileTable<Session>
//   adapter/transport.h    transportTable<Transport>
//
// Each file lists the methods of the class. A method that a table may lack is optional: without it, the table's member
// is NULL. Adapters detect optional methods by name alone, so such a method must not be overloaded, and a wrong
// signature does not compile.
//
// The adapters require C++20 and only the headers of this folder. Unless it throws, a method costs no more than its C
// call.
#pragma once

#include "sluice/backend/adapter/compile.h"
#include "sluice/backend/adapter/run.h"
#include "sluice/backend/adapter/transport.h"

namespace sluice::backend {

/// The result of sluice_backend_query. NULL: another shared object has that half.
constexpr sluice_backend backendTable(const char *name, const char *description, const sluice_backend_compile *compile,
                                      const sluice_backend_run *run) {
  return {sizeof(sluice_backend), SLUICE_BACKEND_MAJOR, SLUICE_BACKEND_MINOR, name, description, compile, run};
}

} // namespace sluice::backend
