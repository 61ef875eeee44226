/* What every shared object of a backend exports: one symbol, which gives its tables.
 *
 * A backend is two shared objects, so that executables never load a compiler: one with the compile half (compile.h), used by
 * `sluice`, and one with the run half (run.h), loaded by executables. One object may hold both. Every `*.so` in the folders of
 * SLUICE_BACKEND_PATH and in the installation's lib/sluice/backends is tried.
 *
 * Rules of every table: `struct_size` first, set by whoever fills it in; the major version must match; a minor version only
 * appends; a member beyond the filler's `struct_size`, or NULL, is absent: see [Sizes] below. No exception crosses. */
#pragma once

#include "sluice/backend/status.h"
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_BACKEND_MAJOR 2
#define SLUICE_BACKEND_MINOR 7

/* What each minor version appended:
 *
 *   1  of the run half: capture_begin, capture_end, replay and sequence_destroy; host_allocate and host_release; query and
 *      synchronize_until, with the status SLUICE_DEADLINE; peer_link; the queue kind SLUICE_QUEUE_COMMUNICATION; of
 *      sluice_device_info: alignment, compute_major and compute_minor
 *   2  of the compile half, of sluice_blob: functions, num_functions and function_size;
 *      of the run half: group_create and group_destroy; the table `collectives` (collectives.h), with the status SLUICE_PEER_LOST; of
 *      sluice_run_options: group
 *   3  of sluice_communicator_options: transport (transport.h)
 *   4  of sluice_target_info and of the table `collectives`: no_tree_sums; of sluice_device_info: identity
 *   5  of the run half: note_times
 *   6  of sluice_target_options: temporaries; of sluice_target_info: peaks, num_peaks and peak_size
 *   7  of sluice_target_info: alignment; of the run half: signal, wait_for_signal and lazy */

typedef struct sluice_backend_compile sluice_backend_compile; /* compile.h */
typedef struct sluice_backend_run sluice_backend_run;         /* run.h */

typedef struct sluice_backend {
  uint32_t struct_size;
  uint32_t major_version, minor_version;
  const char *name;                      /* "sim": what stands before the colon in --devices */
  const char *description;               /* one line for `sluice devices` */
  const sluice_backend_compile *compile; /* NULL in an object with the run half alone */
  const sluice_backend_run *run;         /* NULL in an object with the compile half alone */
} sluice_backend;

/* The one exported symbol, whatever visibility the object is built with. The tables live as long as the object is loaded. */
typedef const sluice_backend *(*sluice_backend_query_fn)(void);
__attribute__((visibility("default"))) const sluice_backend *sluice_backend_query(void);

#ifdef __cplusplus
}
#endif

/* [Sizes]
 * A table has the size of the minor version that it names, whatever later ones append: one of 2.0 is loaded by every 2.x, and
 * what it does not have is absent. Every other struct that may grow begins with its `struct_size`, set by whoever makes it; who
 * is given one looks no further than that, and leaves alone what its own headers do not know. Of arrays, the size of an element
 * is passed beside them, and is the distance from one to the next. A struct that will not grow says so and has no size. */
