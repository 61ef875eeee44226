// A language model with a vocabulary of 10,000 words: predicts the next word at each position of 32-word rows by an
// embedding, two LSTM layers and a linear layer. LSTM layers have one bias each; torch.nn's have two. Each row starts
// with the final state of the same row of the previous batch. Generation continues from the state of the previous word.
#include "NextWord.h"

using namespace sluice;

static constexpr std::int64_t kWidth = 256;

struct LanguageModel : nn::Module {
  nn::Embedding embedding;
  nn::LSTM lstm{
      this, "lstm", kWidth, kWidth, {.num_layers = 2, .batch_first = true, .single_bias = true, .stateful = true}};
  nn::Linear fc;

  LanguageModel(Graph &graph, std::int64_t words)
      : Module(graph), embedding{this, "embedding", words, kWidth}, fc{this, "fc", kWidth, words} {}

  Tensor forward(Tensor words) override { return fc(lstm(embedding(words))); }
};

static Graph build(const models::Options &options) {
  models::NextWord task("lstm", options);
  LanguageModel net{task.graph, options.sizes.words};
  models::pin(net, options);
  net.initialize("*", init::uniform(-0.1, 0.1));
  Graph graph = task.minimize_sums(net(task.tokens), optim::SGD{.lr = options.lr});
  Tensor token = graph.input("token", i32, {1, 1});
  graph.entry("decode", [&] { graph.output("logits", net(token).flatten()); });
  return graph;
}

int main(int argc, char **argv) {
  models::Sizes sizes{.length = 32, .words = 10000};
  return models::run(argc, argv, "lstm", {.batch = 128, .input = "", .inits = {"torch"}, .lr = 0.1, .sizes = sizes},
                     build);
}
