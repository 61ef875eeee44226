// ResNet-18 for 224 x 224 images of 1000 classes, trained by SGD with Nesterov momentum and weight decay.
#include "ResNet.h"

using namespace sluice;

/// Two 3x3 convolutions with a shortcut.
struct BasicBlock : nn::Module {
  static constexpr std::int64_t kExpansion = 1;
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  models::Shortcut shortcut;

  BasicBlock(nn::Module *parent, std::string name, std::int64_t in, std::int64_t width, std::int64_t stride)
      : Module(parent, std::move(name)),
        conv1{this, "conv1", in, width, 3, {.stride = stride, .padding = 1, .bias = false}}, bn1{this, "bn1", width},
        conv2{this, "conv2", width, width, 3, {.padding = 1, .bias = false}}, bn2{this, "bn2", width},
        shortcut{this, in, width, stride} {}

  Tensor forward(Tensor x) override { return relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x)); }
};

static Graph build(const models::Options &options) {
  models::Classification task{"resnet18", options, {3, options.size, options.size}};
  models::ResNet<BasicBlock> net{task.graph, {2, 2, 2, 2}};
  models::pin(net, options);
  if (options.init == "he")
    models::initializeConvolutions(net);
  return task.minimize(net, optim::SGD{.lr = options.lr, .momentum = 0.9, .weight_decay = 1e-4, .nesterov = true});
}

int main(int argc, char **argv) {
  return models::run(argc, argv, "resnet18",
                     {.batch = 16, .size = 224, .init = "he", .inits = {"he", "torch"}, .lr = 0.1}, build);
}
