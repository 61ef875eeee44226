// Arrays in .npy and .safetensors files.
#include "sluice/array_files.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Safetensors.h"
#include "tools/arrays/ArrayImpl.h"
#include "llvm/Support/JSON.h"
#include <algorithm>
#include <map>
#include <set>
#include <span>

namespace sluice {

using detail::ArrayAccess;
using detail::ArrayType;
using detail::ArrayValue;
using runtime::concat;
using runtime::StoragePointer;

/// Copies the elements to the host if necessary, and passes them to `take`.
static void withElements(const ArrayValue &value, const runtime::CallSite &site,
                         const std::function<void(std::span<const std::byte>)> &take) {
  if (value.type->bytes == 0)
    return take({});
  if (value.type->device->isHost()) {
    value.storage->synchronize();
    return take({value.storage->address(), value.type->bytes});
  }
  std::vector<std::byte> copy(value.type->bytes);
  runtime::readStorage(*value.storage, 0, copy, site);
  take(copy);
}

/// Creates an array from elements that `fill` writes. `what` names the source in errors.
static Array makeArray(runtime::DType dtype, const runtime::Shape &shape, const Device &device, const char *function,
                       std::source_location where, const std::string &what,
                       const std::function<void(std::span<std::byte>)> &fill) {
  const ArrayType *type =
      ArrayType::get(DType(dtype), shape, detail::findDevice(cpu(), function, where), function, where);
  StoragePointer storage = detail::allocate(*type, function, where);
  detail::guarded(function, where, [&] {
    std::span<std::byte> elements(storage->address(), type->bytes);
    fill(elements);
    if (type->dtype == DType::boolean &&
        std::any_of(elements.begin(), elements.end(), [](std::byte byte) { return byte > std::byte(1); }))
      runtime::failInvalid(concat(what, ": a boolean is neither 0 nor 1"));
  });
  return ArrayAccess::make({type, std::move(storage)}).to(device, where);
}

void save_npy(const std::string &path, const Array &array, std::source_location where) {
  const ArrayValue &value = ArrayAccess::require(array, "save_npy", where).value;
  detail::guarded("save_npy", where, [&] {
    withElements(value, {"save_npy", where}, [&](std::span<const std::byte> elements) {
      runtime::writeNpy(path, runtime::DType(value.type->dtype), value.type->shape, elements);
    });
  });
}

Array load_npy(const std::string &path, std::optional<Device> device, std::source_location where) {
  Device place = device.value_or(default_device());
  detail::findDevice(place, "load_npy", where);
  runtime::HostTensor tensor;
  detail::guarded("load_npy", where, [&] { tensor = runtime::readNpy(path); });
  return makeArray(tensor.dtype, tensor.shape, place, "load_npy", where, path, [&](std::span<std::byte> elements) {
    std::copy(tensor.data.begin(), tensor.data.end(), elements.begin());
  });
}

static void checkNames(const std::vector<std::pair<std::string, Array>> &arrays, std::source_location where) {
  std::set<std::string> names;
  for (const auto &[name, array] : arrays) {
    const char *problem = name == "__metadata__"       ? " is reserved"
                          : !llvm::json::isUTF8(name)  ? " is not UTF-8"
                          : !names.insert(name).second ? " appears twice"
                                                       : nullptr;
    if (problem)
      throw Error(concat("save_safetensors: the name ", runtime::quote(name), problem), where);
  }
}

void save_safetensors(const std::string &path, const std::vector<std::pair<std::string, Array>> &arrays,
                      std::source_location where) {
  checkNames(arrays, where);
  std::map<std::string, const ArrayValue *> values;
  std::vector<runtime::TensorRange> ranges;
  for (const auto &[name, array] : arrays) {
    const ArrayValue &value = ArrayAccess::require(array, "save_safetensors", where).value;
    values[name] = &value;
    ranges.push_back({name, runtime::DType(value.type->dtype), value.type->shape});
  }
  detail::guarded("save_safetensors", where, [&] {
    auto give = [&](const runtime::TensorRange &range, const runtime::WriteBytes &write) {
      withElements(*values.at(range.name), {"save_safetensors", where}, write);
    };
    runtime::writeSafetensors(path, ranges, {}, give);
  });
}

std::vector<std::pair<std::string, Array>> load_safetensors(const std::string &path, std::optional<Device> device,
                                                            std::source_location where) {
  Device place = device.value_or(default_device());
  detail::findDevice(place, "load_safetensors", where);
  std::optional<runtime::SafetensorsFile> file;
  detail::guarded("load_safetensors", where, [&] { file.emplace(path); });
  std::vector<std::pair<std::string, Array>> arrays;
  for (const runtime::TensorRange &tensor : file->tensors()) {
    std::string what = concat(path, ": tensor ", runtime::quote(tensor.name));
    arrays.push_back({tensor.name, makeArray(tensor.dtype, tensor.shape, place, "load_safetensors", where, what,
                                             [&](std::span<std::byte> elements) { file->read(tensor, 0, elements); })});
  }
  return arrays;
}

} // namespace sluice
