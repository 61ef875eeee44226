// The kernels, as plain functions.
#include "abacus.h"

#include <cstring>

namespace abacus {

static float *buffer(const sluice_launch &launch, size_t number) {
  return static_cast<float *>(launch.addresses[number]);
}

static void add(const sluice_launch &launch, const Parameters &parameters) {
  const float *a = buffer(launch, 0), *b = buffer(launch, 1);
  float *y = buffer(launch, 2);
  for (int64_t i = 0; i < parameters.elements + launch.call->rows * parameters.elementsPerRow; ++i)
    y[i] = a[i] + b[i];
}

static void relu(const sluice_launch &launch, const Parameters &parameters) {
  const float *x = buffer(launch, 0);
  float *y = buffer(launch, 1);
  for (int64_t i = 0; i < parameters.elements + launch.call->rows * parameters.elementsPerRow; ++i)
    y[i] = x[i] < 0 ? 0 : x[i]; // not-a-number stays
}

static void multiply(const sluice_launch &launch, const Parameters &parameters) {
  const float *a = buffer(launch, 0), *b = buffer(launch, 1);
  float *y = buffer(launch, 2);
  auto [elements, elementsPerRow, m, k, n, transposedB] = parameters;
  for (int64_t i = 0; i < (m < 0 ? launch.call->rows : m); ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += a[i * k + l] * b[transposedB ? j * k + l : l * n + j];
      y[i * n + j] = sum;
    }
  }
}

Kernel findKernel(const char *name) {
  struct Named {
    const char *name;
    Kernel kernel;
  };
  static constexpr Named kKernels[] = {{"add", add}, {"relu", relu}, {"einsum", multiply}};
  for (const Named &known : kKernels)
    if (std::strcmp(name, known.name) == 0)
      return known.kernel;
  return nullptr;
}

} // namespace abacus
