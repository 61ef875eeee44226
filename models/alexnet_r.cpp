// A small AlexNet without normalization, for 32 x 32 images of ten classes, trained by SGD with momentum.
#include "Classification.h"

using namespace sluice;

struct Convolutions : nn::Module {
  using Module::Module;
  nn::Conv2d conv1{this, "conv1", 3, 32, 5, {.padding = 2}};
  nn::Conv2d conv2{this, "conv2", 32, 32, 5, {.padding = 2}};
  nn::Conv2d conv3{this, "conv3", 32, 64, 5, {.padding = 2}};

  Tensor forward(Tensor x) override {
    x = relu(max_pool2d(conv1(models::scaled(x)), 3, {.stride = 2}));
    x = max_pool2d(relu(conv2(x)), 3, {.stride = 2});
    return avg_pool2d(relu(conv3(x)), 3, {.stride = 2});
  }
};

struct AlexNetR : nn::Module {
  using Module::Module;
  Convolutions conv{this, nn::Group{"conv"}};
  nn::Linear fc{this, "fc", 576, 10};

  Tensor forward(Tensor x) override { return fc(conv(x).flatten(1)); }
};

static Graph build(const models::Options &options) {
  models::Classification task{"alexnet_r", options, {3, 32, 32}};
  AlexNetR net{task.graph};
  models::pin(net, options);
  if (options.init == "notebook")
    models::initializeNormally(net);
  return task.minimize(net, optim::SGD{.lr = options.lr, .momentum = 0.9});
}

int main(int argc, char **argv) {
  return models::run(argc, argv, "alexnet_r", {.batch = 1024, .init = "notebook", .lr = 0.01}, build);
}
