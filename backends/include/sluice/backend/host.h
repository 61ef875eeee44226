/* The backend of the host. Its run half is linked into every executable, not loaded. In all other respects it is a
 * normal backend. The runtime accesses it through this function only. */
#pragma once

#include "sluice/backend/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table of the host's backend, with its name, such as "cpu", and its run half. It lives as long as the process, and
 * any thread may call this. */
const sluice_backend *sluice_host_backend(void);

#ifdef __cplusplus
}
#endif
