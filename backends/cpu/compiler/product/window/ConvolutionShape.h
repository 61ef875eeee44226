// Properties of a convolution that its passes share.
#pragma once

#include "backends/cpu/compiler/product/Contraction.h"

namespace sluice::cpu {

// As many groups as channels: each output channel reads one input channel.
bool isDepthwise(const Convolution &convolution);

// A 1x1 kernel without stride or padding: a matrix product over the pixels.
bool isPointwise(const Convolution &convolution);

int64_t multiplyAddsPerImage(const Convolution &convolution);

// Fills in flops, bytes and lanes; vectors run along `vectorChannels` channels.
void describeConvolution(const Convolution &convolution, int64_t vectorChannels, const Target &target,
                         Contraction &result);

} // namespace sluice::cpu
