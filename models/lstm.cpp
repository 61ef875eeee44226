// A language model over 10,000 words: of 32 words in a row each next one, by an embedding, two LSTM layers and a
// product. Its layers have one bias each, where torch.nn's have two, and begin each row with what the same row of the
// batch before left.
#include "Options.h"
#include <sluice/sluice.h>

using namespace sluice;

static constexpr std::int64_t kWords = 10000, kWidth = 256, kSteps = 32;

struct LanguageModel : nn::Module {
  using Module::Module;
  nn::Embedding embedding{this, "embedding", kWords, kWidth};
  nn::LSTM lstm{
      this, "lstm", kWidth, kWidth, {.num_layers = 2, .batch_first = true, .single_bias = true, .stateful = true}};
  nn::Linear fc{this, "fc", kWidth, kWords};

  Tensor forward(Tensor words) override { return fc(lstm(embedding(words))); }
};

/// Of each row, the sum over its steps.
static Tensor sumOfLosses(const Tensor &logits, const Tensor &next) {
  return scan({}, {logits, next}, 1,
              [](const auto &, const auto &slices) {
                return ScanStep{{}, {cross_entropy(slices[0], slices[1], Reduction::none)}};
              })
      .stacked[0]
      .sum(1);
}

static Graph build(const models::Options &options) {
  Graph graph = models::graph("lstm", options);
  Tensor words = graph.input("words", i32, {Dim{"batch"}, kSteps}),
         next = graph.input("next", i32, {Dim{"batch"}, kSteps});
  LanguageModel net{graph};
  models::pin(net, options);
  net.initialize("*", init::uniform(-0.1, 0.1));
  Tensor logits = net(words);
  graph.output("logits", logits);
  graph.minimize(sumOfLosses(logits, next).mean(), optim::SGD{.lr = options.lr}, {.clip_grad_norm = 5.0});
  return graph;
}

int main(int argc, char **argv) {
  return models::run(argc, argv, "lstm", {.batch = 128, .inits = {"torch"}, .lr = 0.1}, build);
}
