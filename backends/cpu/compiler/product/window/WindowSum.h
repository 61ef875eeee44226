// The stage of a convolution's forward pass and of its input gradient: sums over a window of an NHWC image.
//
//   out[n, jh, jw, o] = sum over taps (th, tw) and channels c of  in[n, ih(jh, th), iw(jw, tw), c] * w[kh(th), kw(tw),
//   c, o]
//
// where every map is affine. A strided input gradient is several such sums, one for each phase of its outputs. A phase
// may have no taps, as where stride and dilation share a factor: its sums are zero.
#pragma once

#include "backends/cpu/compiler/product/Contraction.h"

namespace sluice::cpu {

struct WindowAxis {
  int64_t outputs = 1;                     // j in [0, outputs)
  int64_t outputStart = 0, outputStep = 1; // logical place of output j
  int64_t inputSize = 1;
  int64_t inputStart = 0, inputStep = 1, tapStep = 1; // input place: inputStart + j * inputStep + tap * tapStep
  int64_t taps = 1;
  int64_t kernel = 1, kernelStart = 0, kernelStep = 1; // place in the kernel: kernelStart + tap * kernelStep

  int64_t inputAt(int64_t j, int64_t tap) const { return inputStart + j * inputStep + tap * tapStep; }
  bool valid(int64_t j, int64_t tap) const { return inputAt(j, tap) >= 0 && inputAt(j, tap) < inputSize; }
  int64_t validTaps() const; // of all outputs together
  bool alwaysValid() const { return taps == 0 || outputs == 0 || (valid(0, 0) && valid(outputs - 1, taps - 1)); }
};

// The axis of a forward pass.
WindowAxis forwardAxis(const Convolution::Axis &axis);

struct WindowSum {
  struct Phase {
    WindowAxis height, width;
    int64_t taps() const { return height.taps * width.taps; }
  };

  mlir::Type element;
  int64_t rows = 1; // capacity, of images
  int64_t inputChannels = 1, outputChannels = 1, panel = 0;
  llvm::SmallVector<Phase> phases;
  Place input, weights;
  // The last `narrow` output channels are summed along the terms (NarrowWindow.h), from a second copy of their weights,
  // `[narrow][kernel height][kernel width][input channels]`.
  int64_t narrow = 0;
  Place narrowWeights;
  Epilogue epilogue; // [n, o, output place along height, along width]
};

Stage emitWindowSum(const StageModule &module, llvm::StringRef name, mlir::Location loc, const WindowSum &sum,
                    const Target &target);

} // namespace sluice::cpu
