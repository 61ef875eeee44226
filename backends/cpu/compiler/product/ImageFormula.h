// The image of a weight gradient that the gradient's kernel computes from another image as it reads it:
//
//   %y = relu (weight * ((%x - mean) / deviation) + bias);  %dW = conv2d_weight_grad %y, %dY
//
// %y need not stay in memory from the forward to the backward pass. The generator copies the pixels that its tiles read
// (window/PixelCopies.h), and applies the formula to each copied vector.
#pragma once

#include "backends/cpu/compiler/machine/Target.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"

#include <optional>

namespace sluice::cpu {

struct ImageFormula {
  mlir::Value image;                              ///< the operand of the gradient
  mlir::Value source;                             ///< the image in memory
  llvm::SmallSetVector<mlir::Operation *, 8> ops; ///< that compute one from the other

  /// The formula of ops for which `isInside` holds; none if the op is not a gradient that can apply it. The formula is
  /// elementwise in one image of the same type, values per channel, and numbers.
  static std::optional<ImageFormula> of(mlir::Operation *gradient, llvm::function_ref<bool(mlir::Operation *)> isInside,
                                        const Target &target, int64_t capacity);
};

} // namespace sluice::cpu
