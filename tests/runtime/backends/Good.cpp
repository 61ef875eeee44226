#include "tests/runtime/backends/Backend.h"

extern "C" const sluice_backend *sluice_backend_query(void) {
  static const sluice_backend backend = sluice::test::sound();
  return &backend;
}
