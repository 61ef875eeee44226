// Generates the stages of matrix products and convolutions.
//
// One register-tile generator serves all of them: C[r, n] += A[r, k] * B[k, n]. A is read as scalars at constant
// strides, B as vectors along n, and the sums are in registers. There are no padding buffers: where a window extends
// beyond the image, no multiply-adds are generated. The caller's epilogue receives each finished vector of sums, so
// bias, activation and optimizer never appear here.
//
// Physical layouts: activations are NHWC. Weights, and results in their layout, are panels along the output channels,
// `[O/P][kh][kw][C][P]` or `[N/P][K][P]`, with zeros in the last panel if it is not full.
//
// The order of each sum follows from the shapes and the target's vectors alone, not from tiles and blocks: caches and
// ports only split independent work. Tests compare targets with other caches and ports. With the target's `fastMath`,
// convolutions may use Winograd's algorithm instead (window/WinogradPlan.h).
#pragma once

#include "backends/cpu/compiler/machine/StageFunction.h"
#include "backends/cpu/compiler/machine/Target.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace sluice::cpu {

// Receives each finished vector of sums. `index` (i64) is the logical index of lane 0 in the result. The lanes run
// along n, the output channel or the gradient's innermost physical dimension:
//   matmul           [batch..., m, n]   lanes along n
//   forward          [n, o, oh, ow]     lanes along o
//   input gradient   [n, c, h, w]       lanes along c
//   weight gradient  [o, c, kh, kw]     lanes along o
struct Epilogue {
  // Stores the vector. `sums` has the target's lanes, or fewer at a tail: every lane is an element.
  std::function<void(StageFunction &stage, mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<mlir::Value> index,
                     mlir::Value sums)>
      store;
  // Prefetches the cache lines that `store` accesses for lane 0, before the sums are computed. Empty if nothing is
  // prefetched, for example because all elements fit in the second-level cache.
  std::function<void(StageFunction &stage, mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<mlir::Value> index)>
      prefetch;

  // Whether `store` emits much code.
  bool isLong = false;

  // Whether generators emit `store` for one row of a tile, in a loop to which the sums are passed in memory. This takes
  // less time to compile. The time for the memory is small only beside sums of many terms.
  bool isLoop(int64_t termsOfSums) const { return isLong && termsOfSums >= 128; }

  explicit operator bool() const { return bool(store); }
};

// The location of an operand: a buffer of the kernel and an offset into it, in elements.
struct Place {
  int64_t buffer = 0;
  int64_t offset = 0;
};

// The generated stages, for the plan.
struct Contraction {
  llvm::SmallVector<Stage> stages; // run in this order
  int64_t workspaceBytes = 0;      // needed at the descriptor's workspace
  int64_t flops = 0, flopsPerRow = 0;
  int64_t bytes = 0, bytesPerRow = 0; // operands and result, each once
  double lanes = 1;                   // share of the vector lanes that the shape can fill
};

// The width of the panels of `columns` output channels, with sums of `bits` each. With 16 vector registers, tiles are two
// vectors wide, and a row of a panel is one cache line. With 32, up to 64 columns leave the choice of the tile open.
int64_t panelWidth(int64_t columns, int64_t bits, const Target &target);

// The number of tasks for this work, in all images, if a call has few images: enough for several threads, each task some
// microseconds.
int64_t fewTasks(int64_t flops);

// ---- Matrix products ------------------------------------------------------------------------------------------------

// C[batch..., m, n] = sum over k of A[batch..., m, k] * B[batch..., k, n].
struct Matmul {
  enum class Rows { None, Batch, M, K };
  enum class Layout {
    Strided, // element (i, j) at i * strideI + j * strideJ
    Panels,  // `[J/panel][I][panel]`: i the first index, j the second
    PanelsT, // `[I/panel][J][panel]`: the transpose of a matrix kept in panels; B only
  };
  struct Matrix {
    Place place;
    Layout layout = Layout::Strided;
    int64_t strideI = 0, strideJ = 1;
    int64_t panel = 0;
    mlir::Type half; // f16 or bf16 if B, in Panels, is widened as it is read; else null
    // If B, in Panels, is stored in blocks of bytes along k: its scales, in panels of the same width.
    std::optional<Place> scales;
    llvm::SmallVector<int64_t> batchStrides; // one for each batch dimension; 0 broadcasts
  };

  mlir::Type element; // f32 or f64
  llvm::SmallVector<int64_t> batch;
  int64_t m = 1, n = 1, k = 1; // capacities
  // The dimension (the first of `batch`, for Batch) that has rows * rowsFactor elements in a call.
  Rows rows = Rows::None;
  int64_t rowsFactor = 1;
  Matrix a;          // Strided
  Matrix b;          // any
  Matrix c;          // Strided with strideJ == 1, or Panels; ignored when there is an epilogue
  Place workspace;   // aligned to 64 bytes
  Epilogue epilogue; // empty: store to c
};

// Emits functions whose names begin with `name`.
Contraction emitMatmul(const StageModule &module, llvm::StringRef name, mlir::Location loc, const Matmul &matmul,
                       const Target &target);

// ---- Convolutions ---------------------------------------------------------------------------------------------------

// The geometry of y[n, o, oh, ow] = sum x[n, c, oh * stride + kh * dilation - pad, ...] * w[o, c, kh, kw], with x NHWC
// `[rows][H][W][C]`, y `[rows][OH][OW][O]` and w in panels. It describes all three passes.
struct Convolution {
  struct Axis { // one spatial dimension
    int64_t input = 1, kernel = 1, stride = 1, dilation = 1, padBefore = 0, padAfter = 0;
    int64_t output() const { return (input + padBefore + padAfter - dilation * (kernel - 1) - 1) / stride + 1; }
  };

  mlir::Type element;
  int64_t rows = 1; // capacity; a call's rows are the images
  int64_t inputChannels = 1, outputChannels = 1;
  int64_t groups = 1; // 1, or as many as input and output channels (depthwise); weight gradients: 1
  int64_t panel = 0;  // of the weights, along the output channels; depthwise weights are `[kh][kw][C]` instead
  Axis height, width;

  // Weight gradients only, if their plan copies pixels: x in the `count` channels from `channel` on, from those in
  // memory. Empty: x is in memory.
  std::function<mlir::Value(StageFunction &stage, mlir::OpBuilder &b, mlir::Location loc, mlir::Value channel,
                            mlir::Value source, int64_t count)>
      inputFormula;

  Place input;       // x, or the input gradient
  Place weights;     // w, or the weight gradient
  Place output;      // y, or dY
  Place workspace;   // aligned to 64 bytes
  Epilogue epilogue; // empty: store to the result
};

// Returns why a convolution cannot be generated; empty if it can.
std::string unsupported(const Convolution &convolution);

Contraction emitConvolution(const StageModule &module, llvm::StringRef name, mlir::Location loc,
                            const Convolution &convolution, const Target &target);
Contraction emitConvolutionInputGradient(const StageModule &module, llvm::StringRef name, mlir::Location loc,
                                         const Convolution &convolution, const Target &target);
Contraction emitConvolutionWeightGradient(const StageModule &module, llvm::StringRef name, mlir::Location loc,
                                          const Convolution &convolution, const Target &target);

} // namespace sluice::cpu
