/* The C interface of arrays in a C program: array_c_test FOLDER. Prints the lines whose checks fail. */
#include "sluice/array_c.h"

#include <stdio.h>
#include <string.h>

static int failures = 0;

#define CHECK(condition)                                                                                               \
  do                                                                                                                   \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "line %d: %s; last error: %s\n", __LINE__, #condition, sluice_array_last_error());               \
      ++failures;                                                                                                      \
    }                                                                                                                  \
  while (0)

/* Whether a call failed with this code and a text that contains `text`. */
static int failed(int code, int expected, const char *text) {
  return code == expected && strstr(sluice_array_last_error(), text) != NULL;
}

static const float numbers[6] = {1, 2, 3, 4, 5, 6};
static const int64_t sizes[2] = {2, 3};

static int holds(const sluice_array *array, float first, float last) {
  float elements[6];
  return sluice_array_get_elements(array, elements, sizeof elements) == 0 && elements[0] == first &&
         elements[5] == last;
}

static void test_queries(const sluice_array *array, const char *name) {
  sluice_dtype dtype;
  const int64_t *shape;
  const char *device;
  int32_t dims;
  CHECK(sluice_array_get_dtype(array, &dtype) == 0 && dtype == SLUICE_DTYPE_f32);
  CHECK(sluice_array_get_shape(array, &shape, &dims) == 0 && dims == 2 && shape[0] == 2 && shape[1] == 3);
  CHECK(sluice_array_get_device(array, &device) == 0 && strcmp(device, name) == 0);
  CHECK(sluice_array_wait(array) == 0);
  CHECK(holds(array, 1, 6));
}

static void test_devices(const sluice_array *array) {
  sluice_array *there, *same, *back;
  const float zeros[6] = {0};
  CHECK(sluice_array_to(array, "gpu:1", &there) == 0);
  test_queries(there, "gpu(1)");
  CHECK(sluice_array_to(there, "gpu(1)", &same) == 0);
  CHECK(sluice_array_set_elements(same, zeros, sizeof zeros) == 0);
  CHECK(holds(there, 0, 0) && holds(array, 1, 6)); /* `same` is the same array */
  CHECK(sluice_array_to(there, "cpu", &back) == 0 && holds(back, 0, 0));
  sluice_array_destroy(there);
  sluice_array_destroy(same);
  sluice_array_destroy(back);
}

static void test_dlpack(sluice_array *array) {
  DLManagedTensor *old;
  DLManagedTensorVersioned *versioned;
  sluice_array *first, *second;
  CHECK(sluice_array_to_dlpack(array, &old) == 0 && ((float *)old->dl_tensor.data)[5] == 6);
  CHECK(sluice_array_to_dlpack_versioned(array, &versioned) == 0 && versioned->version.major == 1);
  CHECK(versioned->dl_tensor.data == old->dl_tensor.data);
  CHECK(sluice_array_from_dlpack(old, &first) == 0 && holds(first, 1, 6));
  versioned->version.major = 9;
  CHECK(failed(sluice_array_from_dlpack_versioned(versioned, &second), 2, "has version 9.") && second == NULL);
  versioned->version.major = 1;
  CHECK(sluice_array_from_dlpack_versioned(versioned, &second) == 0 && holds(second, 1, 6));
  sluice_array_destroy(first);
  sluice_array_destroy(second);
}

static void test_files(const sluice_array *array, const char *folder) {
  char path[1000];
  const char *names[2] = {"b", "a"}, *name;
  const sluice_array *arrays[2], *found;
  sluice_array *loaded;
  sluice_array_list *list;
  uint64_t size;
  snprintf(path, sizeof path, "%s/x.npy", folder);
  CHECK(sluice_array_save_npy(array, path) == 0);
  CHECK(sluice_array_load_npy(path, "gpu:0", &loaded) == 0);
  test_queries(loaded, "gpu(0)");
  arrays[0] = array;
  arrays[1] = loaded;
  CHECK(failed(sluice_array_load_safetensors(path, "cpu", &list), 3, "x.npy") && list == NULL);
  CHECK(sluice_array_save_safetensors(path, names, arrays, 2) == 0);
  CHECK(failed(sluice_array_load_npy(path, "cpu", &loaded), 3, "x.npy: not an npy file") && loaded == NULL);
  CHECK(sluice_array_load_safetensors(path, "cpu", &list) == 0);
  CHECK(sluice_array_list_get_size(list, &size) == 0 && size == 2);
  CHECK(sluice_array_list_get(list, 0, &name, &found) == 0 && strcmp(name, "a") == 0);
  test_queries(found, "cpu()");
  CHECK(failed(sluice_array_list_get(list, 2, &name, &found), 2, "array 2 is out of range for a list of 2") && !name &&
        !found);
  sluice_array_list_destroy(list);
  sluice_array_destroy((sluice_array *)arrays[1]);
}

