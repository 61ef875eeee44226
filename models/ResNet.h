// Shared code of resnet18 and resnet50: residual networks for images of 1000 classes, apart from the blocks, which the
// programs define.
#pragma once

#include "Classification.h"

#include <array>
#include <memory>
#include <string>
#include <utility>

namespace models {

/// The shortcut of a block: its input, through a 1x1 convolution if the shape changes.
struct Shortcut {
  std::unique_ptr<sluice::nn::Sequential> downsample;

  Shortcut(sluice::nn::Module *block, std::int64_t in, std::int64_t out, std::int64_t stride) {
    if (in == out && stride == 1)
      return;
    downsample = std::make_unique<sluice::nn::Sequential>(block, "downsample");
    downsample->add<sluice::nn::Conv2d>(in, out, 1, sluice::nn::Conv2dOptions{.stride = stride, .bias = false})
        .add<sluice::nn::BatchNorm2d>(out);
  }

  sluice::Tensor operator()(sluice::Tensor x) const { return downsample ? (*downsample)(x) : x; }
};

struct ResNetStem : sluice::nn::Module {
  using Module::Module;
  sluice::nn::Conv2d conv1{this, "conv1", 3, 64, 7, {.stride = 2, .padding = 3, .bias = false}};
  sluice::nn::BatchNorm2d bn1{this, "bn1", 64};

  sluice::Tensor forward(sluice::Tensor x) override {
    return max_pool2d(relu(bn1(conv1(scaled(x)))), 3, {.stride = 2, .padding = 1});
  }
};

/// The constructor of `Block` takes its input channels, its width and its stride. Its output has `Block::kExpansion`
/// times `width` channels.
template <class Block> struct ResNet : sluice::nn::Module {
  ResNetStem stem{this, sluice::nn::Group{"stem"}};
  sluice::nn::Sequential layer1{this, "layer1"}, layer2{this, "layer2"}, layer3{this, "layer3"}, layer4{this, "layer4"};
  sluice::nn::Linear fc{this, "fc", 512 * Block::kExpansion, 1000};

  /// `blocks` is the number of blocks per layer.
  ResNet(sluice::Graph &graph, const std::array<int, 4> &blocks) : Module(graph) {
    std::int64_t channels = 64, width = 64;
    for (int number = 0; sluice::nn::Sequential * layer : {&layer1, &layer2, &layer3, &layer4}) {
      for (int block = 0; block < blocks[number]; ++block) {
        layer->add<Block>(channels, width, std::int64_t(number > 0 && block == 0 ? 2 : 1));
        channels = Block::kExpansion * width;
      }
      ++number;
      width *= 2;
    }
  }

  sluice::Tensor forward(sluice::Tensor x) override { return fc(layer4(layer3(layer2(layer1(stem(x))))).mean({2, 3})); }
};

} // namespace models
