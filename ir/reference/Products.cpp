#include "ir/reference/Products.h"

namespace sluice::ir {

// A loop for each pair of steps, which the compiler turns into vectors.
void addProducts(double *__restrict y, const double *a, int64_t stepA, const double *b, int64_t stepB, int64_t count) {
  if (stepA == 1 && stepB == 1)
    for (int64_t i = 0; i < count; ++i)
      y[i] += a[i] * b[i];
  else if (stepA == 1)
    for (int64_t i = 0; i < count; ++i)
      y[i] += a[i] * *b;
  else if (stepB == 1)
    for (int64_t i = 0; i < count; ++i)
      y[i] += *a * b[i];
  else
    for (int64_t i = 0; i < count; ++i)
      y[i] += *a * *b;
}

} // namespace sluice::ir
