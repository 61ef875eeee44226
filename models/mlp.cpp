// A perceptron with two hidden layers, 784-256-128-10, trained by SGD with momentum and weight decay.
#include "Options.h"
#include <sluice/sluice.h>

using namespace sluice;

struct Hidden : nn::Module {
  using Module::Module;
  nn::Linear fc1{this, "fc1", 784, 256}, fc2{this, "fc2", 256, 128};

  Tensor forward(Tensor x) override {
    if (x.dtype() == u8)
      x = x.to(f32) / 255;
    return relu(fc2(tanh(fc1(x))));
  }
};

struct Mlp : nn::Module {
  using Module::Module;
  Hidden hidden{this, nn::Stage{"hidden"}};
  nn::Linear fc3{this, "fc3", 128, 10};

  Tensor forward(Tensor x) override { return fc3(hidden(x)); }
};

static Graph build(const models::Options &options) {
  Graph g = models::graph("mlp", options);
  Tensor image = g.input("image", options.input == "u8" ? u8 : f32, {Dim{"batch"}, 784});
  Tensor label = g.input("label", i32, {Dim{"batch"}});

  Mlp net{g};
  models::pin(net, options);
  if (options.init == "notebook") {
    net.initialize("*.weight", init::normal(0.0, 0.01));
    net.initialize("*.bias", init::zeros());
  }
  Tensor logits = net(image);
  g.output("logits", logits);
  g.metric("accuracy", accuracy(logits, label));
  g.minimize(cross_entropy(logits, label), optim::SGD{.lr = options.lr, .momentum = 0.9, .weight_decay = 1e-3});
  return g;
}

int main(int argc, char **argv) {
  return models::run(argc, argv, "mlp",
                     {.batch = 64, .input = "f32", .lr = 0.05, .output = {}, .copies = {}, .pins = {}}, build);
}
