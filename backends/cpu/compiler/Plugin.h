// The CPU backend's table of the plugin ABI.
#pragma once

#include "sluice/backend/compile.h"

/// The compile half of the CPU backend, linked statically into the compiler.
extern "C" const sluice_backend_compile *sluice_cpu_backend_compile(void);
