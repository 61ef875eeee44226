/* The host's own backend, whose run half is part of every executable: it is linked in rather than loaded, and is like any
 * other in all else. The runtime knows it by this function alone. */
#pragma once

#include "sluice/backend/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Its name, such as "cpu", and its run half. */
const sluice_backend *sluice_host_backend(void);

#ifdef __cplusplus
}
#endif
