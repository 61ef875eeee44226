// Abacus: a backend with one device and three kernels, on f32.
#pragma once

#include <cstdint>
#include <sluice/backend/adapter.h>

namespace abacus {

/// The parameters of a kernel at each launch, in addition to its buffers: the compile half writes them, the run half
/// reads them.
struct Parameters {
  int64_t elements = 0, elementsPerRow = 0; // of add and relu: elements + rows * elementsPerRow
  int64_t m = 0, k = 0, n = 0;              // of einsum: [m, k] times [k, n]; m is -1 for the rows of the call
  bool transposedB = false;                 // the second factor is stored as [n, k]
};

/// A kernel: reads and writes the buffers' addresses in the order of the op's operands and results.
using Kernel = void (*)(const sluice_launch &launch, const Parameters &parameters);

/// The kernel of this name, or null.
Kernel findKernel(const char *name);

const sluice_backend_compile &compileHalf();
const sluice_backend_run &runHalf();

} // namespace abacus
