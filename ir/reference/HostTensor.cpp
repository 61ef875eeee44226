#include "ir/reference/HostTensor.h"
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
  if (element.isF32())
    return double(float(value));
  if (element.isInteger(1))
    return value != 0;
  if (element.isUnsignedInteger(8))
    return double(uint8_t(int64_t(value)));
  if (element.isInteger(32))
    return double(int32_t(int64_t(value)));
  return value;
}

template <typename Number> static double readAs(const void *at) {
  Number number;
  std::memcpy(&number, at, sizeof number);
  return double(number);
}

template <typename Number> static void writeAs(void *at, double value) {
  auto number = Number(value);
  std::memcpy(at, &number, sizeof number);
}

double readElement(Type element, const void *at) {
  if (element.isF32())
    return readAs<float>(at);
  if (element.isF64())
    return readAs<double>(at);
  if (element.isInteger(32))
    return readAs<int32_t>(at);
  return element.isInteger(64) ? readAs<int64_t>(at) : readAs<uint8_t>(at);
}

void writeElement(Type element, void *at, double value) {
  if (element.isF32())
    return writeAs<float>(at, value);
  if (element.isF64())
    return writeAs<double>(at, value);
  if (element.isInteger(32))
    return writeAs<int32_t>(at, value);
  return element.isInteger(64) ? writeAs<int64_t>(at, value) : writeAs<uint8_t>(at, value);
}

} // namespace sluice::ir
