/* Running a compiled model from a program that brings its own loop.
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
 * Tensors are row-major in their logical shape, whatever their layout inside. Every function that returns int returns
 * 0, or the exit code of the error, whose text sluice_last_error() then gives. Nothing is thrown. An instance may be
 * used by one thread at a time; several instances are independent. */
#pragma once

#include "sluice/backend/status.h"
#include "sluice/runtime/artifact.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sluice_instance sluice_instance;

typedef struct sluice_instance_options {
  uint32_t struct_size; /* sizeof(sluice_instance_options) */
  int32_t threads;      /* 0: every processor */
  const char *backends; /* settings, a line for each backend: "sim=seed=7,link=12GB/s"; NULL for none */
  const char *devices; /* that fill the model's slots, "sim:1,sim:0", replica by replica, "sim:0-3"; NULL: those that it
                           was compiled for */
} sluice_instance_options;

/* The text of the calling thread's last error; valid until its next call. */
const char *sluice_last_error(void);

/* Loads a library written by `sluice compile --emit=so`. It stays loaded. */
int sluice_artifact_load(const char *path, const sluice_artifact **artifact);

/* `options` may be NULL. The artifact must outlive the instance. Every state is zero until the entry `init` has run or
 * it has been set; until then, entry points that read it refuse to run. Optimizer slots and counts begin at zero. */
int sluice_instance_create(const sluice_artifact *artifact, const sluice_instance_options *options,
                           sluice_instance **instance);
void sluice_instance_destroy(sluice_instance *instance);

/* `bytes` must be the tensor's size. All replicas have the same states: what is set is set in all, what is got is the first
 * one's. */
int sluice_instance_set_state(sluice_instance *instance, const char *name, const void *data, uint64_t bytes);
int sluice_instance_get_state(sluice_instance *instance, const char *name, void *data, uint64_t bytes);

/* `bytes` must be the size of `rows` rows, the number of rows of the next run. All entry points share the memory of
 * inputs: set all inputs of an entry before each of its runs, and the inputs of only one entry at a time. */
int sluice_instance_set_input(sluice_instance *instance, const char *entry, const char *name, const void *data,
                              uint64_t bytes, int64_t rows);

/* Runs an entry point on `rows` rows, at most as many as the model was compiled for. Several replicas share the rows.
 * An entry without a batch dimension ignores `rows`.
 *
 * Returns code 2 if an input has not been set since the last run of any entry point, if it was set with another number
 * of rows, or if the entry reads states that nothing has set. Returns code 3 if a label is none of the model's classes.
 * In these cases nothing has run, and the inputs stay set.
 *
 * With accelerators it may return before the work is done. Functions that read results wait for the work and also
 * return its errors. */
int sluice_instance_run(sluice_instance *instance, const char *entry, int64_t rows);

/* Copies the first `rows` rows of an output of the last run. Returns code 2 if the last run was of another entry point
 * or had fewer rows. */
int sluice_instance_get_output(sluice_instance *instance, const char *entry, const char *name, void *data,
                               uint64_t bytes, int64_t rows);

#ifdef __cplusplus
}
#endif
