// AlexNet without groups, normalization or dropout, for 224 x 224 images of 1000 classes, trained by SGD.
#include "Classification.h"

using namespace sluice;

struct Convolutions : nn::Module {
  using Module::Module;
  nn::Conv2d conv1{this, "conv1", 3, 96, 11, {.stride = 4, .padding = 2}};
  nn::Conv2d conv2{this, "conv2", 96, 256, 5, {.padding = 2}};
  nn::Conv2d conv3{this, "conv3", 256, 384, 3, {.padding = 1}};
  nn::Conv2d conv4{this, "conv4", 384, 384, 3, {.padding = 1}};
  nn::Conv2d conv5{this, "conv5", 384, 256, 3, {.padding = 1}};

  Tensor forward(Tensor x) override {
    x = max_pool2d(relu(conv1(models::scaled(x))), 3, {.stride = 2});
    x = max_pool2d(relu(conv2(x)), 3, {.stride = 2});
    x = relu(conv4(relu(conv3(x))));
    return max_pool2d(relu(conv5(x)), 3, {.stride = 2});
  }
};

struct Dense : nn::Module {
  using Module::Module;
  nn::Linear fc6{this, "fc6", 9216, 4096}, fc7{this, "fc7", 4096, 4096}, fc8{this, "fc8", 4096, 1000};

  Tensor forward(Tensor x) override { return fc8(relu(fc7(relu(fc6(x.flatten(1)))))); }
};

struct AlexNetS : nn::Module {
  using Module::Module;
  Convolutions conv{this, nn::Group{"conv"}};
  Dense fc{this, nn::Group{"fc"}};

  Tensor forward(Tensor x) override { return fc(conv(x)); }
};

static Graph build(const models::Options &options) {
  models::Classification task{"alexnet_s", options, {3, 224, 224}};
  AlexNetS net{task.graph};
  models::pin(net, options);
  if (options.init == "notebook")
    models::initializeNormally(net);
  return task.minimize(net, optim::SGD{.lr = options.lr});
}

int main(int argc, char **argv) {
  return models::run(argc, argv, "alexnet_s", {.batch = 16, .init = "notebook", .lr = 0.01}, build);
}
