#include "Classification.h"

#include <vector>

using namespace sluice;

namespace models {

static Shape ofBatch(const Shape &row) {
  std::vector<Dim> dims{Dim{"batch"}};
  dims.insert(dims.end(), row.begin(), row.end());
  return Shape(dims);
}

Classification::Classification(const std::string &name, const Options &options, const Shape &shape, const Shape &labels)
    : graph(models::graph(name, options)) {
  image = graph.input("image", options.input == "u8" ? u8 : f32, ofBatch(shape));
  label = graph.input("label", i32, ofBatch(labels));
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

void initializeConvolutions(nn::Module &net) {
  for (const auto &[name, weight] : net.named_parameters())
    if (weight.shape().size() == 4)
      net.initialize(name, init::kaiming_normal(0.0, init::Fan::out));
}

} // namespace models
