// A fully connected network for digits, 784-2048-4096-1024-10 with sigmoids, trained by SGD with momentum.
#include "Classification.h"
#include "FullyConnected.h"

using namespace sluice;

struct FcnR : models::FullyConnected {
  explicit FcnR(Graph &graph) : FullyConnected(graph, {784, 2048, 4096, 1024, 10}) {}

  Tensor forward(Tensor x) override { return FullyConnected::forward(x.dtype() == u8 ? x / 256 : x); }
};

static Graph build(const models::Options &options) {
  models::Classification task{"fcn_r", options, {784}};
  task.graph.set_data("mnist-10k");
  FcnR net{task.graph};
  models::pin(net, options);
  if (options.init == "xavier") {
    net.initialize("*.weight", init::xavier_uniform());
    net.initialize("*.bias", init::zeros());
  }
  return task.minimize(net, optim::SGD{.lr = options.lr, .momentum = 0.9});
}

int main(int argc, char **argv) {
  return models::run(argc, argv, "fcn_r", {.batch = 1024, .init = "xavier", .inits = {"xavier", "torch"}, .lr = 0.05},
                     build);
}
