// The stage of a depthwise convolution's forward pass and of its input gradient: each channel is a window sum of that
// channel alone.
//
//   out[n, jh, jw, c] = sum over taps (th, tw) of  in[n, ih(jh, th), iw(jw, tw), c] * w[kh(th), kw(tw), c]
#pragma once

#include "backends/cpu/compiler/product/window/WindowSum.h"

namespace sluice::cpu {

// `sum` has as many input as output channels, and neither panels nor narrow channels: its weights are
// `[kernel height][kernel width][channels]`. `flipped`: the kernel is read from its last place to its first.
Stage emitDepthwiseWindow(const StageModule &module, llvm::StringRef name, mlir::Location loc, const WindowSum &sum,
                          bool flipped, const Target &target);

} // namespace sluice::cpu
