/* The one symbol that every shared object of a backend exports: it returns the tables of the backend.
 *
 * A backend is two shared objects, so that executables never load a compiler: one with the compile half (compile.h),
 * which `sluice` loads, and one with the run half (run.h), which executables load. One object may hold both. Sluice
 * tries every `*.so` in the folders of SLUICE_BACKEND_PATH and in lib/sluice/backends of the installation.
 *
 * Rules of every table. `struct_size` is its first member and is set by the side that fills the table. The major
 * version must be equal. A minor version only appends members. A member beyond `struct_size`, or a NULL function, is
 * absent: see [Sizes] below. No exception may cross the interface. */
#pragma once

#include "sluice/backend/status.h"
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. */
#define SLUICE_BACKEND_MAJOR 2
#define SLUICE_BACKEND_MINOR 8

/* The members that each minor version appended:
 *
 *   1  run half: capture_begin, capture_end, replay and sequence_destroy; host_allocate and host_release; query and
 *      synchronize_until, with the status SLUICE_DEADLINE; peer_link; the queue kind SLUICE_QUEUE_COMMUNICATION;
 *      sluice_device_info: alignment, compute_major and compute_minor
 *   2  sluice_blob: functions, num_functions and function_size; run half: group_create and group_destroy; the table
 *      `collectives` (collectives.h), with the status SLUICE_PEER_LOST; sluice_run_options: group
 *   3  sluice_communicator_options: transport (transport.h)
 *   4  sluice_target_info and the table `collectives`: no_tree_sums; sluice_device_info: identity
 *   5  run half: note_times
 *   6  sluice_target_options: temporaries; sluice_target_info: peaks, num_peaks and peak_size
 *   7  sluice_target_info: alignment; run half: signal, wait_for_signal and lazy
 *   8  sluice_target_options: math; sluice_kernel_view: symbol; compile half: lower_kernels;
 *      run half: clear and acquire */

typedef struct sluice_backend_compile sluice_backend_compile; /* compile.h */
typedef struct sluice_backend_run sluice_backend_run;         /* run.h */

/* A backend. All pointers live as long as the object is loaded. */
typedef struct sluice_backend {
  uint32_t struct_size;                  /* sizeof(sluice_backend) */
  uint32_t major_version, minor_version; /* of the headers that the backend was compiled with */
  const char *name;                      /* "sim": the text before the colon in --devices */
  const char *description;               /* one line for `sluice devices` */
  const sluice_backend_compile *compile; /* NULL in an object with only the run half */
  const sluice_backend_run *run;         /* NULL in an object with only the compile half */
} sluice_backend;

/* The exported symbol. The attribute makes it visible even if the object is built with hidden symbols. The table lives
 * as long as the object is loaded. */
typedef const sluice_backend *(*sluice_backend_query_fn)(void);
__attribute__((visibility("default"))) const sluice_backend *sluice_backend_query(void);

#ifdef __cplusplus
}
#endif

/* [Sizes] A table has the size of the minor version that it names: every 2.x loads a table of 2.0, and later members
 * are absent. Every other struct that may grow begins with `struct_size`, set by its creator. The receiver reads no
 * further, and does not write members that its headers lack. The size of an array's elements is passed with the array
 * and is the distance between two elements. A struct without `struct_size` will not grow; its comment says so. */
