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

/// Of each row, the sum over its words.
static Tensor sumOfLosses(const Tensor &logits, const Tensor &label) {
  return scan({}, {logits, label}, 1,
              [](const auto &, const auto &slices) {
                return ScanStep{{}, {cross_entropy(slices[0], slices[1], Reduction::none)}};
              })
      .stacked[0]
      .sum(1);
}

Graph NextWord::minimize_sums(const Tensor &logits, const optim::Optimizer &optimizer) {
  Tensor loss = sumOfLosses(logits, label).mean();
  graph.output("logits", logits);
  graph.metric("nll", loss / static_cast<double>(label.shape()[1].size));
  graph.minimize(loss, optimizer, {.clip_grad_norm = 5.0});
  return graph;
}

} // namespace models
