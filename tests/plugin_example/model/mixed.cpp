// y = exp(relu(x w)): `mixed FILE` has the product and the ReLU work on the abacus, `mixed FILE all` the rest as well.
#include <sluice/sluice.h>

using namespace sluice;

struct Product : nn::Module {
  using Module::Module;
  nn::Linear layer{this, "layer", 3, 4, {.bias = false}};

  Tensor forward(Tensor x) override { return layer(x); }
};

int main(int argc, char **argv) {
  Graph g{"mixed"};
  g.set_devices("cpu,abacus:0");
  g.set_copies("insert");
  g.set_capacity(5);
  Product product{g};
  // The ops are pinned and not the module: its weight stays on the host, where `init` draws it.
  Tensor scores = pin(product(g.input("x", f32, {Dim{"batch"}, 3})), gpu(0));
  Tensor y = exp(pin(relu(scores), gpu(0)));
  g.output("y", argc > 2 ? pin(y, gpu(0)) : y);
  g.save(argv[1]);
}
