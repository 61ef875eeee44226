// Exchange of arrays with other libraries by DLPack.
#include "sluice/dlpack.h"

#include "runtime/base/Text.h"
#include "runtime/plan/DType.h"
#include "tools/arrays/ArrayImpl.h"
#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

namespace sluice {

using detail::ArrayAccess;
using detail::ArrayType;
using detail::ArrayValue;
using runtime::ArrayDevice;
using runtime::ArrayDevices;
using runtime::concat;
using runtime::Sharing;
using runtime::StoragePointer;

static constexpr int32_t mostDims = 64;
static constexpr const char *cudaBackend = "cuda";

//===- types and devices ------------------------------------------------------------------------------------------===//

static DLDataType typeFor(DType dtype) {
  auto bits = uint8_t(8 * runtime::sizeOf(runtime::DType(dtype)));
  switch (dtype) {
  case DType::f16:
  case DType::f32:
  case DType::f64:
    return {kDLFloat, bits, 1};
  case DType::bf16:
    return {kDLBfloat, bits, 1};
  case DType::i32:
  case DType::i64:
    return {kDLInt, bits, 1};
  case DType::u8:
    return {kDLUInt, bits, 1};
  case DType::boolean:
    return {kDLBool, bits, 1};
  }
  return {};
}

/// "complex64", "int8", "float32 x 4".
static std::string nameOf(const DLDataType &type) {
  static constexpr const char *names[] = {"int", "uint", "float", "opaque handle ", "bfloat", "complex", "bool"};
  std::string kind = type.code < std::size(names) ? names[type.code] : concat("code ", int(type.code), " with bits ");
  return concat(kind, int(type.bits), type.lanes == 1 ? "" : concat(" x ", type.lanes));
}

static DType dtypeOf(const DLDataType &type, std::source_location where) {
  for (runtime::DType each : runtime::allDTypes())
    if (DLDataType its = typeFor(DType(each)); its.code == type.code && its.bits == type.bits && type.lanes == 1)
      return DType(each);
  std::string known;
  for (runtime::DType each : runtime::allDTypes())
    known += (known.empty() ? "" : ", ") + nameOf(typeFor(DType(each)));
  throw Error(concat("from_dlpack: elements of ", nameOf(type), " are not supported; supported: ", known), where);
}

static DLDevice deviceFor(const ArrayDevice &device) {
  if (device.isHost())
    return {kDLCPU, 0};
  return device.backend() == cudaBackend ? DLDevice{kDLCUDA, device.ordinal()}
                                         : DLDevice{kDLExtDev, int32_t(device.number()) - 1};
}

static std::string textOf(const DLDevice &device) {
  static constexpr const char *names[] = {"kDLCPU",
                                          "kDLCUDA",
                                          "kDLCUDAHost",
                                          "kDLOpenCL",
                                          "",
                                          "",
                                          "kDLVulkan",
                                          "kDLMetal",
                                          "kDLVPI",
                                          "kDLROCM",
                                          "kDLROCMHost",
                                          "kDLExtDev",
                                          "kDLCUDAManaged",
                                          "kDLOneAPI",
                                          "kDLWebGPU",
                                          "kDLHexagon",
                                          "kDLMAIA",
                                          "kDLTrn"};
  auto kind = int32_t(device.device_type);
  const char *name = kind >= 1 && size_t(kind) <= std::size(names) ? names[kind - 1] : "";
  return concat("device ", device.device_id, " of kind ", *name ? name : std::to_string(kind));
}

/// The device of an imported tensor.
static ArrayDevice &findDevice(const DLDevice &device, std::source_location where) {
  ArrayDevice &host = detail::findDevice(cpu(), "from_dlpack", where);
  if (device.device_type == kDLCPU)
    return host;
  if (device.device_type == kDLCUDA)
    for (ArrayDevice *each : ArrayDevices::ofProcess().all())
      if (each->backend() == cudaBackend && each->ordinal() == device.device_id)
        return *each;
  const char *reason = device.device_type == kDLCUDA     ? "; set_devices selects the devices of this process"
                       : device.device_type == kDLExtDev ? ", which only its own library can access"
                                                         : "; supported: kDLCPU, kDLCUDA";
  throw Error(concat("from_dlpack: cannot import memory of ", textOf(device), reason), where, {}, 4);
}

//===- export -----------------------------------------------------------------------------------------------------===//

namespace {

/// A managed tensor of this library and its owner.
template <class Managed> struct Exported {
  Managed managed = {};
  StoragePointer storage;
  std::vector<int64_t> shape, strides;

  static void release(Managed *managed) { delete static_cast<Exported *>(managed->manager_ctx); }
  /// The owner of a managed tensor; null: another library.
  static Exported *of(const Managed &managed) {
    return managed.deleter == &release ? static_cast<Exported *>(managed.manager_ctx) : nullptr;
  }
};

} // namespace

/// Prepares the array's memory for export: copies it if other arrays use it, then marks it as shared.
static StoragePointer share(const Array &array, bool mayBeReadOnly, const char *function, std::source_location where) {
  ArrayValue &value = ArrayAccess::require(array, function, where).value;
  detail::guarded(function, where, [&] { value.storage->finish(); });
  Sharing sharing = value.storage->sharing();
  bool isUsedByOthers = sharing == Sharing::none && value.storage.use_count() > 1; // they must not see writes
  if (isUsedByOthers || (sharing == Sharing::readOnly && !mayBeReadOnly)) {
    StoragePointer copy = detail::allocate(*value.type, function, where);
    detail::guarded(function, where, [&] {
      if (value.type->bytes > 0)
        runtime::copyStorage(*value.storage, 0, *copy, 0, value.type->bytes, {function, where}, value.storage);
      copy->finish();
    });
    value.storage = std::move(copy);
  }
  value.storage->share();
  return value.storage;
}

template <class Managed>
static Managed *exported(const Array &array, const char *function, std::source_location where) {
  constexpr bool isVersioned = std::is_same_v<Managed, DLManagedTensorVersioned>;
  auto owner = std::make_unique<Exported<Managed>>();
  owner->storage = share(array, isVersioned, function, where);
  const ArrayType &type = *ArrayAccess::get(array)->value.type;
  owner->shape = type.shape;
  owner->strides.resize(type.shape.size());
  int64_t stride = 1;
  for (size_t dim = type.shape.size(); dim-- > 0; stride *= std::max<int64_t>(type.shape[dim], 1))
    owner->strides[dim] = stride;
  Managed &managed = owner->managed;
  managed.manager_ctx = owner.get();
  managed.deleter = &Exported<Managed>::release;
  if constexpr (isVersioned) {
    managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    managed.flags = owner->storage->sharing() == Sharing::readOnly ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  }
  managed.dl_tensor = {type.elements > 0 ? owner->storage->address() : nullptr,
                       deviceFor(*type.device),
                       int32_t(type.shape.size()),
                       typeFor(type.dtype),
                       owner->shape.data(),
                       owner->strides.data(),
                       0};
  return &owner.release()->managed;
}

DLManagedTensor *to_dlpack(const Array &array, std::source_location where) {
  return exported<DLManagedTensor>(array, "to_dlpack", where);
}
DLManagedTensorVersioned *to_dlpack_versioned(const Array &array, std::source_location where) {
  return exported<DLManagedTensorVersioned>(array, "to_dlpack_versioned", where);
}

//===- the layout of imported elements ----------------------------------------------------------------------------===//

namespace {

/// The checked layout of an imported tensor.
struct Layout {
  std::byte *first;                    ///< the address of the first element
  std::vector<int64_t> shape, strides; ///< strides in bytes
  int64_t low = 0, high = 0;           ///< the byte range of all elements, relative to `first`
  bool isCompact = true;
};

/// Copies elements to compact memory.
class Gather {
public:
  Gather(const Layout &layout, size_t elementBytes) : layout(layout), elementBytes(elementBytes) {}

