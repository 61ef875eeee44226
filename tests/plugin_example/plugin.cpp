// The one exported symbol.
#include "abacus.h"

extern "C" const sluice_backend *sluice_backend_query(void) {
  static const sluice_backend backend =
      sluice::backend::backendTable("abacus", "an example: one device that can add, relu and einsum of matrices",
                                    &abacus::compileHalf(), &abacus::runHalf());
  return &backend;
}
