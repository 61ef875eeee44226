#include "ir/reference/HostTensor.h"
#include "ir/Types.h"
#include <cmath>
#include <cstring>
#include <numeric>

using namespace mlir;

namespace sluice::ir {

static int64_t product(ArrayRef<int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
}

HostTensor::HostTensor(ArrayRef<int64_t> shape, double fill) : shape(shape), data(product(shape), fill) {}

size_t HostTensor::offset(ArrayRef<int64_t> index) const {
  size_t result = 0;
  for (auto [i, size] : llvm::zip_equal(index, shape))
    result = result * size + i;
  return result;
}

SmallVector<int64_t> runtimeShape(Type type, int64_t rows) {
  SmallVector<int64_t> shape(cast<RankedTensorType>(type).getShape());
  std::replace(shape.begin(), shape.end(), ShapedType::kDynamic, rows);
  return shape;
}

void forEachIndex(ArrayRef<int64_t> shape, const std::function<void(ArrayRef<int64_t>)> &body) {
  if (llvm::is_contained(shape, 0))
    return;
  SmallVector<int64_t> index(shape.size(), 0);
  while (true) {
    body(index);
    int64_t dim = int64_t(shape.size()) - 1;
    for (; dim >= 0 && ++index[dim] == shape[dim]; --dim)
      index[dim] = 0;
    if (dim < 0)
      return;
  }
}

double roundTo(Type element, double value) {
  switch (*dtypeOf(element)) {
  case SLUICE_DTYPE_f32:
    return double(float(value));
  case SLUICE_DTYPE_i32:
    return double(int32_t(int64_t(value)));
  case SLUICE_DTYPE_u8:
    return double(uint8_t(int64_t(value)));
  case SLUICE_DTYPE_boolean:
    return value != 0;
  case SLUICE_DTYPE_f64:
  case SLUICE_DTYPE_i64:
    return value;
  case SLUICE_DTYPE_f16:
    return double(sluice_f16(float(value)));
  case SLUICE_DTYPE_bf16:
    return double(sluice_bf16(float(value)));
  }
  llvm_unreachable("a dtype beyond the table");
}

template <typename Number> static double readAs(const void *at) {
  Number number;
  std::memcpy(&number, at, sizeof number);
  return double(number);
}

// Two-byte floats are rounded from f32, like in the ops that compute them.
template <typename Number> static void writeAs(void *at, double value) {
  auto number = Number(value);
  std::memcpy(at, &number, sizeof number);
}

double readElement(Type element, const void *at) {
#define SLUICE_DTYPE_READ(name, number, type, ...)                                                                     \
  case SLUICE_DTYPE_##name:                                                                                            \
    return readAs<type>(at);
  switch (*dtypeOf(element)) { SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_READ) }
#undef SLUICE_DTYPE_READ
  llvm_unreachable("a dtype beyond the table");
}

void writeElement(Type element, void *at, double value) {
#define SLUICE_DTYPE_WRITE(name, number, type, ...)                                                                    \
  case SLUICE_DTYPE_##name:                                                                                            \
    return writeAs<type>(at, value);
  switch (*dtypeOf(element)) { SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_WRITE) }
#undef SLUICE_DTYPE_WRITE
  llvm_unreachable("a dtype beyond the table");
}

} // namespace sluice::ir
