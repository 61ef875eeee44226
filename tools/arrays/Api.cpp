// The C interface of arrays: converts exceptions to codes.
#include "sluice/array_c.h"

#include "runtime/base/Text.h"
#include "runtime/plan/DType.h"
#include "sluice/array_files.h"
#include "sluice/dlpack.h"
#include "tools/arrays/ArrayImpl.h"
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using runtime::concat;

struct sluice_array {
  Array array;
  std::string device; ///< "gpu(1)"; sluice_array_get_device returns a pointer to it

  explicit sluice_array(Array its) : array(std::move(its)), device(array.device().str()) {}
};

struct sluice_array_list {
  std::vector<std::string> names;
  std::vector<std::unique_ptr<sluice_array>> arrays;
};

static std::string &lastError() {
  thread_local std::string text;
  return text;
}

/// Runs `body`, and returns its error as a code and a text (lastError).
template <typename Body> static int codeOf(Body body) noexcept {
  lastError().clear();
  try {
    body();
    return 0;
  } catch (const Error &error) {
    lastError() = error.message();
    return error.code();
  } catch (const std::bad_alloc &) {
    lastError() = "out of memory";
    return 5;
  } catch (const std::exception &error) {
    lastError() = error.what();
    return 70;
  }
}

[[noreturn]] static void fail(const std::string &message) { throw Error(message, SourceLocation()); }

template <typename T> static T &required(T *pointer, const char *what) {
  if (!pointer)
    fail(concat(what, " is null"));
  return *pointer;
}

static void checkBytes(const detail::ArrayType &type, const void *elements, uint64_t bytes) {
  if (bytes != type.bytes)
    fail(
        concat("the array ", type.shapeText(), " ", to_string(type.dtype), " has ", type.bytes, " bytes, not ", bytes));
  if (bytes > 0 && !elements)
    fail("elements is null");
}

/// Sets *handle to the array that `make` returns, or to null.
template <typename Make> static int create(sluice_array **handle, Make make) {
  return codeOf([&] {
    required(handle, "array") = nullptr;
    *handle = new sluice_array(make());
  });
}

