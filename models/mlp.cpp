// A perceptron with two hidden layers, 784-256-128-10, trained by SGD with momentum and weight decay.
#include "Classification.h"

using namespace sluice;

struct Hidden : nn::Module {
  using Module::Module;
  nn::Linear fc1{this, "fc1", 784, 256}, fc2{this, "fc2", 256, 128};

  Tensor forward(Tensor x) override { return relu(fc2(tanh(fc1(models::scaled(x))))); }
};

struct Mlp : nn::Module {
  using Module::Module;
  Hidden hidden{this, nn::Group{"hidden"}};
  nn::Linear fc3{this, "fc3", 128, 10};

  Tensor forward(Tensor x) override { return fc3(hidden(x)); }
};

static Graph build(const models::Options &options) {
  models::Classification task{"mlp", options, {784}};
  task.graph.set_data("mnist-10k");
  Mlp net{task.graph};
  models::pin(net, options);
  if (options.init == "notebook")
    models::initializeNormally(net);
  return task.minimize(net, optim::SGD{.lr = options.lr, .momentum = 0.9, .weight_decay = 1e-3});
}

int main(int argc, char **argv) { return models::run(argc, argv, "mlp", {.batch = 64, .lr = 0.05}, build); }
