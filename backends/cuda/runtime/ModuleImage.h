// The device code of a backend's session, as written by its compile half (compiler/nvrtc/ModuleImage.h):
//
//   sluice cuda 8                   magic and format number
//   kernel relu_2 3                 a kernel, and the number of buffers of its functions
//   product f32 128 0 1 1 ...       if cublasLt can compute the kernel's product; fields below
//   function relu_2_0 128 4 32 0 0  a function of the kernel, in execution order; fields below
//   code sm_90 18328                code for an architecture, and its bytes
//   end
//   <18328 bytes>                   each code in turn
//
// product:  the type; for p, q, k and the batch: the size, and 1 if it is per row of the call; for both operands and
//           the result: the buffer, the leading dimension, the batch stride, and 1 if transposed; the buffer of the
//           bias or -1; the activation or none; the buffer of the activation's input or -1; the buffer of an operand's
//           sums or -1, and 1 if they are sums of the second operand; 1 if algorithms are timed; the capacity; the
//           bytes of workspace that the library may use
// function: the tasks, rows per task or 0, threads per task, bytes of dynamic shared memory per block, and when the
//           function runs: 0 only without cublasLt; 1 always; 2 only if cublasLt computes the product without the
//           epilogue; 3 unless cublasLt computes the whole kernel
//
// A function has tasks * ceil(rows / rows per task) tasks, or `tasks` if rows per task is 0. A block runs one task, or
// several tasks of one warp each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cuda {

/// The part of a kernel that the library runs: nothing, the product with its epilogue or sum, or the product alone.
enum class ProductMaker { Functions, Library, LibraryForProductAlone };

struct ImageFunction {
  std::string name;
  int64_t tasks = -1, rowsPerTask = -1, threads = -1, sharedBytes = -1, followsLibrary = -1;

  bool runsWith(ProductMaker maker) const {
    return maker == ProductMaker::Functions ? followsLibrary != kForActivation
           : maker == ProductMaker::Library ? followsLibrary == 1
                                            : followsLibrary != 0;
  }
  static constexpr int64_t kForActivation = 2, kForSum = 3; ///< of followsLibrary

  int64_t tasksFor(int64_t rows) const {
    return rowsPerTask ? tasks * ((rows + rowsPerTask - 1) / rowsPerTask) : tasks;
  }
};

/// Workspace limit of products: the same as in compiler/library/LibraryProduct.h.
inline constexpr int64_t kMostWorkspaceBytes = 32 << 20;

/// Alignment that cublasLt requires of the distances between columns, and between matrices, of an activation's input.
inline constexpr int64_t kInputMultiple = 8;

/// D[p, q] = sum over k of first[p, k] * second[k, q], column-major (compiler/library/LibraryProduct.h).
struct ImageProduct {
  struct Extent {
    int64_t size = 0, perRow = 0;
    int64_t with(int64_t rows) const { return perRow ? size * rows : size; }
  };
  struct Matrix {
    int64_t buffer = 0, leading = 0, batchStride = 0, isTransposed = 0;
  };

  std::string type; ///< "f32", "f64", "f16", "bf16" or "tf32": f32, operands rounded to 11 bits
  Extent p, q, k, batch;
  Matrix first, second, result;
  int64_t bias = -1;               ///< buffer of the bias, one number per p, or -1
  std::string activation = "none"; ///< activation of D: "none", "relu", "gelu" or "gelu_gradient", by tanh
  int64_t input = -1;              ///< buffer of the GELU's input, in D's layout, or -1
  int64_t sums = -1;               ///< buffer of an operand's sums over k, one number per p or q, or -1
  int64_t sumsSecond = 0;          ///< sums of the second operand, one per q
  int64_t isTimed = 0;             ///< use the fastest algorithm (AlgorithmTiming.h)
  int64_t capacity = 0;            ///< maximum rows of a call
  int64_t workspaceBytes = 0;      ///< of the kernel's workspace that the library may use

  const Extent &sideOfSums() const { return sumsSecond ? q : p; }
};

struct ImageKernel {
  std::string name;
  size_t buffers;
  std::optional<ImageProduct> product;
  std::vector<ImageFunction> functions;
};

struct ImageCode {
  std::string architecture; // "sm_90"
  std::string_view bytes;   // of the image
};

struct ModuleImage {
  std::vector<ImageKernel> kernels;
  std::vector<ImageCode> codes;
};

/// Throws an error of invalid input with the line number.
ModuleImage readModuleImage(std::string_view image);

} // namespace sluice::cuda
