/* Arrays (array.h) for programs in C.
 *
 *     float numbers[] = {1, 2, 3};
 *     int64_t shape[] = {3};
 *     sluice_array *array;
 *     if (sluice_array_create(numbers, sizeof numbers, SLUICE_DTYPE_f32, shape, 1, "cpu", &array))
 *       fprintf(stderr, "%s\n", sluice_array_last_error());
 *     sluice_array_save_npy(array, "numbers.npy");
 *     sluice_array_destroy(array);
 *
 * Elements are row-major. Functions copy their arguments, except for DLPack tensors. Devices are named as in C++:
 * "cpu", "gpu:1".
 *
 * Errors. Functions that return int return 0 or a code of sluice_status (backend/status.h). On an error, they set all
 * results to NULL or 0; sluice_array_last_error() has the text. No exception leaves a function. In addition to codes
 * below, every function may return
 *
 *     2  for a NULL argument or an unknown name or dtype
 *     4  for a missing device
 *     5  if memory is exhausted or a device is lost
 *     70 for a defect of Sluice, or if a kernel failed
 *
 * Threads. Any thread may use any array. Functions that change an array, and those of DLPack, need exclusive access. */
#pragma once

#include "sluice/backend/dtypes.h"
#include "sluice/dlpack_structs.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A handle to an array. */
typedef struct sluice_array sluice_array;
/* A list of named arrays. */
typedef struct sluice_array_list sluice_array_list;

/* The error text of this thread's last call; empty if the call succeeded. Valid until this thread's next call. */
const char *sluice_array_last_error(void);

/* Sets the devices of this process: "cpu,sim:0,sim:1" (set_devices). */
int sluice_array_set_devices(const char *list);

/* Creates an array with `dims` dimensions from host elements. `bytes` is their size in bytes and must match the
 * shape. `shape` may be NULL for a scalar; `elements` may be NULL for an array without elements. */
int sluice_array_create(const void *elements, uint64_t bytes, sluice_dtype dtype, const int64_t *shape, int32_t dims,
                        const char *device, sluice_array **array);
/* Frees a handle; NULL has no effect. */
void sluice_array_destroy(sluice_array *array);

/* The dtype. */
int sluice_array_get_dtype(const sluice_array *array, sluice_dtype *dtype);
/* The sizes, outermost first, and their number. The pointer lives as long as the handle. */
int sluice_array_get_shape(const sluice_array *array, const int64_t **shape, int32_t *dims);
/* The device as "cpu()" or "gpu(1)", which is also a name for these functions. The pointer lives as long as the
 * handle. */
int sluice_array_get_device(const sluice_array *array, const char **device);

/* Waits, then copies all elements to the host. `bytes` must be their size in bytes; otherwise returns code 2. */
int sluice_array_get_elements(const sluice_array *array, void *elements, uint64_t bytes);
/* Replaces all elements by host elements, for all handles of the array. `bytes` must be their size in bytes;
 * otherwise returns code 2. */
int sluice_array_set_elements(sluice_array *array, const void *elements, uint64_t bytes);
/* Waits until the elements are computed. Returns the code of the work that computes them. */
int sluice_array_wait(const sluice_array *array);
/* Returns a new handle: to the same array if it is on the device, otherwise to a copy there. */
int sluice_array_to(const sluice_array *array, const char *device, sluice_array **result);

/* DLPack (dlpack.h). The caller must call the tensor's deleter once. These change how the array's memory is used, in
 * spite of `const`, and need exclusive access. */
int sluice_array_to_dlpack(const sluice_array *array, DLManagedTensor **managed);
int sluice_array_to_dlpack_versioned(const sluice_array *array, DLManagedTensorVersioned **managed);
/* Takes ownership of the tensor. On an error, the caller keeps it. Returns code 2 for a damaged or unsupported
 * tensor. */
int sluice_array_from_dlpack(DLManagedTensor *managed, sluice_array **array);
int sluice_array_from_dlpack_versioned(DLManagedTensorVersioned *managed, sluice_array **array);

/* Files (array_files.h). These return code 3 if a file cannot be read or written or is damaged. */
int sluice_array_save_npy(const sluice_array *array, const char *path);
int sluice_array_load_npy(const char *path, const char *device, sluice_array **array);
/* Writes `count` arrays with their names. */
int sluice_array_save_safetensors(const char *path, const char *const *names, const sluice_array *const *arrays,
                                  uint64_t count);
/* Reads all arrays of a file, sorted by name. Destroy the list with sluice_array_list_destroy. */
int sluice_array_load_safetensors(const char *path, const char *device, sluice_array_list **list);
/* The number of arrays. */
int sluice_array_list_get_size(const sluice_array_list *list, uint64_t *size);
/* The name and the array at `number`, from 0. Both live as long as the list. Returns code 2 if `number` is out of
 * range. */
int sluice_array_list_get(const sluice_array_list *list, uint64_t number, const char **name,
                          const sluice_array **array);
/* Frees a list and its arrays; NULL has no effect. */
void sluice_array_list_destroy(sluice_array_list *list);

#ifdef __cplusplus
}
#endif
