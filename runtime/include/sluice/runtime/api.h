/* Running a compiled model from a program with its own loop.
 *
 *     const sluice_artifact *artifact;
 *     sluice_instance *model;
 *     sluice_artifact_load("./lenet.so", &artifact);            or sluice_artifact_query(), if linked in
 *     sluice_instance_create(artifact, NULL, &model);
 *     sluice_instance_set_input(model, "init", "key", seed, 2 * sizeof(int32_t), 1);
 *     sluice_instance_run(model, "init", 1);                    or set_state for every weight
 *     sluice_instance_set_input(model, "predict", "image", pixels, 64 * 784, 64);
 *     sluice_instance_run(model, "predict", 64);
 *     sluice_instance_get_output(model, "predict", "logits", logits, sizeof logits, 64);
 *     sluice_instance_destroy(model);
 *
 * Data. Tensors are row-major in their logical shape, whatever their internal layout. Functions copy their arguments
 * and write results into memory of the caller, so pointers may be freed after the call.
 *
 * Errors. Functions that return int return 0 or a sluice_status (status.h); sluice_last_error() then has the text. No
 * exception leaves a function. In addition to the codes below, every function may return
 *
 *     2  for a NULL argument, an unknown entry point, input, output or state, or a number of rows out of range
 *     3  for a wrong number of bytes
 *     5  if memory is exhausted or a device is lost
 *
 * Threads. One thread at a time uses an instance. Several instances are independent, also if they share a pool; any
 * threads may use a pool. */
#pragma once

#include "sluice/backend/status.h"
#include "sluice/runtime/artifact.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A model with its states and devices. */
typedef struct sluice_instance sluice_instance;

/* Loaded backends, their memory, and threads, which instances share. They outlive the instances, so that later
 * instances start quickly and reuse memory. Programs on one device that exchange addresses must be of one pool. */
typedef struct sluice_pool sluice_pool;

/* The memory of a device in a pool. */
typedef struct sluice_pool_memory {
  uint32_t struct_size; /* sizeof(sluice_pool_memory) */
  int64_t bytes_in_use;
  int64_t bytes_held;         /* in use, and free for later instances */
  int64_t driver_allocations; /* so far */
} sluice_pool_memory;

/* Options of an instance. Members beyond struct_size have their defaults. */
typedef struct sluice_instance_options {
  uint32_t struct_size; /* sizeof(sluice_instance_options) */
  int32_t threads;      /* 0: one for each processor */
  const char *backends; /* settings, one line for each backend: "sim=seed=7,link=12GB/s"; NULL: none */
  const char *devices;  /* accelerators to use instead of the compiled ones, of the same backends: "sim:1,sim:0" or
                           "sim:0-3"; with several replicas, first all of replica 0. NULL: the compiled devices */
  sluice_pool *pool;    /* NULL: the default pool of the process, which is never destroyed */
} sluice_instance_options;

/* The error text of this thread's last call; empty if the call succeeded. Valid until this thread's next call. */
const char *sluice_last_error(void);

/* Loads a library written by `sluice compile --emit=so`, which stays loaded. On failure *artifact is NULL. Returns code
 * 3 if the file cannot be loaded or is no artifact. */
int sluice_artifact_load(const char *path, const sluice_artifact **artifact);

/* Creates an empty pool. On failure *pool is NULL. */
int sluice_pool_create(sluice_pool **pool);
/* Invalidates the handle of a pool, whose memory is freed with its last instance; NULL has no effect. */
void sluice_pool_destroy(sluice_pool *pool);
/* Returns unused memory to the drivers. `pool` may be NULL: the default pool. */
int sluice_pool_trim(sluice_pool *pool);
/* Counts the memory of a device such as "sim:0" for all settings of its backend; zero if no instance has used it.
 * `pool` may be NULL: the default pool. */
int sluice_pool_get_memory(sluice_pool *pool, const char *device, sluice_pool_memory *memory);

/* Creates an instance of the first variant whose devices are available. `options` may be NULL. The artifact must
 * outlive the instance. On failure *instance is NULL. Returns code 2 for invalid options, 3 for an invalid artifact,
 * and 4 if a device or a backend is not available.
 *
 * All states are zero at first. Parameters, statistics and hyperparameters are unset until the entry `init` has run or
 * the caller sets them; an entry point that reads an unset state does not run. */
int sluice_instance_create(const sluice_artifact *artifact, const sluice_instance_options *options,
                           sluice_instance **instance);
/* Frees an instance; NULL has no effect. */
void sluice_instance_destroy(sluice_instance *instance);

/* Set or copy a state. `bytes` must be the size of the tensor. set_state writes the state in all replicas. get_state
 * waits for all work, then reads the state of the first replica. */
int sluice_instance_set_state(sluice_instance *instance, const char *name, const void *data, uint64_t bytes);
int sluice_instance_get_state(sluice_instance *instance, const char *name, void *data, uint64_t bytes);

/* Sets an input for the next run, which must have `rows` rows. `bytes` must be the size of these rows. All entry points
 * share the memory of inputs: set all inputs of an entry before each of its runs, and the inputs of only one entry at a
 * time. */
int sluice_instance_set_input(sluice_instance *instance, const char *entry, const char *name, const void *data,
                              uint64_t bytes, int64_t rows);

/* Runs an entry point on 1 to the model's maximum of rows, which the replicas share. An entry without a batch dimension
 * ignores `rows`.
 *
 * Returns code 2 if an input has not been set since the last run of any entry point (except an input that the entry
 * does not read), if it was set with another number of rows, or if the entry reads states without a value. Returns code 3 if a label or an index of an input is out of
 * range. In these cases nothing has run, and the inputs stay set.
 *
 * With accelerators, the call may return before its work is done. Functions that read results wait for the work and
 * return its errors. */
int sluice_instance_run(sluice_instance *instance, const char *entry, int64_t rows);

/* Values on accelerators. A model may have inputs and outputs that are on an accelerator (Graph::input and
 * Graph::output with a device). Nothing moves them: set_input and get_output return code 2 for them, and bind_input and
 * get_output_address for all others.
 *
 * get_device sets *device to the place of an input or output: "cpu", or for example "sim:0". The text lives as long as
 * the instance.
 *
 * bind_input makes the next run read an input at an address of `device`, which must be that of get_device. The memory
 * has room for the largest call (`bytes` or more), holds `rows` rows, and keeps them until results of the run were
 * read. It is an output of an instance of the same pool, or memory of the device's driver. Bind inputs before each run. Returns
 * code 2 if the address is not aligned, or if the program also uses the input's memory for other values.
 *
 * get_output_address waits for an output of the last run and sets *address to its place on `device`. It stays there
 * until the next run of the instance, and has the rows of the run, contiguously. */
int sluice_instance_get_device(sluice_instance *instance, const char *entry, const char *name, const char **device);
int sluice_instance_bind_input(sluice_instance *instance, const char *entry, const char *name, const char *device,
                               void *address, uint64_t bytes, int64_t rows);
int sluice_instance_get_output_address(sluice_instance *instance, const char *entry, const char *name,
                                       const char *device, void **address);

/* Copies the first `rows` rows of an output of the last run. Returns code 2 if the last run was of another entry point
 * or had fewer rows. */
int sluice_instance_get_output(sluice_instance *instance, const char *entry, const char *name, void *data,
                               uint64_t bytes, int64_t rows);

#ifdef __cplusplus
}
#endif
