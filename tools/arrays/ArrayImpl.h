// What handles of arrays refer to.
#pragma once

#include "runtime/arrays/Storage.h"
#include "sluice/array.h"
#include <memory>
#include <string>
#include <vector>

namespace sluice::detail {

/// A dtype, a shape and a device. Equal ones are one object, which lives until the process ends.
struct ArrayType {
  DType dtype;
  std::vector<int64_t> shape;
  runtime::ArrayDevice *device;
  int64_t elements;
  size_t bytes;

  /// Fails with an error that begins with `function` if there are more than 2^40 elements.
  static const ArrayType *get(DType dtype, std::vector<int64_t> shape, runtime::ArrayDevice &device,
                              const char *function, const SourceLocation &where);
  const ArrayType *on(runtime::ArrayDevice &other) const;
  /// "[2, 3]"
  std::string shapeText() const;
};

/// A recorded call. `backward` follows them from the results.
struct RecordedCall;

/// The elements of an array at some time, and how they were computed.
struct ArrayValue {
  const ArrayType *type = nullptr;
  runtime::StoragePointer storage;
  std::shared_ptr<RecordedCall> call = nullptr; ///< null: not recorded
  size_t result = 0;                            ///< the number among its results
  int64_t writes = 0; ///< of an operand of a recorded call: the writes of its storage before the call
};

struct ArrayImpl : std::enable_shared_from_this<ArrayImpl> {
  explicit ArrayImpl(ArrayValue value) : value(std::move(value)) {}

  ArrayValue value;
  /// With attach_grad: its gradient. Recorded calls that read the array keep this one.
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

/// The device with this name among the devices of arrays. Throws if there is none.
runtime::ArrayDevice &findDevice(const Device &device, const char *function, std::source_location where);
/// The name of a device: cpu(), gpu(1).
Device nameOf(const runtime::ArrayDevice &device);
/// New memory for an array, for work of this thread.
runtime::StoragePointer allocate(const ArrayType &type, const char *function, std::source_location where);
/// Whether a write of an array's elements needs other memory: other arrays or readers keep the elements. Memory that is
/// shared for writes is written in place.
bool needsMemoryToWrite(const ArrayValue &value);
/// Runs code that throws runtime errors, and throws them as Error at `where`. A message that does not name `function`
/// gets it as a prefix.
void guarded(const char *function, std::source_location where, const std::function<void()> &body);
inline Shape toShape(const std::vector<std::int64_t> &sizes) {
  return Shape(std::vector<Dim>(sizes.begin(), sizes.end()));
}
/// Element `index`, exactly.
long double numberAt(DType dtype, const std::byte *elements, int64_t index);
/// "float32" for f32.
const char *longName(DType dtype);

} // namespace sluice::detail
