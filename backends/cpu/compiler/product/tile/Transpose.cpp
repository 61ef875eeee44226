#include "backends/cpu/compiler/product/tile/Transpose.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace sluice::cpu {

using namespace mlir;

// One bit of the lane number at a time.
void transposeSquare(OpBuilder &b, Location loc, SmallVectorImpl<Value> &rows) {
  int64_t size = rows.size();
  for (int64_t bit = 1; bit < size; bit *= 2) {
    SmallVector<int64_t> low(size), high(size);
    for (int64_t lane = 0; lane < size; ++lane) {
      low[lane] = lane & bit ? size + (lane ^ bit) : lane;
      high[lane] = lane & bit ? size + lane : lane ^ bit;
    }
    for (int64_t row = 0; row < size; ++row) {
      if (row & bit)
        continue;
      Value first = rows[row], second = rows[row | bit];
      rows[row] = b.create<vector::ShuffleOp>(loc, first, second, low);
      rows[row | bit] = b.create<vector::ShuffleOp>(loc, first, second, high);
    }
  }
}

} // namespace sluice::cpu
