#include "ir/HostTensor.h"
#include <cmath>
#include <numeric>

using namespace mlir;

namespace sluice::ir {

static int64_t product(ArrayRef<int64_t> shape) { return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>()); }

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

} // namespace sluice::ir
