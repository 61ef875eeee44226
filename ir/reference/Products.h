// The inner loops of the reference functions of products.
#pragma once

#include <cstdint>

namespace sluice::ir {

/// y[i] += a[i * stepA] * b[i * stepB] for i < count. A step is 0 or 1.
void addProducts(double *y, const double *a, int64_t stepA, const double *b, int64_t stepB, int64_t count);

} // namespace sluice::ir
