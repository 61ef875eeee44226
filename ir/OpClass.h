// Facts that the class of an op determines, for loops over many ops. Each `isa` of an interface is a search in the list
// of the op's interfaces; these facts take one look-up together.
#pragma once

#include "mlir/IR/Operation.h"

namespace sluice::ir {

struct OpClass {
  bool isElementwise = false; ///< ElementwiseOp
  bool isElement = false;     ///< ElementOp
  bool isInjective = false;   ///< ElementOp of this fusion kind
  bool isContraction = false; ///< ContractionOp
  bool isBlockwise = false;   ///< BlockwiseOp
  bool isLinear = false;      ///< LinearOp
  bool isUpdate = false;      ///< UpdateOp

  /// Whether ops of the class compute a value, as ir::isCompute.
  bool isCompute() const { return isElementwise || isElement || isContraction || isBlockwise; }
};

OpClass classOf(mlir::Operation *op);

} // namespace sluice::ir