extern "C" {

const char *sluice_array_last_error(void) { return lastError().c_str(); }

int sluice_array_set_devices(const char *list) {
  return codeOf([&] { set_devices(&required(list, "list")); });
}

int sluice_array_create(const void *elements, uint64_t bytes, sluice_dtype dtype, const int64_t *shape, int32_t dims,
                        const char *device, sluice_array **array) {
  return create(array, [&] {
    if (unsigned(dtype) >= runtime::allDTypes().size())
      fail(concat("unknown dtype ", unsigned(dtype)));
    if (dims < 0)
      fail(concat("dims must not be negative: ", dims));
    if (dims > 0 && !shape)
      fail(concat("shape is null, but dims is ", dims));
    std::vector<int64_t> sizes(shape, shape + dims);
    Device place = &required(device, "device");
    const detail::ArrayType *type = detail::ArrayType::get(DType(dtype), sizes, detail::findDevice(place, "create", {}),
                                                           "create", SourceLocation());
    checkBytes(*type, elements, bytes);
    return detail::newArray(elements, size_t(type->elements), type->dtype, detail::toShape(sizes), place, {});
  });
}

void sluice_array_destroy(sluice_array *array) { delete array; }

int sluice_array_get_dtype(const sluice_array *array, sluice_dtype *dtype) {
  return codeOf([&] {
    required(dtype, "dtype") = {};
    *dtype = sluice_dtype(required(array, "array").array.dtype());
  });
}

int sluice_array_get_shape(const sluice_array *array, const int64_t **shape, int32_t *dims) {
  return codeOf([&] {
    required(shape, "shape") = nullptr;
    required(dims, "dims") = 0;
    const std::vector<int64_t> &sizes = required(array, "array").array.shape();
    *shape = sizes.data();
    *dims = int32_t(sizes.size());
  });
}

int sluice_array_get_device(const sluice_array *array, const char **device) {
  return codeOf([&] {
    required(device, "device") = nullptr;
    *device = required(array, "array").device.c_str();
  });
}

int sluice_array_get_elements(const sluice_array *array, void *elements, uint64_t bytes) {
  return codeOf([&] {
    const detail::ArrayValue &value = detail::ArrayAccess::get(required(array, "array").array)->value;
    checkBytes(*value.type, elements, bytes);
    if (bytes > 0)
      detail::guarded("get_elements", {}, [&] {
        runtime::readStorage(*value.storage, 0, {static_cast<std::byte *>(elements), bytes}, {"get_elements", {}});
      });
  });
}

int sluice_array_set_elements(sluice_array *array, const void *elements, uint64_t bytes) {
  return codeOf([&] {
    Array &to = required(array, "array").array;
    checkBytes(*detail::ArrayAccess::get(to)->value.type, elements, bytes);
    detail::newArray(elements, size_t(to.numel()), to.dtype(), detail::toShape(to.shape()), cpu(), {}).copy_to(to);
  });
}

int sluice_array_wait(const sluice_array *array) {
  return codeOf([&] { required(array, "array").array.wait(); });
}

int sluice_array_to(const sluice_array *array, const char *device, sluice_array **result) {
  return create(result, [&] { return required(array, "array").array.to(Device(&required(device, "device"))); });
}

int sluice_array_to_dlpack(const sluice_array *array, DLManagedTensor **managed) {
  return codeOf([&] {
    required(managed, "managed") = nullptr;
    *managed = to_dlpack(required(array, "array").array);
  });
}

int sluice_array_to_dlpack_versioned(const sluice_array *array, DLManagedTensorVersioned **managed) {
  return codeOf([&] {
    required(managed, "managed") = nullptr;
    *managed = to_dlpack_versioned(required(array, "array").array);
  });
}

int sluice_array_from_dlpack(DLManagedTensor *managed, sluice_array **array) {
  return create(array, [&] { return from_dlpack(managed); });
}

int sluice_array_from_dlpack_versioned(DLManagedTensorVersioned *managed, sluice_array **array) {
  return create(array, [&] { return from_dlpack(managed); });
}

int sluice_array_save_npy(const sluice_array *array, const char *path) {
  return codeOf([&] { save_npy(&required(path, "path"), required(array, "array").array); });
}

int sluice_array_load_npy(const char *path, const char *device, sluice_array **array) {
  return create(array, [&] { return load_npy(&required(path, "path"), Device(&required(device, "device"))); });
}

int sluice_array_save_safetensors(const char *path, const char *const *names, const sluice_array *const *arrays,
                                  uint64_t count) {
  return codeOf([&] {
    std::string file = &required(path, "path");
    std::vector<std::pair<std::string, Array>> named;
    for (uint64_t i = 0; i < count; ++i)
      named.emplace_back(&required((&required(names, "names"))[i], "a name"),
                         required((&required(arrays, "arrays"))[i], "an array").array);
    save_safetensors(file, named);
  });
}

int sluice_array_load_safetensors(const char *path, const char *device, sluice_array_list **list) {
  return codeOf([&] {
    required(list, "list") = nullptr;
    auto loaded = std::make_unique<sluice_array_list>();
    for (auto &[name, array] : load_safetensors(&required(path, "path"), Device(&required(device, "device")))) {
      loaded->names.push_back(name);
      loaded->arrays.push_back(std::make_unique<sluice_array>(array));
    }
    *list = loaded.release();
  });
}

int sluice_array_list_get_size(const sluice_array_list *list, uint64_t *size) {
  return codeOf([&] {
    required(size, "size") = 0;
    *size = required(list, "list").arrays.size();
  });
}

int sluice_array_list_get(const sluice_array_list *list, uint64_t number, const char **name,
                          const sluice_array **array) {
  return codeOf([&] {
    required(name, "name") = nullptr;
    required(array, "array") = nullptr;
    if (number >= required(list, "list").arrays.size())
      fail(concat("array ", number, " is out of range for a list of ", list->arrays.size()));
    *name = list->names[number].c_str();
    *array = list->arrays[number].get();
  });
}

void sluice_array_list_destroy(sluice_array_list *list) { delete list; }

} // extern "C"
