// Pools and resizing.
#pragma once

#include "sluice/formulas.h"
#include "sluice/module.h"
#include "sluice/ops.h"

#include <cstdint>
#include <string>

namespace sluice::nn {

class MaxPool2d : public Module {
public:
  MaxPool2d(Module *parent, std::string name, Size2 kernel_size, MaxPoolOptions options = {},
            Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  Size2 kernel;
  MaxPoolOptions options;
};

class AvgPool2d : public Module {
public:
  AvgPool2d(Module *parent, std::string name, Size2 kernel_size, AvgPoolOptions options = {},
            Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  Size2 kernel;
  AvgPoolOptions options;
};

class AdaptiveAvgPool2d : public Module {
public:
  AdaptiveAvgPool2d(Module *parent, std::string name, Size2 output_size, Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  Size2 size;
};

/// By the nearest element unless told otherwise.
class Upsample : public Module {
public:
  Upsample(Module *parent, std::string name, Size2 scale_factor, InterpolateOptions options = {},
           Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  Size2 scale;
  InterpolateOptions options;
};

class PixelShuffle : public Module {
public:
  PixelShuffle(Module *parent, std::string name, std::int64_t upscale_factor, Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  std::int64_t factor;
};

} // namespace sluice::nn
