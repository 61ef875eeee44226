// The layers of torch.nn: parameters and forward functions.
#include "sluice/layers.h"
#include "sluice/error.h"

#include <cmath>
#include <sstream>

namespace sluice::nn {

/// PyTorch's default for weights: U(+-1 / sqrt(fan_in)).
static init::Init defaultWeight() { return init::kaiming_uniform(std::sqrt(5.0)); }

/// The same bound for the bias, which has no fan-in itself.
static init::Init defaultBias(std::int64_t fanIn) {
  double bound = 1.0 / std::sqrt(double(fanIn));
  return init::uniform(-bound, bound);
}

/// Whether there is a tensor; `!` on a tensor builds an op.
static bool hasValue(const Tensor &tensor) { return bool(tensor); }

/// The size of a dimension, from which a lazy layer creates its parameters.
static std::int64_t sizeOf(const char *layer, const Arg &x, std::int64_t dim) {
  Dim size = x.tensor.size(dim, x.where);
  if (size.symbolic())
    throw Error(std::string(layer) + ": dimension " + std::to_string(dim) + " of " + x.tensor.shape().str() +
                    " has no size, from which the layer could create its parameters",
                x.where);
  return size.size;
}

//===- linear -----------------------------------------------------------------------------------------------------===//

static void addLinear(Module &layer, Parameter &weight, Parameter &bias, std::int64_t in, std::int64_t out,
                      const LinearOptions &options, Module::Where where) {
  weight = layer.parameter("weight", {out, in}, defaultWeight(), where);
  if (options.bias)
    bias = layer.parameter("bias", {out}, defaultBias(in), where);
}

Linear::Linear(Module *parent, std::string name, std::int64_t in_features, std::int64_t out_features,
               LinearOptions options, Where where)
    : Module(parent, std::move(name), where) {
  addLinear(*this, weight, bias, in_features, out_features, options, where);
}

Tensor Linear::forward(Tensor x) { return linear(at(x), weight, bias); }

LazyLinear::LazyLinear(Module *parent, std::string name, std::int64_t out_features, LinearOptions options, Where where)
    : Module(parent, std::move(name), where), out(out_features), options(options) {
  delay();
}

Tensor LazyLinear::forward(Tensor x) {
  if (!hasValue(weight))
    addLinear(*this, weight, bias, sizeOf("LazyLinear", at(x), -1), out, options, declared());
  return linear(at(x), weight, bias);
}

//===- embedding --------------------------------------------------------------------------------------------------===//

Embedding::Embedding(Module *parent, std::string name, std::int64_t num_embeddings, std::int64_t embedding_dim,
                     EmbeddingOptions options, Where where)
    : Module(parent, std::move(name), where), padding(options.padding_idx) {
  if (padding && (*padding < -num_embeddings || *padding >= num_embeddings))
    throw Error("Embedding: padding_idx " + std::to_string(*padding) + " is no row of " +
                    std::to_string(num_embeddings),
                declared());
  if (padding && *padding < 0)
    *padding += num_embeddings;
  init::Init begin = init::normal();
  begin.zero_row = padding;
  weight = parameter("weight", {num_embeddings, embedding_dim}, begin, where);
}

Tensor Embedding::forward(Tensor index) { return embedding(at(index), weight, padding); }

//===- convolutions -----------------------------------------------------------------------------------------------===//

static void requireGroups(const std::string &layer, std::int64_t in, std::int64_t out, std::int64_t groups,
                          std::source_location where) {
  if (groups <= 0 || in % groups != 0 || out % groups != 0)
    throw Error(layer + ": " + std::to_string(groups) + " groups do not divide " + std::to_string(in) + " input and " +
                    std::to_string(out) + " output channels",
                where);
}

static void addConv2d(Module &layer, Parameter &weight, Parameter &bias, std::int64_t in, std::int64_t out,
                      Size2 kernel, const Conv2dOptions &options, Module::Where where) {
  std::int64_t channels = in / options.groups;
  weight = layer.parameter("weight", {out, channels, kernel.h, kernel.w}, defaultWeight(), where);
  if (options.bias)
    bias = layer.parameter("bias", {out}, defaultBias(channels * kernel.h * kernel.w), where);
}

Conv2d::Conv2d(Module *parent, std::string name, std::int64_t in_channels, std::int64_t out_channels, Size2 kernel_size,
               Conv2dOptions options, Where where)
    : Module(parent, std::move(name), where),
      options{options.stride, options.padding, options.dilation, options.groups} {
  requireGroups("Conv2d", in_channels, out_channels, options.groups, declared());
  addConv2d(*this, weight, bias, in_channels, out_channels, kernel_size, options, where);
}

Tensor Conv2d::forward(Tensor x) { return conv2d(at(x), weight, bias, options); }

LazyConv2d::LazyConv2d(Module *parent, std::string name, std::int64_t out_channels, Size2 kernel_size,
                       Conv2dOptions options, Where where)
    : Module(parent, std::move(name), where), out(out_channels), kernel(kernel_size), options(options) {
  delay();
}

Tensor LazyConv2d::forward(Tensor x) {
  if (!hasValue(weight)) {
    if (x.dim() != 4)
      throw Error("LazyConv2d: x has " + std::to_string(x.dim()) + " dimensions, not 4", at(x).where);
    std::int64_t in = sizeOf("LazyConv2d", at(x), 1);
    requireGroups("LazyConv2d", in, out, options.groups, declared());
    addConv2d(*this, weight, bias, in, out, kernel, options, declared());
  }
  return conv2d(at(x), weight, bias, {options.stride, options.padding, options.dilation, options.groups});
}

Conv1d::Conv1d(Module *parent, std::string name, std::int64_t in_channels, std::int64_t out_channels,
               std::int64_t kernel_size, Conv1dOptions options, Where where)
    : Module(parent, std::move(name), where),
      options{options.stride, options.padding, options.dilation, options.groups} {
  requireGroups("Conv1d", in_channels, out_channels, options.groups, declared());
  std::int64_t channels = in_channels / options.groups;
  weight = parameter("weight", {out_channels, channels, kernel_size}, defaultWeight(), where);
  if (options.bias)
    bias = parameter("bias", {out_channels}, defaultBias(channels * kernel_size), where);
}

Tensor Conv1d::forward(Tensor x) { return conv1d(at(x), weight, bias, options); }

ConvTranspose2d::ConvTranspose2d(Module *parent, std::string name, std::int64_t in_channels, std::int64_t out_channels,
                                 Size2 kernel_size, ConvTranspose2dOptions options, Where where)
    : Module(parent, std::move(name), where),
      options{options.stride, options.padding, options.output_padding, options.groups, options.dilation} {
  requireGroups("ConvTranspose2d", in_channels, out_channels, options.groups, declared());
  // Times the kernel's area, PyTorch's fan-in of a transposed convolution.
  std::int64_t channels = out_channels / options.groups;
  weight = parameter("weight", {in_channels, channels, kernel_size.h, kernel_size.w}, defaultWeight(), where);
  if (options.bias)
    bias = parameter("bias", {out_channels}, defaultBias(channels * kernel_size.h * kernel_size.w), where);
}

Tensor ConvTranspose2d::forward(Tensor x) { return conv_transpose2d(at(x), weight, bias, options); }

//===- norms ------------------------------------------------------------------------------------------------------===//

LayerNorm::LayerNorm(Module *parent, std::string name, Shape normalized_shape, LayerNormOptions options, Where where)
    : Module(parent, std::move(name), where), shape(std::move(normalized_shape)), eps(options.eps) {
  if (options.elementwise_affine)
    weight = parameter("weight", shape, init::ones(), where);
  if (options.elementwise_affine && options.bias)
    bias = parameter("bias", shape, init::zeros(), where);
}

Tensor LayerNorm::forward(Tensor x) { return layer_norm(at(x), shape, weight, bias, eps); }

RMSNorm::RMSNorm(Module *parent, std::string name, Shape normalized_shape, RMSNormOptions options, Where where)
    : Module(parent, std::move(name), where), shape(std::move(normalized_shape)), eps(options.eps) {
  if (options.elementwise_affine)
    weight = parameter("weight", shape, init::ones(), where);
}

Tensor RMSNorm::forward(Tensor x) { return rms_norm(at(x), shape, weight, eps); }

GroupNorm::GroupNorm(Module *parent, std::string name, std::int64_t num_groups, std::int64_t num_channels,
                     GroupNormOptions options, Where where)
    : Module(parent, std::move(name), where), groups(num_groups), eps(options.eps) {
  if (num_groups <= 0 || num_channels % num_groups != 0)
    throw Error("GroupNorm: " + std::to_string(num_groups) + " groups do not divide " + std::to_string(num_channels) +
                    " channels",
                declared());
  if (options.affine) {
    weight = parameter("weight", {num_channels}, init::ones(), where);
    bias = parameter("bias", {num_channels}, init::zeros(), where);
  }
}

Tensor GroupNorm::forward(Tensor x) { return group_norm(at(x), groups, weight, bias, eps); }

InstanceNorm2d::InstanceNorm2d(Module *parent, std::string name, std::int64_t num_features, InstanceNormOptions options,
                               Where where)
    : Module(parent, std::move(name), where), eps(options.eps) {
  if (options.affine) {
    weight = parameter("weight", {num_features}, init::ones(), where);
    bias = parameter("bias", {num_features}, init::zeros(), where);
  }
}

Tensor InstanceNorm2d::forward(Tensor x) { return instance_norm(at(x), weight, bias, eps); }

LocalResponseNorm::LocalResponseNorm(Module *parent, std::string name, std::int64_t size,
                                     LocalResponseNormOptions options, Where where)
    : Module(parent, std::move(name), where), size(size), options(options) {}

Tensor LocalResponseNorm::forward(Tensor x) {
  return local_response_norm(at(x), size, options.alpha, options.beta, options.k);
}

//===- batch norm -------------------------------------------------------------------------------------------------===//

BatchNorm2d::BatchNorm2d(Module *parent, std::string name, std::int64_t num_features, BatchNorm2dOptions options,
                         Where where)
    : Module(parent, std::move(name), where), options{options.eps, options.momentum} {
  if (options.affine) {
    weight = parameter("weight", {num_features}, init::ones(), where);
    bias = parameter("bias", {num_features}, init::zeros(), where);
  }
  running_mean = buffer("running_mean", {num_features}, init::zeros(), where);
  running_var = buffer("running_var", {num_features}, init::ones(), where);
}

Tensor BatchNorm2d::forward(Tensor x) { return batch_norm(at(x), running_mean, running_var, weight, bias, options); }

//===- pools ------------------------------------------------------------------------------------------------------===//

MaxPool2d::MaxPool2d(Module *parent, std::string name, Size2 kernel_size, MaxPoolOptions options, Where where)
    : Module(parent, std::move(name), where), kernel(kernel_size), options(options) {}

Tensor MaxPool2d::forward(Tensor x) { return max_pool2d(at(x), kernel, options); }

AvgPool2d::AvgPool2d(Module *parent, std::string name, Size2 kernel_size, AvgPoolOptions options, Where where)
    : Module(parent, std::move(name), where), kernel(kernel_size), options(options) {}

Tensor AvgPool2d::forward(Tensor x) { return avg_pool2d(at(x), kernel, options); }

AdaptiveAvgPool2d::AdaptiveAvgPool2d(Module *parent, std::string name, Size2 output_size, Where where)
    : Module(parent, std::move(name), where), size(output_size) {}

Tensor AdaptiveAvgPool2d::forward(Tensor x) { return adaptive_avg_pool2d(at(x), size); }

Upsample::Upsample(Module *parent, std::string name, Size2 scale_factor, InterpolateOptions options, Where where)
    : Module(parent, std::move(name), where), scale(scale_factor), options(options) {}

Tensor Upsample::forward(Tensor x) { return interpolate(at(x), scale, options); }

PixelShuffle::PixelShuffle(Module *parent, std::string name, std::int64_t upscale_factor, Where where)
    : Module(parent, std::move(name), where), factor(upscale_factor) {}

Tensor PixelShuffle::forward(Tensor x) { return pixel_shuffle(at(x), factor); }

//===- other layers -----------------------------------------------------------------------------------------------===//

Flatten::Flatten(Module *parent, std::string name, std::int64_t start_dim, std::int64_t end_dim, Where where)
    : Module(parent, std::move(name), where), start(start_dim), end(end_dim) {}

Tensor Flatten::forward(Tensor x) { return flatten(at(x), start, end); }

Dropout::Dropout(Module *parent, std::string name, double p, Where where)
    : Module(parent, std::move(name), where), p(p) {
  if (!(p >= 0 && p <= 1)) {
    std::ostringstream message;
    message << "Dropout: p is a probability, within [0, 1], not " << p;
    throw Error(message.str(), declared());
  }
}

Tensor Dropout::forward(Tensor x) { return dropout(at(x), p); }

GELU::GELU(Module *parent, std::string name, Gelu approximate, Where where)
    : Module(parent, std::move(name), where), approximate(approximate) {}

Tensor GELU::forward(Tensor x) { return gelu(at(x), approximate); }

LeakyReLU::LeakyReLU(Module *parent, std::string name, double negative_slope, Where where)
    : Module(parent, std::move(name), where), slope(negative_slope) {}

Tensor LeakyReLU::forward(Tensor x) { return leaky_relu(at(x), slope); }

ELU::ELU(Module *parent, std::string name, double alpha, Where where)
    : Module(parent, std::move(name), where), alpha(alpha) {}

Tensor ELU::forward(Tensor x) { return elu(at(x), alpha); }

PReLU::PReLU(Module *parent, std::string name, std::int64_t num_parameters, PReLUOptions options, Where where)
    : Module(parent, std::move(name), where) {
  weight = parameter("weight", {num_parameters}, init::constant(options.init), where);
}

Tensor PReLU::forward(Tensor x) { return prelu(at(x), weight); }

Tensor Sequential::forward(Tensor x) {
  for (const auto &layer : layers)
    x = (*layer)(at(x));
  return x;
}

Tensor Sequential::forward(Tensor x, Tensor a, Tensor b) {
  for (const std::unique_ptr<Module> &layer : layers)
    x = (*layer)(at(x), at(a), at(b));
  return x;
}

} // namespace sluice::nn
