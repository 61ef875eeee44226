// Code shared by batch normalization and its gradient, so that the values of one are common subexpressions of the
// other.
#pragma once

#include "ir/Dialect.h"
#include "ir/build/Node.h"
#include "ir/ops/Inference.h"

namespace sluice::ir {

/// Whether an op's statistics cover rows that replicas or microbatches share.
bool sharesStatistics(mlir::Operation *op);

/// Operands and attributes of a batch normalization.
struct NormOperands {
  mlir::Value x, runningMean, runningVar;
  llvm::APFloat eps;
  bool training;
  bool isShared; ///< the statistics cover sharded rows

  /// From a batch normalization or its gradient.
  template <typename Op> static NormOperands of(Op op) {
    return {op.getX(), op.getRunningMean(), op.getRunningVar(), op.getEps(), op.getTraining(), sharesStatistics(op)};
  }
};

/// Per channel.
struct Moments {
  Node mean, var;
};

/// x with mean 0 and variance 1 in each channel. Two-byte floats are computed in f32.
struct Normalised {
  llvm::SmallVector<int64_t> axes; // all but the channels
  Node x, mean, centred, var, inverseDeviation, xHat;

  Normalised(mlir::OpBuilder &builder, mlir::Location loc, const NormOperands &of);

  /// A value per channel, broadcast to x's shape.
  Node overChannels(Node value) const { return expand(value, 1, x.type()); }

private:
  Normalised(Node x, const Moments &moments, double eps);
};

} // namespace sluice::ir
