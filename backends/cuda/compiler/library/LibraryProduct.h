// Products that a linear algebra library can compute: strided matrices whose sums have no padding, with the epilogues
// that the library supports.
#pragma once

#include "backends/loops/Product.h"
#include <optional>
#include <string>

namespace sluice::cuda {

/// D[p, q] = sum over k of first[p, k] * second[k, q] for each batch index. p is contiguous in D: column-major, as such
/// libraries require. A transposed operand is [k, p] or [q, k], and its first dimension is contiguous.
struct LibraryProduct {
  struct Extent {
    int64_t size = 1;    ///< if `perRow`, per row of the call
    bool perRow = false; ///< whether the extent grows with the rows
  };
  struct Matrix {
    int64_t buffer = 0;  ///< of the kernel
    int64_t leading = 1; ///< elements from one column to the next
    int64_t batchStride = 0;
    bool isTransposed = false;
  };
  /// Required alignment of the distances between columns, and between matrices, of a GELU's input (cublasLt.h,
  /// CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD).
  static constexpr int64_t kInputMultiple = 8;

  std::string type; ///< "f32", "f64", "f16" or "bf16", accumulated in f32, or "tf32": f32, operands rounded to 11 bits
  Extent p, q, k, batch;
  Matrix first, second, result;
  std::optional<int64_t> bias; ///< buffer of the bias: one number per p, added to D
  /// Activation of D: "none", "relu", "gelu" (the tanh approximation), or "gelu_gradient", which multiplies D by that
  /// GELU's derivative.
  std::string activation = "none";
  std::optional<int64_t> input; ///< buffer of the GELU's input, in D's layout
  /// Buffer of an operand's sums over k: one number per p for the first operand, per q for the second. Excludes every
  /// other epilogue.
  std::optional<int64_t> sums;
  bool sumsSecond = false;
  bool isTimed = false; ///< use the fastest measured algorithm; else the first supported one of the library's heuristic
  int64_t capacity = 0;
};

/// Workspace limit of the library: NVIDIA's recommendation for Hopper (cuBLAS's documentation, "cublasSetWorkspace").
inline constexpr int64_t kLibraryWorkspaceBytes = 32 << 20;

/// Matches a product's op and the ops after it in its kernel, of which only the last result is kept. Returns none if
/// the product's dimensions do not merge into such matrices, if the library has no epilogue for the ops, or if their
/// rounding would differ: half-precision products are rounded before a bias is added, and before a GELU. If
/// products are timed, different rounding is accepted.
///
/// `sum` matches if it sums an operand over all summed dimensions of the product, in the product's type, read at
/// most through `moves`. An example is a bias's gradient next to a weight's gradient. The algorithm determines the
/// order of that sum, as for the product itself. Shape, epilogue, device, library and the number of rows, which are
/// summed over, fix that order.
///
/// Of cublasLt's other gradient epilogues, only tanh GELU in f32 matches. In half precision, our kernels round the
/// product first. The ReLU gradient reads a bit mask from cublasLt's forward pass, where our kernels read a byte per
/// element. A sum of these gradients is the sum of the next product's operand, and is matched there.
std::optional<LibraryProduct> findLibraryProduct(const loops::Product &product, llvm::ArrayRef<mlir::Operation *> ops,
                                                 int64_t capacity, bool isTimed = false, ir::SumOp sum = nullptr,
                                                 llvm::ArrayRef<mlir::Operation *> moves = {});

} // namespace sluice::cuda
