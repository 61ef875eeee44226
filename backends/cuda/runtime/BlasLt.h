// cublasLt, loaded as a library on first use: programs also run without it. Its interface is declared here, so that a
// build requires no toolkit; it has not changed since CUDA 11 (cublasLt.h).
#pragma once

#include "backends/cuda/libraries/LibrarySearch.h"
#include "backends/cuda/runtime/Driver.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace sluice::cuda {

using BlasHandle = struct cublasLtContext *;
using BlasDescription = struct cublasLtMatmulDescOpaque *;
using BlasLayout = struct cublasLtMatrixLayoutOpaque *;
using BlasPreference = struct cublasLtMatmulPreferenceOpaque *;

enum class BlasType : int { F32 = 0, F64 = 1, F16 = 2, BF16 = 14 }; // cudaDataType
inline size_t bytesOf(BlasType type) { return type == BlasType::F64 ? 8 : type == BlasType::F32 ? 4 : 2; }
enum class BlasCompute : int { F32 = 68, F64 = 70, Tf32 = 77 }; // cublasComputeType_t
enum class BlasOp : int { Plain = 0, Transposed = 1 };          // cublasOperation_t
enum class DescriptionAttribute : int {
  TransposeA = 3,
  TransposeB = 4,
  Epilogue = 7,
  BiasPointer = 8,   // of the bias, or of an operand's sums, which are results; of D's type
  InputPointer = 11, // of the matrix that an epilogue reads (CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_...), of D's type
  InputLeading = 12,
  InputBatchStride = 13,
};
/// The epilogue of a result's elements (cublasLtEpilogue_t); its GELU is the tanh approximation.
enum class BlasEpilogue : uint32_t {
  None = 1,
  Relu = 2,
  Bias = 4,
  ReluBias = 6,
  Gelu = 32,
  GeluBias = 36,
  GeluGradient = 192, // multiplies D by the derivative of GELU at the input
  SumsOfA = 256,      // sums over k, for each row of D, in addition to D
  SumsOfB = 512,      // for each column
};
enum class LayoutAttribute : int { Rows = 2, Columns = 3, BatchCount = 5, BatchStride = 6 };
enum class PreferenceAttribute : int {
  WorkspaceBytes = 1,
  ReductionSchemes = 3, // a mask; 0: no split sums
  AlignmentA = 5,
  AlignmentB = 6,
  AlignmentC = 7,
  AlignmentD = 8,
};

/// Partial sums are in the workspace, in the compute type, and are added in their order (cublasLtReductionScheme_t).
inline constexpr uint32_t kReductionInWorkspace = 2;

struct BlasAlgorithm {
  uint64_t data[8];
};

struct BlasChoice {
  BlasAlgorithm algorithm;
  size_t workspaceBytes;
  int status;
  float waves;
  int reserved[4];
};

// X(member, symbol, parameters)
#define SLUICE_FOR_EACH_BLAS_FUNCTION(X)                                                                               \
  X(create, "cublasLtCreate", (BlasHandle * handle))                                                                   \
  X(destroy, "cublasLtDestroy", (BlasHandle handle))                                                                   \
  X(createDescription, "cublasLtMatmulDescCreate",                                                                     \
    (BlasDescription * description, BlasCompute compute, BlasType scale))                                              \
  X(destroyDescription, "cublasLtMatmulDescDestroy", (BlasDescription description))                                    \
  X(setDescription, "cublasLtMatmulDescSetAttribute",                                                                  \
    (BlasDescription description, DescriptionAttribute attribute, const void *value, size_t bytes))                    \
  X(createLayout, "cublasLtMatrixLayoutCreate",                                                                        \
    (BlasLayout * layout, BlasType type, uint64_t rows, uint64_t columns, int64_t leading))                            \
  X(destroyLayout, "cublasLtMatrixLayoutDestroy", (BlasLayout layout))                                                 \
  X(setLayout, "cublasLtMatrixLayoutSetAttribute",                                                                     \
    (BlasLayout layout, LayoutAttribute attribute, const void *value, size_t bytes))                                   \
  X(createPreference, "cublasLtMatmulPreferenceCreate", (BlasPreference * preference))                                 \
  X(destroyPreference, "cublasLtMatmulPreferenceDestroy", (BlasPreference preference))                                 \
  X(setPreference, "cublasLtMatmulPreferenceSetAttribute",                                                             \
    (BlasPreference preference, PreferenceAttribute attribute, const void *value, size_t bytes))                       \
  X(choose, "cublasLtMatmulAlgoGetHeuristic",                                                                          \
    (BlasHandle handle, BlasDescription description, BlasLayout a, BlasLayout b, BlasLayout c, BlasLayout d,           \
     BlasPreference preference, int wanted, BlasChoice *choices, int *found))                                          \
  X(checkAlgorithm, "cublasLtMatmulAlgoCheck",                                                                         \
    (BlasHandle handle, BlasDescription description, BlasLayout a, BlasLayout b, BlasLayout c, BlasLayout d,           \
     const BlasAlgorithm *algorithm, BlasChoice *result))                                                              \
  X(multiply, "cublasLtMatmul",                                                                                        \
    (BlasHandle handle, BlasDescription description, const void *alpha, const void *a, BlasLayout layoutA,             \
     const void *b, BlasLayout layoutB, const void *beta, const void *c, BlasLayout layoutC, void *d,                  \
     BlasLayout layoutD, const BlasAlgorithm *algorithm, void *workspace, size_t workspaceBytes, DriverStream stream))

/// The functions of the library. Each returns a status, 0 on success.
struct BlasLt {
#define SLUICE_BLAS_MEMBER(member, symbol, parameters) int(*member) parameters;
  SLUICE_FOR_EACH_BLAS_FUNCTION(SLUICE_BLAS_MEMBER)
#undef SLUICE_BLAS_MEMBER
  const char *(*statusName)(int status) = nullptr; ///< null if statuses have no names
  std::string version;                             ///< "13.1.0"

  /// The library named by SLUICE_CUBLASLT, or the first candidate that loads. Null if none does. A named library that
  /// cannot be used is an error.
  static const BlasLt *find();
  /// The search of `find`.
  static LibrarySearch search();

  /// Throws unless `status` is success; `what` describes the attempt. Failed allocations and errors of earlier work are
  /// errors of exhaustion. A library that does not support the driver or the device is an unsupported error.
  void check(int status, const std::string &what) const;
  /// "CUBLAS_STATUS_NOT_SUPPORTED (15)"
  std::string textOf(int status) const;
};

} // namespace sluice::cuda
