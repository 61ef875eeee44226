// What the model programs share: images in, the score of every class out.
#pragma once

#include "Options.h"
#include <sluice/sluice.h>

#include <string>

namespace models {

/// A graph that learns which class an image, or each place in it, belongs to, and its inputs.
struct Classification {
  /// `shape` is that of one image, `labels` that of its labels.
  Classification(const std::string &name, const Options &options, const sluice::Shape &shape,
                 const sluice::Shape &labels = {});

  /// Trains `net` on cross-entropy; reports its logits and its accuracy.
  sluice::Graph minimize(sluice::nn::Module &net, const sluice::optim::Optimizer &optimizer);

  sluice::Graph graph;
  sluice::Tensor image; ///< u8 or f32 [batch, ...]
  sluice::Tensor label; ///< i32 [batch, ...]
};

/// Images as f32: bytes become values in [0, 1].
sluice::Tensor scaled(sluice::Arg image);

/// Every weight from N(0, 0.01^2) and every bias zero.
void initializeNormally(sluice::nn::Module &net);

/// Every weight of a convolution from N(0, 2 / fan_out).
void initializeConvolutions(sluice::nn::Module &net);

} // namespace models
