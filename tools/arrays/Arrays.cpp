// Arrays: their elements, devices and creation.
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/plan/DType.h"
#include "sluice/array.h"
#include "tools/arrays/Calls.h"
#include "tools/arrays/Create.h"
#include "tools/arrays/Tape.h"
#include <cstring>

namespace sluice {

using detail::ArrayAccess;
using detail::ArrayImpl;
using detail::ArrayType;
using detail::ArrayValue;
using runtime::ArrayDevice;

static const ArrayType &typeOf(const Array &array, const char *function, std::source_location where) {
  return *ArrayAccess::require(array, function, where).value.type;
}

DType Array::dtype(Where where) const { return typeOf(*this, "dtype", where).dtype; }
const std::vector<std::int64_t> &Array::shape(Where where) const { return typeOf(*this, "shape", where).shape; }
std::int64_t Array::dim(Where where) const { return std::int64_t(typeOf(*this, "dim", where).shape.size()); }
std::int64_t Array::numel(Where where) const { return typeOf(*this, "numel", where).elements; }
Device Array::device(Where where) const { return detail::nameOf(*typeOf(*this, "device", where).device); }

std::int64_t Array::size(std::int64_t dim, Where where) const {
  const std::vector<std::int64_t> &shape = typeOf(*this, "size", where).shape;
  auto rank = std::int64_t(shape.size());
  if (dim < -rank || dim >= rank)
    throw Error(runtime::concat("size: dimension ", dim, " is out of range for an array of ", rank, " dimensions"),
                where);
  return shape[size_t(dim < 0 ? dim + rank : dim)];
}

//===- elements on the host ---------------------------------------------------------------------------------------===//

void Array::read(void *elements, DType dtype, Where where) const {
  const ArrayValue &value = ArrayAccess::require(*this, "to_vector", where).value;
  if (dtype != value.type->dtype)
    throw Error(runtime::concat("to_vector: the array is ", to_string(value.type->dtype), ", not ", to_string(dtype),
                                ": convert it with .to(", to_string(dtype), ")"),
                where);
  if (value.type->bytes > 0)
    detail::guarded("to_vector", where, [&] {
      runtime::readStorage(*value.storage, 0, {static_cast<std::byte *>(elements), value.type->bytes},
                           {"to_vector", where});
    });
}

long double Array::number(Where where) const {
  const ArrayValue &value = ArrayAccess::require(*this, "item", where).value;
  if (value.type->elements != 1)
    throw Error(
        runtime::concat("item: the array ", value.type->shapeText(), " has ", value.type->elements, " elements, not 1"),
        where);
  std::byte bytes[8];
  detail::guarded("item", where,
                  [&] { runtime::readStorage(*value.storage, 0, {bytes, value.type->bytes}, {"item", where}); });
  return detail::numberAt(value.type->dtype, bytes, 0);
}

void Array::wait(Where where) const {
  ArrayImpl &impl = ArrayAccess::require(*this, "wait", where);
  detail::guarded("wait", where, [&] { impl.value.storage->synchronize(); });
}

//===- devices ----------------------------------------------------------------------------------------------------===//

/// A copy of an array's elements on a device.
static Array copied(const Array &array, ArrayDevice &device, const char *function, std::source_location where) {
  const ArrayValue &from = ArrayAccess::require(array, function, where).value;
  const ArrayType *type = from.type->on(device);
  runtime::StoragePointer storage = detail::allocate(*type, function, where);
  if (type->bytes > 0)
    detail::guarded(function, where, [&] {
      runtime::copyStorage(*from.storage, 0, *storage, 0, type->bytes, {function, where}, from.storage);
    });
  Array result = ArrayAccess::make({type, std::move(storage)});
  if (is_recording())
    detail::recordCopy(array, result, function, where);
  return result;
}

Array Array::to(const Device &device, Where where) const {
  ArrayDevice &to = detail::findDevice(device, "to", where);
  return typeOf(*this, "to", where).device == &to ? *this : copied(*this, to, "to", where);
}

Array Array::copy_to(const Device &device, Where where) const {
  return copied(*this, detail::findDevice(device, "copy_to", where), "copy_to", where);
}

Array Array::cpu(Where where) const { return to(sluice::cpu(), where); }
Array Array::cuda(Where where) const {
  Device device = default_device();
  return to(device.kind() == Device::Kind::gpu ? device : gpu(0), where);
}
Array Array::cuda(int index, Where where) const { return to(gpu(index, where), where); }

void Array::copy_to(Array &existing, Where where) const {
  const ArrayValue &from = ArrayAccess::require(*this, "copy_to", where).value;
  ArrayImpl &to = ArrayAccess::require(existing, "copy_to", where);
  if (from.type->shape != to.value.type->shape || from.type->dtype != to.value.type->dtype)
    throw Error(runtime::concat("copy_to: the array is ", from.type->shapeText(), " ", to_string(from.type->dtype),
                                ", but the existing one is ", to.value.type->shapeText(), " ",
                                to_string(to.value.type->dtype)),
                where);
  if (from.storage == to.value.storage || from.type->bytes == 0)
    return;
  if (detail::needsMemoryToWrite(to.value))
    to.value.storage = detail::allocate(*to.value.type, "copy_to", where);
  to.value.call = nullptr;
  detail::guarded("copy_to", where, [&] {
    runtime::copyStorage(*from.storage, 0, *to.value.storage, 0, from.type->bytes, {"copy_to", where}, from.storage);
  });
  if (is_recording())
    detail::recordCopy(*this, existing, "copy_to", where);
}

//===- changes in place -------------------------------------------------------------------------------------------===//

bool detail::needsMemoryToWrite(const ArrayValue &value) {
  switch (value.storage->sharing()) {
  case runtime::Sharing::none:
    return value.storage.use_count() > 1;
  case runtime::Sharing::readOnly:
    return true;
  case runtime::Sharing::readWrite:
    return false;
  }
  return true;
}

/// A result that no call computed is an array with a gradient, or none: then the assignment is a copy.
static void recordAssignment(const Array &result, const AssignedArray &x) {
  if (is_recording() && !result.is(x.array) && !ArrayAccess::get(result)->value.call)
    detail::recordCopy(result, x.array, "assignment", x.where);
}

Array &detail::assign(const AssignedArray &x, const Array &result) {
  ArrayImpl &to = ArrayAccess::require(x.array, "assignment", x.where);
  const ArrayValue &from = ArrayAccess::require(result, "assignment", x.where).value;
  if (from.type != to.value.type)
    throw Error(runtime::concat("assignment: the array is ", to.value.type->shapeText(), " ",
                                to_string(to.value.type->dtype), " on ", nameOf(*to.value.type->device).str(),
                                ", but the result is ", from.type->shapeText(), " ", to_string(from.type->dtype),
                                " on ", nameOf(*from.type->device).str()),
                x.where);
  bool isLeaf = to.gradient && !to.value.call;
  if (is_recording() && isLeaf && from.call)
    throw Error(
        "assignment: an array with attach_grad cannot change by calls that a tape records, which would make it a "
        "result; change it after the tape, or while NoGrad exists",
        x.where);
  // Memory that another library shares is written; otherwise x takes the memory of the result.
  bool isShared = to.value.storage->sharing() == runtime::Sharing::readWrite, isSame = from.storage == to.value.storage;
  if (!isShared && (isSame || from.storage->sharing() == runtime::Sharing::none)) {
    to.value = from;
    recordAssignment(result, x);
    return x.array;
  }
  if (!isShared) // another library may change the memory of the result: copy it
    to.value.storage = allocate(*to.value.type, "assignment", x.where);
  if (from.type->bytes > 0 && !isSame)
    guarded("assignment", x.where, [&] {
      runtime::copyStorage(*from.storage, 0, *to.value.storage, 0, from.type->bytes, {"assignment", x.where},
                           from.storage);
    });
  to.value.call = from.call;
  to.value.result = from.result;
  recordAssignment(result, x);
  return x.array;
}

Array &Array::fill_(double value, Where where) {
  const ArrayType &type = typeOf(*this, "fill_", where);
  return detail::assign({*this, where}, full(detail::toShape(type.shape), value, type.dtype, device(), where));
}

Array &Array::normal_(const Array &key, double mean, double std, Where where) {
  const ArrayType &type = typeOf(*this, "normal_", where);
  return detail::assign({*this, where},
                        random::normal(ArrayArg(key, where), detail::toShape(type.shape), mean, std, type.dtype));
}

Array &Array::uniform_(const Array &key, double low, double high, Where where) {
  const ArrayType &type = typeOf(*this, "uniform_", where);
  return detail::assign({*this, where},
                        random::uniform(ArrayArg(key, where), detail::toShape(type.shape), low, high, type.dtype));
}

Array &Array::copy_(const Array &source, Where where) {
  const ArrayType &type = typeOf(*this, "copy_", where);
  Array here = source.to(device(), where);
  if (here.dtype() != type.dtype)
    here = here.to(type.dtype, where);
  if (here.shape() != type.shape)
    here = here.expand(detail::toShape(type.shape), where);
  return detail::assign({*this, where}, here);
}

Array Array::detach(Where where) const {
  const ArrayValue &value = ArrayAccess::require(*this, "detach", where).value;
  if (value.storage->sharing() == runtime::Sharing::none)
    return ArrayAccess::make({value.type, value.storage});
  NoGrad pause;
  return copied(*this, *value.type->device, "detach", where);
}

//===- new arrays -------------------------------------------------------------------------------------------------===//

static std::vector<int64_t> sizesOf(const Shape &shape, const char *function, std::source_location where) {
  std::vector<int64_t> sizes;
  for (const Dim &dim : shape) {
    if (dim.symbolic())
      throw Error(std::string(function) + ": dimension '" + dim.name + "' has no size; arrays need static shapes",
                  where);
    sizes.push_back(dim.size);
  }
  return sizes;
}

static Array emptyOn(const Shape &shape, DType dtype, const std::optional<Device> &device, const char *function,
                     std::source_location where) {
  ArrayDevice &place = detail::findDevice(device.value_or(default_device()), function, where);
  const ArrayType *type = ArrayType::get(dtype, sizesOf(shape, function, where), place, function, where);
  return ArrayAccess::make({type, detail::allocate(*type, function, where)});
}

Array empty(const Shape &shape, DType dtype, std::optional<Device> device, std::source_location where) {
  return emptyOn(shape, dtype, device, "empty", where);
}

static Array fullOn(const Shape &shape, double value, DType dtype, const std::optional<Device> &device,
                    const char *function, std::source_location where) {
  for (int64_t size : sizesOf(shape, function, where))
    if (size == 0)
      return emptyOn(shape, dtype, device, function, where);
  auto make = [](Graph &graph, const Shape &sizes, double each, DType type, std::source_location line) {
    return graph.full(sizes, each, type, line);
  };
  return detail::create(function, where, device, make, shape, value, dtype);
}

Array full(const Shape &shape, double value, DType dtype, std::optional<Device> device, std::source_location where) {
  return fullOn(shape, value, dtype, device, "full", where);
}
Array zeros(const Shape &shape, DType dtype, std::optional<Device> device, std::source_location where) {
  return fullOn(shape, 0, dtype, device, "zeros", where);
}
Array ones(const Shape &shape, DType dtype, std::optional<Device> device, std::source_location where) {
  return fullOn(shape, 1, dtype, device, "ones", where);
}

Array arange(double end, DType dtype, std::optional<Device> device, std::source_location where) {
  return arange(0, end, 1, dtype, device, where);
}
Array arange(double start, double end, double step, DType dtype, std::optional<Device> device,
             std::source_location where) {
  auto make = [](Graph &graph, double first, double last, double by, DType type, std::source_location line) {
    return graph.arange(first, last, by, type, line);
  };
  return detail::create("arange", where, device, make, start, end, step, dtype);
}

Array eye(std::int64_t n, std::optional<std::int64_t> m, DType dtype, std::optional<Device> device,
          std::source_location where) {
  auto make = [](Graph &graph, std::int64_t rows, std::optional<std::int64_t> columns, DType type,
                 std::source_location line) { return graph.eye(rows, columns, type, line); };
  return detail::create("eye", where, device, make, n, m, dtype);
}
Array linspace(double start, double end, std::int64_t steps, DType dtype, std::optional<Device> device,
               std::source_location where) {
  auto make = [](Graph &graph, double first, double last, std::int64_t count, DType type, std::source_location line) {
    return graph.linspace(first, last, count, type, line);
  };
  return detail::create("linspace", where, device, make, start, end, steps, dtype);
}

Array Array::new_full(const Shape &shape, double value, Where where) const {
  return full(shape, value, dtype(where), device(where), where);
}
Array Array::new_zeros(const Shape &shape, Where where) const { return new_full(shape, 0, where); }
Array Array::new_ones(const Shape &shape, Where where) const { return new_full(shape, 1, where); }
Array Array::new_empty(const Shape &shape, Where where) const {
  return empty(shape, dtype(where), device(where), where);
}

Array detail::newArray(const void *elements, std::size_t count, DType dtype, const Shape &shape,
                       const std::optional<Device> &device, std::source_location where) {
  ArrayDevice &host = runtime::ArrayDevices::ofProcess().host();
  ArrayDevice &place = findDevice(device.value_or(default_device()), "array", where);
  const ArrayType *type = ArrayType::get(dtype, sizesOf(shape, "array", where), host, "array", where);
  if (size_t(type->elements) != count)
    throw Error(runtime::concat("array: the shape ", type->shapeText(), " has ", type->elements, " elements, and ",
                                count, " were given"),
                where);
  runtime::StoragePointer storage = allocate(*type, "array", where);
  if (type->bytes > 0)
    std::memcpy(storage->address(), elements, type->bytes);
  Array here = ArrayAccess::make({type, std::move(storage)});
  return &place == &host ? here : copied(here, place, "array", where);
}

} // namespace sluice
