// ResNet-50 (v1.5: the 3x3 convolutions have the strides) for 224 x 224 images of 1000 classes, trained by SGD with
// Nesterov momentum and weight decay.
#include "ResNet.h"

using namespace sluice;

/// 1x1, 3x3 and 1x1 convolutions with a shortcut.
struct Bottleneck : nn::Module {
  static constexpr std::int64_t kExpansion = 4;
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Conv2d conv3;
  nn::BatchNorm2d bn3;
  models::Shortcut shortcut;

  Bottleneck(nn::Module *parent, std::string name, std::int64_t in, std::int64_t width, std::int64_t stride)
      : Module(parent, std::move(name)), conv1{this, "conv1", in, width, 1, {.bias = false}}, bn1{this, "bn1", width},
        conv2{this, "conv2", width, width, 3, {.stride = stride, .padding = 1, .bias = false}}, bn2{this, "bn2", width},
        conv3{this, "conv3", width, 4 * width, 1, {.bias = false}}, bn3{this, "bn3", 4 * width},
        shortcut{this, in, 4 * width, stride} {}

  Tensor forward(Tensor x) override {
    Tensor y = relu(bn1(conv1(x)));
    y = relu(bn2(conv2(y)));
    return relu(bn3(conv3(y)) + shortcut(x));
  }
};

static Graph build(const models::Options &options) {
  models::Classification task{"resnet50", options, {3, options.size, options.size}};
  models::ResNet<Bottleneck> net{task.graph, {3, 4, 6, 3}};
  models::pin(net, options);
  if (options.init == "he")
    models::initializeConvolutions(net);
  return task.minimize(net, optim::SGD{.lr = options.lr, .momentum = 0.9, .weight_decay = 1e-4, .nesterov = true});
}

int main(int argc, char **argv) {
  return models::run(argc, argv, "resnet50",
                     {.batch = 16, .size = 224, .init = "he", .inits = {"he", "torch"}, .lr = 0.1}, build);
}
