// The layers of torch.nn: their parameters and what they compute.
#include "sluice/layers.h"
#include "sluice/error.h"

#include <cmath>

namespace sluice::nn {

/// PyTorch's default for weights: U(+-1 / sqrt(fan_in)).
static init::Init defaultWeight() { return init::kaiming_uniform(std::sqrt(5.0)); }

/// The same bound for the bias, which has no fan of its own.
static init::Init defaultBias(std::int64_t fanIn) {
  double bound = 1.0 / std::sqrt(double(fanIn));
  return init::uniform(-bound, bound);
}

//===- linear -----------------------------------------------------------------------------------------------------===//

Linear::Linear(Module *parent, std::string name, std::int64_t in_features, std::int64_t out_features,
               LinearOptions options, Where where)
    : Module(parent, std::move(name), where) {
  weight = parameter("weight", {out_features, in_features}, defaultWeight(), where);
  if (options.bias)
    bias = parameter("bias", {out_features}, defaultBias(in_features), where);
}

Tensor Linear::forward(Tensor x) { return linear(at(x), weight, bias); }

//===- embedding --------------------------------------------------------------------------------------------------===//

Embedding::Embedding(Module *parent, std::string name, std::int64_t num_embeddings, std::int64_t embedding_dim,
                     EmbeddingOptions options, Where where)
    : Module(parent, std::move(name), where), padding(options.padding_idx) {
  if (padding && (*padding < -num_embeddings || *padding >= num_embeddings))
    throw Error("Embedding: padding_idx " + std::to_string(*padding) + " is no row of " +
                    std::to_string(num_embeddings),
                where);
  if (padding && *padding < 0)
    *padding += num_embeddings;
  init::Init begin = init::normal();
  begin.zero_row = padding;
  weight = parameter("weight", {num_embeddings, embedding_dim}, begin, where);
}

Tensor Embedding::forward(Tensor index) { return embedding(at(index), weight, padding); }

//===- conv2d -----------------------------------------------------------------------------------------------------===//

Conv2d::Conv2d(Module *parent, std::string name, std::int64_t in_channels, std::int64_t out_channels, Size2 kernel_size,
               Conv2dOptions options, Where where)
    : Module(parent, std::move(name), where),
      options{options.stride, options.padding, options.dilation, options.groups} {
  std::int64_t groups = options.groups;
  if (groups <= 0 || in_channels % groups != 0 || out_channels % groups != 0)
    throw Error("Conv2d: " + std::to_string(groups) + " groups do not divide " + std::to_string(in_channels) +
                    " input and " + std::to_string(out_channels) + " output channels",
                where);
  Shape shape{out_channels, in_channels / groups, kernel_size.h, kernel_size.w};
  weight = parameter("weight", shape, defaultWeight(), where);
  if (options.bias)
    bias = parameter("bias", {out_channels}, defaultBias(in_channels / groups * kernel_size.h * kernel_size.w), where);
}

Tensor Conv2d::forward(Tensor x) { return conv2d(at(x), weight, bias, options); }

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

//===- the rest ---------------------------------------------------------------------------------------------------===//

Flatten::Flatten(Module *parent, std::string name, std::int64_t start_dim, std::int64_t end_dim, Where where)
    : Module(parent, std::move(name), where), start(start_dim), end(end_dim) {}

Tensor Flatten::forward(Tensor x) { return flatten(at(x), start, end); }

GELU::GELU(Module *parent, std::string name, Gelu approximate, Where where)
    : Module(parent, std::move(name), where), approximate(approximate) {}

Tensor GELU::forward(Tensor x) { return gelu(at(x), approximate); }

LeakyReLU::LeakyReLU(Module *parent, std::string name, double negative_slope, Where where)
    : Module(parent, std::move(name), where), slope(negative_slope) {}

Tensor LeakyReLU::forward(Tensor x) { return leaky_relu(at(x), slope); }

ELU::ELU(Module *parent, std::string name, double alpha, Where where)
    : Module(parent, std::move(name), where), alpha(alpha) {}

Tensor ELU::forward(Tensor x) { return elu(at(x), alpha); }

Tensor Sequential::forward(Tensor x) {
  for (const auto &layer : layers)
    x = (*layer)(at(x));
  return x;
}

} // namespace sluice::nn
