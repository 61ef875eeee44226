// The CUDA backend's compile half. It is linked into the compiler, like the host's.
#pragma once

#include "sluice/backend/compile.h"

extern "C" const sluice_backend_compile *sluice_cuda_backend_compile(void);
