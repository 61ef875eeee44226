// LeNet for 28 x 28 images of ten classes, trained by SGD.
#include "Classification.h"

using namespace sluice;

struct Convolutions : nn::Module {
  using Module::Module;
  nn::Conv2d conv1{this, "conv1", 1, 20, 3}, conv2{this, "conv2", 20, 50, 5};

  Tensor forward(Tensor x) override {
    x = avg_pool2d(relu(conv1(models::scaled(x))), 2);
    return avg_pool2d(relu(conv2(x)), 2);
  }
};

struct Dense : nn::Module {
  using Module::Module;
  nn::Linear fc1{this, "fc1", 800, 128}, fc2{this, "fc2", 128, 10};

  Tensor forward(Tensor x) override { return fc2(relu(fc1(x.flatten(1)))); }
};

struct LeNet : nn::Module {
  using Module::Module;
  Convolutions conv{this, nn::Group{"conv"}};
  Dense fc{this, nn::Group{"fc"}};

  Tensor forward(Tensor x) override { return fc(conv(x)); }
};

static Graph build(const models::Options &options) {
  models::Classification task{"lenet", options, {1, 28, 28}};
  task.graph.set_data("mnist-10k");
  LeNet net{task.graph};
  models::pin(net, options);
  if (options.init == "notebook")
    models::initializeNormally(net);
  return task.minimize(net, optim::SGD{.lr = options.lr});
}

int main(int argc, char **argv) { return models::run(argc, argv, "lenet", {.lr = 0.1}, build); }
