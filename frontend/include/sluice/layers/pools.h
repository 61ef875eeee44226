// Pools and resizing.
#pragma once

#include "sluice/formulas.h"
#include "sluice/module.h"
#include "sluice/ops.h"

#include <cstdint>
#include <string>

namespace sluice::nn {

/// The function `max_pool2d`.
class MaxPool2d : public Module {
public:
  MaxPool2d(Module *parent, std::string name, Size2 kernel_size, MaxPoolOptions options = {},
            Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  Size2 kernel;
  MaxPoolOptions options;
};

/// The function `avg_pool2d`.
class AvgPool2d : public Module {
public:
  AvgPool2d(Module *parent, std::string name, Size2 kernel_size, AvgPoolOptions options = {},
            Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  Size2 kernel;
  AvgPoolOptions options;
};

/// The function `adaptive_avg_pool2d`. PyTorch also accepts None for a size, which keeps it.
class AdaptiveAvgPool2d : public Module {
public:
  AdaptiveAvgPool2d(Module *parent, std::string name, Size2 output_size, Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  Size2 size;
};

/// The function `interpolate` with whole scale factors; nearest by default. PyTorch's `size` is `interpolate_to`.
class Upsample : public Module {
public:
  Upsample(Module *parent, std::string name, Size2 scale_factor, InterpolateOptions options = {},
           Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  Size2 scale;
  InterpolateOptions options;
};

/// The function `pixel_shuffle`.
class PixelShuffle : public Module {
public:
  PixelShuffle(Module *parent, std::string name, std::int64_t upscale_factor, Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  std::int64_t factor;
};

} // namespace sluice::nn
