// Plugins with one fault each, selected by BACKEND_FAULT.
#include "tests/runtime/backends/Backend.h"

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <unistd.h>

using namespace sluice::test;

/// Damages a valid backend, or hangs.
static void damage(std::string_view fault, sluice_backend &backend) {
  if (fault == "WrongMajor")
    ++backend.major_version;
  else if (fault == "ShortTable")
    backend.struct_size -= sizeof(void *);
  else if (fault == "LongTable")
    backend.struct_size += 64;
  else if (fault == "LyingHalf")
    compileHalf.struct_size = 4096;
  else if (fault == "ShortHalf")
    compileHalf.struct_size -= sizeof(void *);
  else if (fault == "LaterMinor" || fault == "LaterMinorTooShort") {
    ++compileHalf.minor_version;
    compileHalf.struct_size += fault == "LaterMinor" ? 64 : -64;
  } else if (fault == "NoPrepare")
    compileHalf.prepare = nullptr;
  else if (fault == "NoHalves")
    backend.compile = nullptr;
  else if (fault == "BadName")
    backend.name = "Not A Name";
  else if (fault == "HostsName")
    backend.name = "cpu";
  else if (fault == "BadPointer")
    backend.compile = reinterpret_cast<const sluice_backend_compile *>(16);
  else if (fault == "Crash")
    raise(SIGSEGV);
  else if (fault == "Exit")
    exit(0);
  else if (fault == "Hang")
    for (;;)
      pause();
}

extern "C" const sluice_backend *sluice_backend_query(void) {
  static sluice_backend backend = sound();
  if (std::string_view(BACKEND_FAULT) == "Nothing")
    return nullptr;
  damage(BACKEND_FAULT, backend);
  return &backend;
}
