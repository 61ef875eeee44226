// The run half of the CPU backend; linked in, not loaded.
#ifndef SLUICE_BACKENDS_CPU_RUNTIME_PLUGIN_H
#define SLUICE_BACKENDS_CPU_RUNTIME_PLUGIN_H

#include "sluice/backend/run.h"

/// One device, the host: queues do their work before the call returns, kernels run on the threads of the services.
extern "C" const sluice_backend_run *sluice_cpu_backend_run(void);

#endif
