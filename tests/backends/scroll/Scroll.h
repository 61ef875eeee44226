// Scroll: a backend for tests of device code. Its kernels are texts, which its run half loads as a module and
// interprets; with each goes the MLIR bytecode that the compiler handed over, so that tests can read it.
//
//   scroll
//   kernel mul_add 2 elements 0 12 results 3 bytecode 1234        operands; elements: fixed, and of each row; results
//   mul 0 1                                                       each op makes the next value
//   add 2 0
//   end
//   <1234 bytes>
#pragma once

#include "sluice/backend/adapter.h"

namespace sluice::scroll {

const sluice_backend_compile &compileHalf();
const sluice_backend_run &runHalf();

} // namespace sluice::scroll
