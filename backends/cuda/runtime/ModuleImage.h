// The device code of a backend's session as its compile half wrote it (compiler/ModuleImage.h):
//
//   sluice cuda 8
//   kernel relu_2 3                 a kernel, and how many buffers its functions take
//   product f32 128 0 1 1 ...       the kernel is a product that cublasLt can do where there is one, in place of its functions: its
//                                   type; size and 1 for elements of a row, of p, q, k and the batch; buffer, leading dimension,
//                                   distance in the batch and 1 for transposed, of both operands and the result; the buffer of a
//                                   bias or -1, the activation behind it or none, the buffer of that one's input or -1; the buffer
//                                   of an operand's sums or -1, and 1 if they are the second's; 1 if its algorithms are timed; the
//                                   capacity, and the bytes of workspace that the library may use
//   function relu_2_0 128 4 32 0 0  one of its functions, run in this order: its tasks, rows of a task or 0, threads of one, the
//                                   bytes of shared memory that a block has beside those that it declares, and 1 if it runs behind
//                                   a product that cublasLt does, too, or 2 if it does so alone, where the activation is left to it,
//                                   or 3 if it runs unless cublasLt does all of the kernel
//   code sm_90 18328                code for an architecture, and its size
//   end
//   <18328 bytes>                   each code in turn
//
// There are tasks * ceil(rows / rows of a task), or `tasks` where that is 0. A block does a task, or several of a warp each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cuda {

/// Which part of a kernel the library runs: the product with its epilogue or sum, or the product alone.
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

/// Workspace limit of products: the same as compiler/LibraryProduct.h.
inline constexpr int64_t kMostWorkspaceBytes = 32 << 20;

/// Alignment that cublasLt requires of the distances between columns, and between matrices, of an activation's input.
inline constexpr int64_t kInputMultiple = 8;

/// D[p, q] = sum over k of first[p, k] * second[k, q], column-major (compiler/LibraryProduct.h).
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
  int64_t capacity = 0;            ///< rows
  int64_t workspaceBytes = 0;      ///< of the library, from the kernel's workspace

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
