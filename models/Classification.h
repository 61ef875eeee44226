// Shared code of the classification models: images in, class scores out.
#pragma once

#include "Options.h"
#include <sluice/sluice.h>

#include <string>

namespace models {

/// A graph that learns the class of an image or of each position, and its inputs.
struct Classification {
  /// `shape` is the shape of one image, `labels` the shape of its labels.
  Classification(const std::string &name, const Options &options, const sluice::Shape &shape,
                 const sluice::Shape &labels = {});

  /// Trains `net` on cross-entropy; outputs its logits and its accuracy.
  sluice::Graph minimize(sluice::nn::Module &net, const sluice::optim::Optimizer &optimizer);

  sluice::Graph graph;
  sluice::Tensor image; ///< u8 or f32 [batch, ...]
  sluice::Tensor label; ///< i32 [batch, ...]
};

/// Images as f32: bytes are scaled to [0, 1].
sluice::Tensor scaled(sluice::Arg image);

/// Initializes weights from N(0, 0.01^2) and biases with zeros.
void initializeNormally(sluice::nn::Module &net);

/// Initializes convolution weights from N(0, 2 / fan_out).
void initializeConvolutions(sluice::nn::Module &net);

} // namespace models
