// The contents of arrays, to which handles refer.
#pragma once

#include "runtime/arrays/Storage.h"
#include "sluice/array.h"
#include <memory>
#include <string>
#include <vector>

namespace sluice::detail {

/// A dtype, a shape and a device. Uniqued: equal types are one object, which is never destroyed.
struct ArrayType {
  DType dtype;
  std::vector<int64_t> shape;
  runtime::ArrayDevice *device;
  int64_t elements;
  size_t bytes;

  /// Throws Error, prefixed with `function`, for negative sizes and for more than 2^40 elements.
  static const ArrayType *get(DType dtype, std::vector<int64_t> shape, runtime::ArrayDevice &device,
                              const char *function, const SourceLocation &where);
  const ArrayType *on(runtime::ArrayDevice &other) const;
  /// "[2, 3]"
  std::string shapeText() const;
};

/// A recorded call (Tape.h).
struct RecordedCall;

/// A version of an array: its memory, and the recorded call that computed it.
struct ArrayValue {
  const ArrayType *type = nullptr;
  runtime::StoragePointer storage;
  std::shared_ptr<RecordedCall> call = nullptr; ///< null: not recorded
  size_t result = 0;                            ///< index among the results of `call`
  int64_t writes = 0;                           ///< in a recorded operand: Storage::writes at the time of the call
};

struct ArrayImpl : std::enable_shared_from_this<ArrayImpl> {
  explicit ArrayImpl(ArrayValue value) : value(std::move(value)) {}

  ArrayValue value;
  /// The gradient, with attach_grad; null otherwise. Recorded calls that read a leaf refer to its ArrayImpl.
  std::shared_ptr<Array> gradient = nullptr;
};

/// Access to the private members of Array.
struct ArrayAccess {
  static ArrayImpl *get(const Array &array) { return array.impl.get(); }
  static const std::shared_ptr<ArrayImpl> &share(const Array &array) { return array.impl; }
  static Array make(ArrayValue value) {
    Array array;
    array.impl = std::make_shared<ArrayImpl>(std::move(value));
    return array;
  }
  /// The array; throws if the handle is empty.
  static ArrayImpl &require(const Array &array, const char *function, std::source_location where);
};

/// Looks up a device of this process. Throws Error (code 4) if it is not in the list.
runtime::ArrayDevice &findDevice(const Device &device, const char *function, std::source_location where);
/// The name of a device: cpu(), gpu(1).
Device nameOf(const runtime::ArrayDevice &device);
/// Allocates memory for an array. Work of this thread may use it at once.
runtime::StoragePointer allocate(const ArrayType &type, const char *function, std::source_location where);
/// Whether a write in place must allocate: other arrays or queued work use the memory, or it is read-only. Memory
/// shared with another library is written in place.
bool needsMemoryToWrite(const ArrayValue &value);
/// Runs `body`, and rethrows runtime errors as Error at `where`. A message that does not begin with `function` gets it
/// as a prefix.
void guarded(const char *function, std::source_location where, const std::function<void()> &body);
inline Shape toShape(const std::vector<std::int64_t> &sizes) {
  return Shape(std::vector<Dim>(sizes.begin(), sizes.end()));
}
/// Element `index`, exactly.
long double numberAt(DType dtype, const std::byte *elements, int64_t index);
/// "float32" for f32.
const char *longName(DType dtype);

} // namespace sluice::detail