static void test_errors(void) {
  const int64_t negative[1] = {-1};
  const int64_t *shape;
  int32_t dims = 3;
  float number;
  sluice_array *array = (sluice_array *)&number;
  CHECK(failed(sluice_array_create(numbers, 24, SLUICE_DTYPE_f32, sizes, 2, "tpu", &array), 2, "tpu") && !array);
  CHECK(failed(sluice_array_create(numbers, 24, SLUICE_DTYPE_f32, sizes, 2, "gpu:7", &array), 4, "no gpu(7)"));
  CHECK(failed(sluice_array_create(numbers, 23, SLUICE_DTYPE_f32, sizes, 2, "cpu", &array), 2, "has 24 bytes, not 23"));
  CHECK(failed(sluice_array_create(numbers, 24, (sluice_dtype)99, sizes, 2, "cpu", &array), 2, "unknown dtype 99"));
  CHECK(failed(sluice_array_create(numbers, 4, SLUICE_DTYPE_f32, negative, 1, "cpu", &array), 2, "negative size"));
  CHECK(failed(sluice_array_create(numbers, 4, SLUICE_DTYPE_f32, sizes, -1, "cpu", &array), 2,
               "dims must not be negative: -1"));
  CHECK(failed(sluice_array_create(NULL, 24, SLUICE_DTYPE_f32, sizes, 2, "cpu", &array), 2, "elements is null"));
  CHECK(failed(sluice_array_create(numbers, 24, SLUICE_DTYPE_f32, NULL, 2, "cpu", &array), 2, "null"));
  CHECK(failed(sluice_array_create(numbers, 24, SLUICE_DTYPE_f32, sizes, 2, NULL, &array), 2, "device is null"));
  CHECK(sluice_array_create(numbers, 24, SLUICE_DTYPE_f32, sizes, 2, "cpu", NULL) == 2);
  CHECK(failed(sluice_array_get_shape(NULL, &shape, &dims), 2, "array is null") && dims == 0 && !shape);
  CHECK(failed(sluice_array_from_dlpack(NULL, &array), 2, "null"));
  CHECK(failed(sluice_array_load_npy("/nowhere/x.npy", "cpu", &array), 3, "/nowhere/x.npy"));
  CHECK(failed(sluice_array_set_devices("cpu,sim:x"), 2, "set_devices: "));
  CHECK(sluice_array_create(NULL, 0, SLUICE_DTYPE_u8, negative + 1, 0, "cpu", &array) == 2); /* a scalar has a byte */
  CHECK(sluice_array_create(numbers, 4, SLUICE_DTYPE_f32, NULL, 0, "cpu", &array) == 0);
  CHECK(failed(sluice_array_get_elements(array, &number, 8), 2, "has 4 bytes, not 8"));
  CHECK(sluice_array_get_elements(array, &number, 4) == 0 && number == 1);
  CHECK(*sluice_array_last_error() == 0);
  sluice_array_destroy(array);
  sluice_array_destroy(NULL);
  sluice_array_list_destroy(NULL);
}

int main(int argc, char **argv) {
  sluice_array *array;
  if (argc != 2)
    return 2;
  CHECK(sluice_array_set_devices("cpu,sim:0,sim:1") == 0);
  if (sluice_array_create(numbers, sizeof numbers, SLUICE_DTYPE_f32, sizes, 2, "cpu", &array)) {
    fprintf(stderr, "%s\n", sluice_array_last_error());
    return 1;
  }
  test_queries(array, "cpu()");
  test_devices(array);
  test_dlpack(array);
  test_files(array, argv[1]);
  test_errors();
  sluice_array_destroy(array);
  return failures != 0;
}
