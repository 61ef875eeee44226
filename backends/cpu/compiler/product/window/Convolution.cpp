// The forward pass and the input gradient of convolutions: both are window sums, 1x1 kernels are matrix products.
#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/matmul/PackPanels.h"
#include "backends/cpu/compiler/product/tile/IndexMath.h"
#include "backends/cpu/compiler/product/tile/TileChoice.h"
#include "backends/cpu/compiler/product/window/ConvolutionShape.h"
#include "backends/cpu/compiler/product/window/DepthwiseWindow.h"
#include "backends/cpu/compiler/product/window/NarrowWindow.h"
#include "backends/cpu/compiler/product/window/WindowSum.h"
#include "backends/cpu/compiler/product/window/WinogradWindow.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

namespace sluice::cpu {

using namespace mlir;

std::string unsupported(const Convolution &op) {
  if (op.groups != 1 && !isDepthwise(op))
    return "the groups have several channels";
  return "";
}

bool isDepthwise(const Convolution &op) {
  return op.groups > 1 && op.groups == op.inputChannels && op.groups == op.outputChannels;
}

bool isPointwise(const Convolution &op) {
  auto plain = [](const Convolution::Axis &axis) {
    return axis.kernel == 1 && axis.stride == 1 && axis.padBefore == 0 && axis.padAfter == 0;
  };
  return plain(op.height) && plain(op.width);
}

int64_t multiplyAddsPerImage(const Convolution &op) {
  // Only taps inside the image are computed, and counted.
  int64_t taps = forwardAxis(op.height).validTaps() * forwardAxis(op.width).validTaps();
  return taps * op.inputChannels * op.outputChannels / op.groups;
}

void describeConvolution(const Convolution &op, int64_t vectorChannels, const Target &target, Contraction &result) {
  int64_t bits = op.element.getIntOrFloatBitWidth();
  result.flops = 0;
  result.flopsPerRow = 2 * multiplyAddsPerImage(op);
  result.bytes = op.height.kernel * op.width.kernel * op.inputChannels * op.outputChannels / op.groups * bits / 8;
  result.bytesPerRow = (op.height.input * op.width.input * op.inputChannels +
                        op.height.output() * op.width.output() * op.outputChannels) *
                       bits / 8;
  result.lanes = filledLanes(vectorChannels, target.lanes(bits));
}

// Stores to NHWC images.
static Epilogue storeToImages(Type element, Place place, ArrayRef<int64_t> nhwc, const Target &target) {
  int64_t height = nhwc[1], width = nhwc[2], channels = nhwc[3];
  auto address = [=](StageFunction &stage, OpBuilder &b, Location loc, ArrayRef<Value> index) {
    IndexMath math{b, loc};
    Value at = math.add(math.mul(math.add(math.mul(index[0], height), index[2]), width), index[3]);
    at = math.add(math.add(math.mul(at, channels), index[1]), place.offset);
    return elementAddress(b, loc, element, stage.buffer(place.buffer), at);
  };
  Epilogue epilogue;
  epilogue.store = [=](StageFunction &stage, OpBuilder &b, Location loc, ArrayRef<Value> index, Value sums) {
    storeVector(b, loc, sums, address(stage, b, loc, index));
  };
  if (target.isFar(nhwc[0] * height * width * channels * element.getIntOrFloatBitWidth() / 8))
    epilogue.prefetch = [=](StageFunction &stage, OpBuilder &b, Location loc, ArrayRef<Value> index) {
      prefetch(b, loc, address(stage, b, loc, index), /*forWrite=*/true);
    };
  return epilogue;
}

// Turns a product's [pixel, channel] into [n, channel, h, w].
static Epilogue overPixels(const Epilogue &epilogue, int64_t height, int64_t width) {
  auto indexOf = [=](OpBuilder &b, Location loc, ArrayRef<Value> index) -> SmallVector<Value> {
    IndexMath math{b, loc};
    Value row = math.div(index[0], width);
    Value h = height == 1 ? math.constant(0) : math.rem(row, height);
    return {math.div(row, height), index[1], h, math.rem(index[0], width)};
  };
  Epilogue result;
  result.isLong = epilogue.isLong;
  result.store = [=](StageFunction &stage, OpBuilder &b, Location loc, ArrayRef<Value> index, Value sums) {
    epilogue.store(stage, b, loc, indexOf(b, loc, index), sums);
  };
  if (epilogue.prefetch)
    result.prefetch = [=](StageFunction &stage, OpBuilder &b, Location loc, ArrayRef<Value> index) {
      epilogue.prefetch(stage, b, loc, indexOf(b, loc, index));
    };
  return result;
}

static Matmul pointwiseProduct(const Convolution &op) {
  Matmul matmul;
  matmul.element = op.element;
  matmul.rows = Matmul::Rows::M;
  matmul.rowsFactor = op.height.input * op.width.input;
  matmul.m = op.rows * matmul.rowsFactor;
  matmul.workspace = op.workspace;
  matmul.b.place = op.weights;
  matmul.b.panel = op.panel;
  return matmul;
}

static Matmul::Matrix imageMatrix(Place place, int64_t channels) {
  Matmul::Matrix matrix;
  matrix.place = place;
  matrix.strideI = channels;
  return matrix;
}

// The share of active lanes.
static double filledLanesOf(const WindowSum &sum, int64_t lanes) {
  double useful = 0, issued = 0;
  for (const WindowSum::Phase &phase : sum.phases) {
    int64_t outputs = phase.height.outputs * phase.width.outputs * phase.height.taps;
    int64_t length = phase.width.taps * sum.inputChannels;
    int64_t vectors = llvm::divideCeil(sum.outputChannels - sum.narrow, lanes) * length;
    useful += outputs * length * sum.outputChannels;
    issued += outputs * (vectors + sum.narrow * llvm::divideCeil(length, lanes)) * lanes;
  }
  return issued == 0 ? 1 : useful / issued;
}

// A stage that copies the narrow channels' weights, after the existing workspace. `weights` is the offset of the weight
// of (tap, input channel, first narrow channel).
static void packNarrowWeights(const StageModule &module, llvm::StringRef name, Location loc, PackPanels weights,
                              Place workspace, const Target &target, WindowSum &sum, Contraction &result) {
  int64_t bytes = sum.element.getIntOrFloatBitWidth() / 8;
  int64_t begin = llvm::alignTo(result.workspaceBytes, 64);
  weights.n = sum.narrow;
  weights.panel = 1;
  weights.to = sum.narrowWeights = {workspace.buffer, workspace.offset + begin / bytes};
  result.workspaceBytes = begin + weights.elements() * bytes;
  result.stages.push_back(emitPackPanels(module, (name + "_pack_narrow").str(), loc, weights, target));
}

WindowAxis forwardAxis(const Convolution::Axis &axis) {
  WindowAxis window;
  window.outputs = axis.output();
  window.inputSize = axis.input;
  window.inputStart = -axis.padBefore;
  window.inputStep = axis.stride;
  window.tapStep = axis.dilation;
  window.taps = window.kernel = axis.kernel;
  return window;
}

// The window sum of a depthwise convolution. It reads the weights in place: there is no packing stage.
static Contraction emitDepthwise(const StageModule &module, llvm::StringRef name, Location loc, const Convolution &op,
                                 WindowSum sum, bool flipped, const Target &target) {
  Contraction result;
  sum.weights = op.weights;
  result.stages.push_back(emitDepthwiseWindow(module, (name + "_depthwise").str(), loc, sum, flipped, target));
  describeConvolution(op, op.outputChannels, target, result);
  return result;
}

Contraction emitConvolution(const StageModule &module, llvm::StringRef name, Location loc, const Convolution &op,
                            const Target &target) {
  int64_t outHeight = op.height.output(), outWidth = op.width.output();
  int64_t bits = op.element.getIntOrFloatBitWidth();
  Contraction result;
  if (isPointwise(op) && !isDepthwise(op)) {
    Matmul matmul = pointwiseProduct(op);
    matmul.n = op.outputChannels, matmul.k = op.inputChannels;
    matmul.a = imageMatrix(op.input, op.inputChannels);
    matmul.b.layout = Matmul::Layout::Panels;
    matmul.c = imageMatrix(op.output, op.outputChannels);
    if (op.epilogue)
      matmul.epilogue = overPixels(op.epilogue, outHeight, outWidth);
    result = emitMatmul(module, name, loc, matmul, target);
    describeConvolution(op, op.outputChannels, target, result);
    return result;
  }
  WindowSum sum;
  sum.element = op.element;
  sum.rows = op.rows;
  sum.inputChannels = op.inputChannels, sum.outputChannels = op.outputChannels, sum.panel = op.panel;
  sum.phases.push_back({forwardAxis(op.height), forwardAxis(op.width)});
  sum.input = op.input, sum.weights = op.weights;
  sum.epilogue = op.epilogue
                     ? op.epilogue
                     : storeToImages(op.element, op.output, {op.rows, outHeight, outWidth, op.outputChannels}, target);
  if (isDepthwise(op))
    return emitDepthwise(module, name, loc, op, sum, /*flipped=*/false, target);
  if (std::optional<WinogradPlan> plan = chooseWinograd(sum, target)) {
    emitWinograd(module, name, loc, sum, *plan, op.workspace, target, result);
    describeConvolution(op, op.outputChannels, target, result);
    return result;
  }
  sum.narrow = chooseNarrowChannels(sum, target);
  if (sum.narrow) {
    int64_t taps = op.height.kernel * op.width.kernel, first = op.outputChannels - sum.narrow;
    PackPanels pack;
    pack.element = op.element;
    pack.counts = {taps};
    pack.stridesT = {op.inputChannels * op.panel};
    pack.k = op.inputChannels, pack.strideK = op.panel;
    pack.from = op.weights;
    pack.from.offset += first / op.panel * taps * op.inputChannels * op.panel + first % op.panel;
    packNarrowWeights(module, name, loc, pack, op.workspace, target, sum, result);
  }
  result.stages.push_back(emitWindowSum(module, (name + "_windows").str(), loc, sum, target));
  describeConvolution(op, op.outputChannels, target, result);
  result.lanes = filledLanesOf(sum, target.lanes(bits));
  return result;
}

// The places i = phase + j * stride of the input gradient. Tap kh of the kernel contributes dY at (i + pad - kh *
// dilation) / stride where that divides; in the flipped kernel (place kernel - 1 - kh) the taps that do are `step`
// apart and dY's places rise with them.
static WindowAxis gradientAxis(const Convolution::Axis &axis, int64_t phase) {
  WindowAxis window;
  window.outputs = llvm::divideCeil(axis.input - phase, axis.stride);
  window.outputStart = phase;
  window.outputStep = axis.stride;
  window.inputSize = axis.output();
  window.inputStep = 1;
  window.kernel = axis.kernel;
  window.kernelStep = axis.stride / std::gcd(axis.stride, axis.dilation);
  window.tapStep = window.kernelStep * axis.dilation / axis.stride;
  window.taps = 0;
  for (int64_t flipped = 0; flipped < axis.kernel; ++flipped) {
    int64_t place = phase + axis.padBefore - (axis.kernel - 1 - flipped) * axis.dilation;
    if (place % axis.stride != 0)
      continue;
    if (window.taps++ == 0) {
      window.kernelStart = flipped;
      window.inputStart = place / axis.stride;
    }
  }
  return window;
}

Contraction emitConvolutionInputGradient(const StageModule &module, llvm::StringRef name, Location loc,
                                         const Convolution &op, const Target &target) {
  int64_t bits = op.element.getIntOrFloatBitWidth();
  Epilogue epilogue = op.epilogue;
  if (!epilogue)
    epilogue =
        storeToImages(op.element, op.input, {op.rows, op.height.input, op.width.input, op.inputChannels}, target);
  Contraction result;
  if (isPointwise(op) && !isDepthwise(op)) {
    Matmul matmul = pointwiseProduct(op);
    matmul.n = op.inputChannels, matmul.k = op.outputChannels;
    matmul.a = imageMatrix(op.output, op.outputChannels);
    matmul.b.layout = Matmul::Layout::PanelsT;
    matmul.c = imageMatrix(op.input, op.inputChannels);
    if (op.epilogue)
      matmul.epilogue = overPixels(op.epilogue, op.height.input, op.width.input);
    result = emitMatmul(module, name, loc, matmul, target);
    describeConvolution(op, op.inputChannels, target, result);
    return result;
  }

  WindowSum sum;
  sum.element = op.element;
  sum.rows = op.rows;
  sum.inputChannels = op.outputChannels, sum.outputChannels = op.inputChannels;
  for (int64_t h = 0; h < std::min(op.height.stride, op.height.input); ++h)
    for (int64_t w = 0; w < std::min(op.width.stride, op.width.input); ++w)
      sum.phases.push_back({gradientAxis(op.height, h), gradientAxis(op.width, w)});
  sum.input = op.output, sum.weights = op.workspace;
  sum.epilogue = epilogue;
  if (isDepthwise(op))
    return emitDepthwise(module, name, loc, op, sum, /*flipped=*/true, target);
  std::optional<WinogradPlan> winograd = chooseWinograd(sum, target);
  sum.narrow = winograd ? 0 : chooseNarrowChannels(sum, target);

  PackPanels pack;
  pack.element = op.element;
  int64_t taps = op.height.kernel * op.width.kernel, wide = op.inputChannels - sum.narrow;
  pack.counts = {taps};
  pack.stridesT = {op.inputChannels * op.panel};
  pack.k = op.outputChannels, pack.n = wide;
  pack.from = op.weights, pack.to = op.workspace;
  pack.panelK = op.panel, pack.stridePanelK = taps * op.inputChannels * op.panel;
  pack.strideN = op.panel;
  pack.panel = sum.panel = panelWidth(std::max<int64_t>(1, wide), bits, target);
  pack.reversed = true;
  if (wide) {
    result.workspaceBytes = pack.elements() * bits / 8;
    result.stages.push_back(emitPackPanels(module, (name + "_pack").str(), loc, pack, target));
  }
  if (sum.narrow) {
    pack.from.offset += wide * op.panel;
    packNarrowWeights(module, name, loc, pack, op.workspace, target, sum, result);
  }
  if (winograd) {
    emitWinograd(module, name, loc, sum, *winograd, op.workspace, target, result);
    describeConvolution(op, op.inputChannels, target, result);
    return result;
  }
  result.stages.push_back(emitWindowSum(module, (name + "_windows").str(), loc, sum, target));
  describeConvolution(op, op.inputChannels, target, result);
  result.lanes = filledLanesOf(sum, target.lanes(bits));
  return result;
}

} // namespace sluice::cpu
