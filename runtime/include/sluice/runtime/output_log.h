/* The output log: memory in which the runtime keeps the outputs of one element (the loss, metrics) of many calls, so
 * that the host need not wait for each call. Each entry point has a log. It is outside the arenas of a plan, but the
 * plan's peaks include it. */
#pragma once

/* The number of calls that a log holds before it is copied to the host. */
#define SLUICE_LOG_CALLS 1024

/* The bytes of one output of one call, for every type. */
#define SLUICE_LOG_PLACE_BYTES 8
