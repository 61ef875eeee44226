// A convolution or one of its gradients: a sum over the windows of an image.
//
// `loops::findProduct` splits strided windows into dimensions of a product. The generators of the CPU take windows
// whole, so that they read the image without padding it.
#pragma once

#include "backends/cpu/compiler/product/Contraction.h"
#include "ir/Dialect.h"
#include "ir/ops/product/Window.h"

namespace sluice::cpu {

struct WindowProduct {
  enum Part { Image, Weights, Output };

  /// None for other ops.
  static std::optional<WindowProduct> of(mlir::Operation *op);

  mlir::Value image, weights, output; ///< values, or the gradients of values
  Part result;                        ///< the computed one
  ir::Windows windows;                ///< of height and width
  int64_t groups;

  /// Whether groups of one channel are a product of the generators. Weight gradients and long sums are loop nests.
  bool isDepthwiseProduct() const;

  /// The geometry for the generators, with room for `capacity` images; without places and panels.
  Convolution geometry(int64_t capacity) const;

  /// The part that an operand or the result of the op is.
  Part partOf(bool isResult, unsigned number) const;
};

} // namespace sluice::cpu
