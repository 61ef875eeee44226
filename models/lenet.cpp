// LeNet for 28 x 28 images of ten classes, trained by SGD.
#include "Options.h"
#include <sluice/sluice.h>

using namespace sluice;

struct Convolutions : nn::Module {
  using Module::Module;
  nn::Conv2d conv1{this, "conv1", 1, 20, 3}, conv2{this, "conv2", 20, 50, 5};

  Tensor forward(Tensor x) override {
    if (x.dtype() == u8)
      x = x.to(f32) / 255;
    x = avg_pool2d(relu(conv1(x)), 2);
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
  Convolutions conv{this, nn::Stage{"conv"}};
  Dense fc{this, nn::Stage{"fc"}};

  Tensor forward(Tensor x) override { return fc(conv(x)); }
};

static Graph build(const models::Options &options) {
  Graph g = models::graph("lenet", options);
  Tensor image = g.input("image", options.input == "u8" ? u8 : f32, {Dim{"batch"}, 1, 28, 28});
  Tensor label = g.input("label", i32, {Dim{"batch"}});

  LeNet net{g};
  models::pin(net, options);
  if (options.init == "notebook") {
    net.initialize("*.weight", init::normal(0.0, 0.01));
    net.initialize("*.bias", init::zeros());
  }
  Tensor logits = net(image);
  g.output("logits", logits);
  g.metric("accuracy", accuracy(logits, label));
  g.minimize(cross_entropy(logits, label), optim::SGD{.lr = options.lr});
  return g;
}

int main(int argc, char **argv) {
  return models::run(argc, argv, "lenet", {.lr = 0.1, .output = {}, .copies = {}, .pins = {}}, build);
}
