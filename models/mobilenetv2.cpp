// MobileNetV2 for 224 x 224 images of 1000 classes, trained by plain SGD.
#include "Classification.h"

using namespace sluice;

/// A 1x1 expansion, a depthwise convolution and a 1x1 projection, with a shortcut if the shape is unchanged.
struct InvertedResidual : nn::Module {
  bool isResidual;
  nn::Sequential conv{this, "conv"};

  InvertedResidual(nn::Module *parent, std::string name, std::int64_t in, std::int64_t out, std::int64_t stride,
                   std::int64_t expansion)
      : Module(parent, std::move(name)), isResidual(in == out && stride == 1) {
    std::int64_t width = expansion * in;
    if (expansion > 1)
      conv.add<nn::Conv2d>(in, width, 1, nn::Conv2dOptions{.bias = false}).add<nn::BatchNorm2d>(width).add<nn::ReLU6>();
    nn::Conv2dOptions depthwise{.stride = stride, .padding = 1, .groups = width, .bias = false};
    conv.add<nn::Conv2d>(width, width, 3, depthwise).add<nn::BatchNorm2d>(width).add<nn::ReLU6>();
    conv.add<nn::Conv2d>(width, out, 1, nn::Conv2dOptions{.bias = false}).add<nn::BatchNorm2d>(out);
  }

  Tensor forward(Tensor x) override { return isResidual ? x + conv(x) : conv(x); }
};

struct MobileNetV2 : nn::Module {
  nn::Sequential features{this, "features"};
  nn::Linear fc{this, "fc", 1280, 1000};

  explicit MobileNetV2(Graph &graph) : Module(graph) {
    nn::Conv2dOptions stem{.stride = 2, .padding = 1, .bias = false};
    features.add<nn::Conv2d>(3, 32, 3, stem).add<nn::BatchNorm2d>(32).add<nn::ReLU6>();
    addBlocks(32, 16, 1, 1, 1);
    addBlocks(16, 24, 2, 2);
    addBlocks(24, 32, 3, 2);
    addBlocks(32, 64, 4, 2);
    addBlocks(64, 96, 3, 1);
    addBlocks(96, 160, 3, 2);
    addBlocks(160, 320, 1, 1);
    features.add<nn::Conv2d>(320, 1280, 1, nn::Conv2dOptions{.bias = false})
        .add<nn::BatchNorm2d>(1280)
        .add<nn::ReLU6>();
  }

  void addBlocks(std::int64_t in, std::int64_t out, int blocks, std::int64_t stride, std::int64_t expansion = 6) {
    for (int block = 0; block < blocks; ++block)
      features.add<InvertedResidual>(block == 0 ? in : out, out, block == 0 ? stride : 1, expansion);
  }

  Tensor forward(Tensor x) override { return fc(features(models::scaled(x)).mean({2, 3})); }
};

static Graph build(const models::Options &options) {
  models::Classification task{"mobilenetv2", options, {3, options.size, options.size}};
  MobileNetV2 net{task.graph};
  models::pin(net, options);
  if (options.init == "he")
    models::initializeConvolutions(net);
  return task.minimize(net, optim::SGD{.lr = options.lr});
}

int main(int argc, char **argv) {
  return models::run(argc, argv, "mobilenetv2",
                     {.batch = 16, .size = 224, .init = "he", .inits = {"he", "torch"}, .lr = 0.01}, build);
}
