// Convolutions.
#pragma once

#include "sluice/module.h"
#include "sluice/ops.h"

#include <cstdint>
#include <string>

namespace sluice::nn {

// The parameters of all convolutions begin as U(-k, k) with k = 1 / sqrt(fan_in), fan_in being the elements of one
// output channel of the weight (ConvTranspose2d: of one input channel). `groups` must divide in_channels and
// out_channels. PyTorch's padding_mode and padding by name ("same") are not available.

/// Options of Conv2d: ConvOptions, and whether there is a bias.
struct Conv2dOptions {
  Size2 stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
};
/// x [N, in_channels, H, W] -> [N, out_channels, H', W']: the function `conv2d`.
class Conv2d : public Module {
public:
  Conv2d(Module *parent, std::string name, std::int64_t in_channels, std::int64_t out_channels, Size2 kernel_size,
         Conv2dOptions options = {}, Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight; ///< [out_channels, in_channels / groups, kH, kW]
  Parameter bias;   ///< [out_channels]

private:
  ConvOptions options;
};

/// Conv2d of which the first call finds in_channels: dimension 1 of x [N, C, H, W]. Otherwise as LazyLinear.
class LazyConv2d : public Module {
public:
  LazyConv2d(Module *parent, std::string name, std::int64_t out_channels, Size2 kernel_size, Conv2dOptions options = {},
             Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight; ///< [out_channels, in_channels / groups, kH, kW]
  Parameter bias;   ///< [out_channels]

private:
  std::int64_t out;
  Size2 kernel;
  Conv2dOptions options;
};

/// Options of Conv1d: ConvOptions1d, and whether there is a bias.
struct Conv1dOptions {
  std::int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;
};
/// x [N, in_channels, L] -> [N, out_channels, L']: the function `conv1d`.
class Conv1d : public Module {
public:
  Conv1d(Module *parent, std::string name, std::int64_t in_channels, std::int64_t out_channels,
         std::int64_t kernel_size, Conv1dOptions options = {}, Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight; ///< [out_channels, in_channels / groups, kernel_size]
  Parameter bias;   ///< [out_channels]

private:
  ConvOptions1d options;
};

/// Options of ConvTranspose2d: ConvTransposeOptions, and whether there is a bias.
struct ConvTranspose2dOptions {
  Size2 stride = 1, padding = 0, output_padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
  Size2 dilation = 1;
};
/// x [N, in_channels, H, W] -> [N, out_channels, H', W']: the function `conv_transpose2d`.
class ConvTranspose2d : public Module {
public:
  ConvTranspose2d(Module *parent, std::string name, std::int64_t in_channels, std::int64_t out_channels,
                  Size2 kernel_size, ConvTranspose2dOptions options = {}, Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight; ///< [in_channels, out_channels / groups, kH, kW]
  Parameter bias;   ///< [out_channels]

private:
  ConvTransposeOptions options;
};

} // namespace sluice::nn