  /// `first` is the first element, in the original memory or in a copy of it.
  void run(const std::byte *first, std::byte *into) {
    to = into;
    visit(0, first);
  }

private:
  void visit(size_t dim, const std::byte *from) {
    if (dim == layout.shape.size())
      return take(from, elementBytes);
    int64_t size = layout.shape[dim], stride = layout.strides[dim];
    if (dim + 1 == layout.shape.size() && stride == int64_t(elementBytes))
      return take(from, size_t(size) * elementBytes);
    for (int64_t i = 0; i < size; ++i)
      visit(dim + 1, from + i * stride);
  }

  void take(const std::byte *from, size_t bytes) {
    std::memcpy(to, from, bytes);
    to += bytes;
  }

  const Layout &layout;
  size_t elementBytes;
  std::byte *to = nullptr;
};

} // namespace

static std::vector<int64_t> shapeOf(const DLTensor &tensor, std::source_location where) {
  if (tensor.ndim < 0 || tensor.ndim > mostDims)
    throw Error(concat("from_dlpack: a tensor cannot have ", tensor.ndim, " dimensions; at most ", mostDims), where);
  if (tensor.ndim > 0 && !tensor.shape)
    throw Error(concat("from_dlpack: the shape of ", tensor.ndim, " dimensions is null"), where);
  return {tensor.shape, tensor.shape + tensor.ndim};
}

/// The layout of a tensor with elements.
static Layout layoutOf(const DLTensor &tensor, const ArrayType &type, std::source_location where) {
  if (!tensor.data)
    throw Error(concat("from_dlpack: the data of ", type.shapeText(), " is null"), where);
  Layout layout{nullptr, type.shape, {}};
  auto bytes = int64_t(runtime::sizeOf(runtime::DType(type.dtype))), compact = bytes;
  bool isTooFar = false;
  layout.strides.resize(type.shape.size());
  layout.high = bytes;
  for (size_t dim = type.shape.size(); dim-- > 0; compact *= type.shape[dim]) {
    int64_t &stride = layout.strides[dim], last = 0;
    stride = compact;
    if (!tensor.strides || type.shape[dim] == 1)
      continue;
    isTooFar |= __builtin_mul_overflow(tensor.strides[dim], bytes, &stride);
    isTooFar |= __builtin_mul_overflow(type.shape[dim] - 1, stride, &last);
    isTooFar |=
        __builtin_add_overflow(last < 0 ? layout.low : layout.high, last, last < 0 ? &layout.low : &layout.high);
    layout.isCompact &= stride == compact;
  }
  uintptr_t first = 0, edge = 0;
  isTooFar |= __builtin_add_overflow(reinterpret_cast<uintptr_t>(tensor.data), tensor.byte_offset, &first);
  isTooFar |= __builtin_add_overflow(first, layout.low, &edge) || __builtin_add_overflow(first, layout.high, &edge);
  if (isTooFar)
    throw Error(concat("from_dlpack: strides or byte_offset of ", type.shapeText(), " exceed the address space"),
                where);
  layout.first = reinterpret_cast<std::byte *>(first);
  return layout;
}

/// Throws if a bool is neither 0 nor 1. `elements` are compact, on the host.
static void checkBools(const ArrayType &type, const std::byte *elements, std::source_location where) {
  for (int64_t at = 0; type.dtype == DType::boolean && at < type.elements; ++at)
    if (int value = std::to_integer<int>(elements[at]); value > 1)
      throw Error(
          concat("from_dlpack: element ", at, " of the bool tensor ", type.shapeText(), " is ", value, ", not 0 or 1"),
          where);
}

//===- import -----------------------------------------------------------------------------------------------------===//

/// A copy of the elements.
static StoragePointer copied(const Layout &layout, const ArrayType &type, std::source_location where) {
  constexpr const char *function = "from_dlpack";
  size_t elementBytes = runtime::sizeOf(runtime::DType(type.dtype));
  auto span = size_t(layout.high - layout.low);
  ArrayDevice &host = ArrayDevices::ofProcess().host();
  const ArrayType *here = type.on(host);
  StoragePointer result = detail::allocate(type, function, where);
  if (type.device->isHost()) {
    Gather(layout, elementBytes).run(layout.first, result->address());
    checkBools(type, result->address(), where);
    return result;
  }
  detail::guarded(function, where, [&] {
    runtime::CallSite site{function, where};
    runtime::Storage given(*type.device, layout.first + layout.low, span, Sharing::readOnly, [] {});
    if (layout.isCompact) {
      runtime::copyStorage(given, 0, *result, 0, type.bytes, site, nullptr);
      return result->synchronize();
    }
    std::vector<std::byte> bytes(span);
    runtime::readStorage(given, 0, bytes, site);
    StoragePointer gathered = detail::allocate(*here, function, where);
    Gather(layout, elementBytes).run(bytes.data() - layout.low, gathered->address());
    runtime::copyStorage(*gathered, 0, *result, 0, type.bytes, site, gathered);
  });
  return result;
}

template <class Managed> static void release(Managed *managed) {
  if (managed->deleter)
    managed->deleter(managed);
}

template <class Managed> static Array imported(Managed *managed, std::source_location where) {
  if (!managed)
    throw Error("from_dlpack: the managed tensor is null", where);
  Sharing sharing = Sharing::readWrite;
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
    if (managed->version.major != DLPACK_MAJOR_VERSION)
      throw Error(concat("from_dlpack: the tensor has version ", managed->version.major, ".", managed->version.minor,
                         " of DLPack; supported: ", DLPACK_MAJOR_VERSION),
                  where);
    sharing = managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY   ? Sharing::readOnly
              : managed->flags & DLPACK_FLAG_BITMASK_IS_COPIED ? Sharing::none
                                                               : Sharing::readWrite;
  }
  const DLTensor &tensor = managed->dl_tensor;
  const Exported<Managed> *own = Exported<Managed>::of(*managed);
  DType dtype = dtypeOf(tensor.dtype, where);
  ArrayDevice &device = own ? own->storage->device() : findDevice(tensor.device, where);
  const ArrayType &type = *ArrayType::get(dtype, shapeOf(tensor, where), device, "from_dlpack", where);
  StoragePointer storage;
  if (type.elements == 0) {
    storage = detail::allocate(type, "from_dlpack", where);
    release(managed);
    return ArrayAccess::make({&type, std::move(storage)});
  }
  Layout layout = layoutOf(tensor, type, where);
  size_t alignment = runtime::sizeOf(runtime::DType(dtype)); // kernels of the host need no more
  if (!device.isHost())
    detail::guarded("from_dlpack", where, [&] { alignment = device.memory().alignment(); });
  bool isAligned = reinterpret_cast<uintptr_t>(layout.first) % alignment == 0;
  bool isOwnStorage = own && layout.first == own->storage->address() && type.bytes <= own->storage->bytes();
  if (isOwnStorage && layout.isCompact) { // our own tensor: keep the storage, and with it the order of its work
    storage = own->storage;
    release(managed);
  } else if (layout.isCompact && isAligned) {
    if (device.isHost())
      checkBools(type, layout.first, where);
    storage =
        std::make_shared<runtime::Storage>(device, layout.first, type.bytes, sharing, [managed] { release(managed); });
  } else {
    storage = copied(layout, type, where);
    release(managed);
  }
  return ArrayAccess::make({&type, std::move(storage)});
}

Array from_dlpack(DLManagedTensor *managed, std::source_location where) { return imported(managed, where); }
Array from_dlpack(DLManagedTensorVersioned *managed, std::source_location where) { return imported(managed, where); }

} // namespace sluice
