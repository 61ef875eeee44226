#include "NextWord.h"

using namespace sluice;

namespace models {

NextWord::NextWord(const std::string &name, const Options &options) : graph(models::graph(name, options)) {
  Shape shape{Dim{"batch"}, options.sizes.length};
  tokens = graph.input("tokens", i32, shape);
  label = graph.input("label", i32, shape);
  graph.set_data("kjv");
}

Graph NextWord::minimize(const Tensor &logits, const optim::Optimizer &optimizer) {
  Tensor loss = cross_entropy(logits.transpose(1, 2), label);
  graph.output("logits", logits);
  graph.metric("nll", loss);
  graph.minimize(loss, optimizer);
  return graph;
}

Graph NextWord::minimize_sums(const Tensor &logits, const optim::Optimizer &optimizer) {
  // Summed over the words of each row, then the mean over the rows.
  Tensor loss = cross_entropy(logits.transpose(1, 2), label, Reduction::none).sum(1).mean();
  graph.output("logits", logits);
  graph.metric("nll", loss / static_cast<double>(label.shape()[1].size));
  graph.minimize(loss, optimizer, {.clip_grad_norm = 5.0});
  return graph;
}

} // namespace models
