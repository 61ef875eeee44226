/* The log of small outputs: memory of the runtime outside of the arenas of a plan, which the plan includes in its
 * peaks. Each entry point logs its outputs of one element (the loss, metrics), so that the host need not wait for each
 * call. */
#pragma once

/* The number of calls that a log holds before it is copied to the host. */
#define SLUICE_LOG_CALLS 1024

/* The bytes of one output of one call, for every type. */
#define SLUICE_LOG_PLACE_BYTES 8
