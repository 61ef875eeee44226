#include "Classification.h"

#include <vector>

using namespace sluice;

namespace models {

Classification::Classification(const std::string &name, const Options &options, const Shape &shape)
    : graph(models::graph(name, options)) {
  std::vector<Dim> dims{Dim{"batch"}};
  dims.insert(dims.end(), shape.begin(), shape.end());
  image = graph.input("image", options.input == "u8" ? u8 : f32, Shape(dims));
  label = graph.input("label", i32, {Dim{"batch"}});
}

Graph Classification::minimize(nn::Module &net, const optim::Optimizer &optimizer) {
  Tensor logits = net(image);
  graph.output("logits", logits);
  graph.metric("accuracy", accuracy(logits, label));
  graph.minimize(cross_entropy(logits, label), optimizer);
  return graph;
}

Tensor scaled(Arg image) { return image.tensor.dtype() == u8 ? image / 255 : image.tensor; }

void initializeNormally(nn::Module &net) {
  net.initialize("*.weight", init::normal(0.0, 0.01));
  net.initialize("*.bias", init::zeros());
}

} // namespace models
