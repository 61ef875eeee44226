#include "ir/reference/Permuted.h"
#include "llvm/ADT/STLExtras.h"

namespace sluice::ir {

HostTensor permuted(const HostTensor &tensor, llvm::ArrayRef<int64_t> order) {
  llvm::SmallVector<int64_t> strides(order.size(), 1);
  for (size_t dim = order.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * tensor.shape[dim];
  HostTensor result(llvm::map_to_vector(order, [&](int64_t dim) { return tensor.shape[dim]; }));
  if (result.data.empty() || order.empty()) {
    result.data = tensor.data;
    return result;
  }
  int64_t last = order.back(), count = tensor.shape[last], stride = strides[last];
  double *to = result.data.data();
  forEachIndex(llvm::ArrayRef(result.shape).drop_back(), [&](llvm::ArrayRef<int64_t> index) {
    const double *from = tensor.data.data();
    for (auto [i, dim] : llvm::zip_equal(index, order.drop_back()))
      from += i * strides[dim];
    for (int64_t i = 0; i < count; ++i)
      *to++ = from[i * stride];
  });
  return result;
}

} // namespace sluice::ir
