// A large fully connected network, 26752-2048-2048-2048-26752 with sigmoids, trained by plain SGD.
#include "Classification.h"
#include "FullyConnected.h"

using namespace sluice;

struct FcnS : models::FullyConnected {
  explicit FcnS(Graph &graph) : FullyConnected(graph, {26752, 2048, 2048, 2048, 26752}) {}

  Tensor forward(Tensor x) override { return FullyConnected::forward(models::scaled(x)); }
};

static Graph build(const models::Options &options) {
  models::Classification task{"fcn_s", options, {26752}};
  FcnS net{task.graph};
  models::pin(net, options);
  return task.minimize(net, optim::SGD{.lr = options.lr});
}

int main(int argc, char **argv) {
  return models::run(argc, argv, "fcn_s", {.batch = 64, .inits = {"torch"}, .lr = 0.01}, build);
}
