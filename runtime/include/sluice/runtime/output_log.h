/* The memory that the runtime takes beside a plan's arenas, which the plan counts in its peaks: each entry point has a
 * log of its outputs of one element (the loss, metrics), so that the host need not wait for them in each call. */
#pragma once

/* The calls that a log holds before it is brought to the host. */
#define SLUICE_LOG_CALLS 1024

/* The bytes of an output of one call, whatever its type. */
#define SLUICE_LOG_PLACE_BYTES 8
