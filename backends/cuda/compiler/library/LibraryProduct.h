// Products that a library of linear algebra can do: matrices with strides, with nothing left out of their sums, and what it adds
// to them and leaves of them in the same pass.
#pragma once

#include "backends/loops/Product.h"
#include <optional>
#include <string>

namespace sluice::cuda {

/// D[p, q] = sum over k of first[p, k] * second[k, q] for each of the batch, where p are neighbours in D: column-major, as
/// such libraries have it. An operand that is transposed lies as [k, p] or [q, k], its first dimension being the neighbours.
struct LibraryProduct {
  struct Extent {
    int64_t size = 1; ///< or the elements of a row
    bool perRow = false;
  };
  struct Matrix {
    int64_t buffer = 0;  ///< of the kernel
    int64_t leading = 1; ///< elements from one column to the next
    int64_t batchStride = 0;
    bool isTransposed = false;
  };
  /// Of distances between columns, and between matrices, of a GELU's input (cublasLt.h, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD).
  static constexpr int64_t kInputMultiple = 8;

  std::string type; ///< "f32", "f64", "f16" or "bf16", both summed in f32, or "tf32": f32, operands rounded to 11 bits
  Extent p, q, k, batch;
  Matrix first, second, result;
  std::optional<int64_t> bias; ///< the buffer of a number for each p, added to D
  /// Of D's elements: "none", "relu", "gelu", its approximation by tanh, or "gelu_gradient": they are multiplied with its
  /// derivative.
  std::string activation = "none";
  std::optional<int64_t> input; ///< the buffer of what that GELU was of, which lies as D does
  /// The buffer of an operand's sums over k: of first's a number for each p, of second's for each q. Nothing else is done then.
  std::optional<int64_t> sums;
  bool sumsSecond = false;
  bool isTimed =
      false; ///< the fastest algorithm is taken; else one that nothing but the product and the device decides
  int64_t capacity = 0;
};

/// What the library may use besides: what NVIDIA recommends for Hopper (cuBLAS's documentation, "cublasSetWorkspace").
inline constexpr int64_t kLibraryWorkspaceBytes = 32 << 20;

/// Of a product's op and those behind it in its kernel, of which the last one's result is all that is kept. None if the
/// product's dimensions do not merge into such matrices, or if the ops behind it are others, or would round otherwise: halves
/// are rounded before a bias is added, and before a GELU. Where products are timed that is no reason.
///
/// With a sum, which is kept too: none unless it is that of an operand over all that the product sums over, in the product's
/// type, read through `moves` at most. A bias's gradient beside a weight's is one. In which order it is added up the algorithm
/// decides, as of the product itself: shape, epilogue, device and library fix it, and the number of rows, which are summed
/// over.
///
/// Of the other gradients that cublasLt has, it is that of GELU alone, by tanh and of f32: of halves ours rounds the product
/// first. That of ReLU reads a mask of bits that its own forward pass writes, where ours reads a byte for each element. The sum
/// of what these leave is that of the next product's operand, which is taken there.
std::optional<LibraryProduct> findLibraryProduct(const loops::Product &product, llvm::ArrayRef<mlir::Operation *> ops,
                                                 int64_t capacity, bool isTimed = false, ir::SumOp sum = nullptr,
                                                 llvm::ArrayRef<mlir::Operation *> moves = {});

} // namespace sluice::cuda
