#include "tools/arrays/ArrayImpl.h"

#include "runtime/base/Status.h"
#include "runtime/plan/DType.h"
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

namespace sluice::detail {

static std::string textOf(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

static constexpr int64_t mostElements = int64_t(1) << 40;

const ArrayType *ArrayType::get(DType dtype, std::vector<int64_t> shape, runtime::ArrayDevice &device,
                                const char *function, const SourceLocation &where) {
  static std::mutex mutex;
  static auto &types = *new std::map<std::tuple<DType, std::vector<int64_t>, runtime::ArrayDevice *>, ArrayType>();
  int64_t elements = 1;
  for (int64_t size : shape) {
    if (size < 0)
      throw Error(std::string(function) + ": the shape " + textOf(shape) + " has a negative size", where);
    if (size > 0 && elements > mostElements / size)
      throw Error(std::string(function) + ": the shape " + textOf(shape) + " has more than 2^40 elements", where);
    elements *= size;
  }
  std::lock_guard lock(mutex);
  auto [found, isNew] = types.try_emplace({dtype, shape, &device});
  if (isNew)
    found->second = {dtype, shape, &device, elements, size_t(elements) * runtime::sizeOf(runtime::DType(dtype))};
  return &found->second;
}

const ArrayType *ArrayType::on(runtime::ArrayDevice &other) const {
  return &other == device ? this : get(dtype, shape, other, "to", SourceLocation());
}

std::string ArrayType::shapeText() const { return textOf(shape); }

ArrayImpl &ArrayAccess::require(const Array &array, const char *function, std::source_location where) {
  if (!array.impl)
    throw Error(std::string(function) + ": the array handle is empty", where);
  return *array.impl;
}

Device nameOf(const runtime::ArrayDevice &device) { return device.isHost() ? cpu() : gpu(int(device.number()) - 1); }

runtime::StoragePointer allocate(const ArrayType &type, const char *function, std::source_location where) {
  runtime::StoragePointer storage;
  guarded(function, where, [&] {
    storage = std::make_shared<runtime::Storage>(*type.device, type.bytes, type.device->streamOfThread(), function);
  });
  return storage;
}

void guarded(const char *function, std::source_location where, const std::function<void()> &body) {
  runtime::Status status = runtime::guarded(body);
  if (status.ok())
    return;
  bool isNamed = status.message.starts_with(std::string(function) + " (") ||
                 status.message.starts_with(std::string(function) + ": ");
  throw Error(isNamed ? status.message : std::string(function) + ": " + status.message, where, {}, int(status.code));
}

long double numberAt(DType dtype, const std::byte *elements, int64_t index) {
  if (dtype != DType::i64)
    return runtime::elementAsDouble(runtime::DType(dtype), elements, index);
  int64_t number = 0; // a double has 53 bits
  std::memcpy(&number, elements + size_t(index) * sizeof number, sizeof number);
  return number;
}

const char *longName(DType dtype) {
  switch (dtype) {
  case DType::f32:
    return "float32";
  case DType::f64:
    return "float64";
  case DType::i32:
    return "int32";
  case DType::i64:
    return "int64";
  case DType::u8:
    return "uint8";
  case DType::boolean:
    return "bool";
  case DType::f16:
    return "float16";
  case DType::bf16:
    return "bfloat16";
  }
  return "";
}

} // namespace sluice::detail
