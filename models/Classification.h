// Shared code of the models that classify images.
#pragma once

#include "Options.h"
#include <sluice/sluice.h>

#include <string>

namespace models {

/// A graph that learns the class of an image, or of each pixel, with its inputs.
struct Classification {
  /// `shape` is the shape of one image. `labels` is the shape of its labels; by default an image has one label.
  Classification(const std::string &name, const Options &options, const sluice::Shape &shape,
                 const sluice::Shape &labels = {});

  /// Calls `net` on the images, and trains it on the cross-entropy of its logits. The graph outputs the logits, and has
  /// the metric `accuracy`.
  sluice::Graph minimize(sluice::nn::Module &net, const sluice::optim::Optimizer &optimizer);

  sluice::Graph graph;
  sluice::Tensor image; ///< u8 or f32 [batch, ...]
  sluice::Tensor label; ///< i32 [batch, ...]
};

/// Images as f32: bytes are scaled to [0, 1].
sluice::Tensor scaled(sluice::Arg image);

/// Initializes weights from N(0, 0.01^2) and biases with zeros: --init notebook.
void initializeNormally(sluice::nn::Module &net);

/// Initializes convolution weights from N(0, 2 / fan_out): --init he. All other parameters keep PyTorch's defaults.
void initializeConvolutions(sluice::nn::Module &net);

} // namespace models
