// Convolutions.
#pragma once

#include "sluice/module.h"
#include "sluice/ops.h"

#include <cstdint>
#include <string>

namespace sluice::nn {

struct Conv2dOptions {
  Size2 stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
};
class Conv2d : public Module {
public:
  Conv2d(Module *parent, std::string name, std::int64_t in_channels, std::int64_t out_channels, Size2 kernel_size,
         Conv2dOptions options = {}, Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight, bias;

private:
  ConvOptions options;
};

struct Conv1dOptions {
  std::int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;
};
class Conv1d : public Module {
public:
  Conv1d(Module *parent, std::string name, std::int64_t in_channels, std::int64_t out_channels,
         std::int64_t kernel_size, Conv1dOptions options = {}, Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight, bias;

private:
  ConvOptions1d options;
};

struct ConvTranspose2dOptions {
  Size2 stride = 1, padding = 0, output_padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
  Size2 dilation = 1;
};
class ConvTranspose2d : public Module {
public:
  ConvTranspose2d(Module *parent, std::string name, std::int64_t in_channels, std::int64_t out_channels,
                  Size2 kernel_size, ConvTranspose2dOptions options = {}, Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight, bias;

private:
  ConvTransposeOptions options;
};

} // namespace sluice::nn
