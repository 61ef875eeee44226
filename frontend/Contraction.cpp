// Matrix products.
#include "Call.h"

using namespace mlir;

namespace sluice {

using detail::Call;

/// A product of matrices whose leading dimensions broadcast.
static Tensor product(Call &call, Tensor a, Tensor b, bool transposeB) {
  ArrayRef<int64_t> left = Call::shape(a), right = Call::shape(b);
  int64_t inner = transposeB ? right[right.size() - 1] : right[right.size() - 2];
  if (left.back() != inner)
    call.fail("contracting dimensions differ: " + call.print(left.back()) + " and " + call.print(inner));
  SmallVector<int64_t> leading = call.commonShape(left.drop_back(2), right.drop_back(2));
  auto withLeading = [&](ArrayRef<int64_t> matrix) {
    SmallVector<int64_t> shape(leading);
    llvm::append_range(shape, matrix.take_back(2));
    return shape;
  };
  SmallVector<NamedAttribute> attributes;
  if (transposeB)
    attributes.push_back(call.unit("transpose_b"));
  return call.emit<ir::MatmulOp>({call.broadcast(a, withLeading(left)), call.broadcast(b, withLeading(right))},
                                 attributes);
}

Tensor matmul(Arg a, Arg b) {
  Call call("matmul", a, b);
  call.requireFloat(a.tensor);
  call.requireSameDType(a.tensor, b.tensor);
  if (Call::rank(a.tensor) == 0 || Call::rank(b.tensor) == 0)
    call.fail("a scalar has no matrix product; use *");
  bool isRow = Call::rank(a.tensor) == 1, isColumn = Call::rank(b.tensor) == 1;
  Tensor left = isRow ? call.reshape(a.tensor, {1, Call::shape(a.tensor)[0]}) : a.tensor;
  Tensor right = isColumn ? call.reshape(b.tensor, {Call::shape(b.tensor)[0], 1}) : b.tensor;
  Tensor y = product(call, left, right, false);
  SmallVector<int64_t> sizes(Call::shape(y));
  if (isRow)
    sizes.erase(sizes.end() - 2);
  if (isColumn)
    sizes.pop_back();
  return call.reshape(y, sizes);
}

Tensor linear(Arg x, const Tensor &weight, const Tensor &bias) {
  Call call("linear", Call::present({x.tensor, weight, bias}), x.where);
  call.requireFloat(x.tensor);
  call.requireSameDType(x.tensor, weight);
  call.requireRank("weight", weight, 2);
  if (Call::rank(x.tensor) < 2)
    call.fail("the input has " + std::to_string(Call::rank(x.tensor)) + " dimensions, not at least 2");
  Tensor y = product(call, x.tensor, weight, true);
  return call.plusBias(y, bias, Call::rank(y) - 1);
}

} // namespace sluice
