// One layer that tells handwritten digits apart.
#include <sluice/sluice.h>

using namespace sluice;

struct Digits : nn::Module {
  using Module::Module;
  nn::Linear layer{this, "layer", 784, 10};

  Tensor forward(Tensor x) override { return layer(x.flatten(1)); }
};

int main(int, char **argv) {
  Graph g{"digits"};
  g.set_capacity(64);
  Tensor image = g.input("image", u8, {Dim{"batch"}, 1, 28, 28});
  Tensor label = g.input("label", i32, {Dim{"batch"}});
  Digits net{g};
  Tensor logits = net(image.to(f32) / 255);
  g.output("logits", logits);
  g.metric("accuracy", accuracy(logits, label));
  g.minimize(cross_entropy(logits, label), optim::SGD{.lr = 0.1});
  g.save(argv[1]);
}
